"""The command line of one server, for a shell or a script."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from capplan.render.emit.yaml_text import comment, document
from capplan.render.shows import plural
from capplan.results.launch import Launch


def text(launch: Launch) -> str:
    """Comments, the engine's YAML file where it takes one, and the command."""
    lines = [
        *comment(f"{launch.title}. Run this once a replica ({_copies(launch)})."),
        *_notes(launch),
    ]
    lines += comment(f"For {launch.engine_name} {launch.version}; its image is {launch.image}.")
    words = [*launch.command]
    if launch.config:
        name = f"{launch.name}.yaml"
        lines += ["", f"cat > {name} <<'EOF'", document(launch.config).rstrip("\n"), "EOF", ""]
        words.append(f"{launch.config_option}={name}")
    lines += _command(words, launch)
    return "\n".join(lines) + "\n"


def _copies(launch: Launch) -> str:
    gpus = plural(launch.gpus_per_replica, "GPU")
    spare = f", {launch.num_spares} of them spare" if launch.num_spares else ""
    return f"{launch.num_replicas} in all{spare}; {gpus} each"


def _notes(launch: Launch) -> Iterator[str]:
    for note in launch.notes:
        yield from comment(note)


def _command(words: list[str], launch: Launch) -> Iterator[str]:
    options = [shlex.quote(option.word) for option in launch.options]
    yield " \\\n  ".join([" ".join(shlex.quote(word) for word in words), *options])
