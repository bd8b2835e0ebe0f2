"""The command line of one server, for a shell or a script."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

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
    lines += _commands(words, launch)
    return "\n".join(lines) + "\n"


def _copies(launch: Launch) -> str:
    gpus = plural(launch.gpus_per_replica, "GPU")
    spare = f", {launch.num_spares} of them spare" if launch.num_spares else ""
    return f"{launch.num_replicas} in all{spare}; {gpus} each"


def _notes(launch: Launch) -> Iterator[str]:
    for note in launch.notes:
        yield from comment(note)


def _commands(words: list[str], launch: Launch) -> Iterator[str]:
    """One command, or what each node of a replica runs; HEAD is the first node's address."""
    nodes = launch.nodes_per_replica
    if nodes == 1:
        yield _command(words, launch)
    elif launch.engine == "sglang":
        yield from comment(
            f"On each of the {nodes} nodes of a replica, with HEAD=(address of the first) and "
            f"NODE_RANK=0 to {nodes - 1}:"
        )
        own = ['"--dist-init-addr=$HEAD:5000"', f"--nnodes={nodes}", '"--node-rank=$NODE_RANK"']
        yield _command(words, launch, own)
    else:
        yield from comment("On the first node of a replica:")
        yield "ray start --head --port=6379"
        yield from comment("On each other node, with HEAD=(address of the first):")
        yield 'ray start "--address=$HEAD:6379"'
        yield from comment("Then on the first again:")
        yield _command(words, launch, ["--distributed-executor-backend=ray"])


def _command(words: list[str], launch: Launch, own: Sequence[str] = ()) -> str:
    """``own`` are words that the shell is to read as they stand."""
    options = [shlex.quote(option.word) for option in launch.options]
    head = " ".join(shlex.quote(word) for word in words)
    return " \\\n  ".join([head, *options, *own])
