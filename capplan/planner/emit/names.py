"""What a model is called where it is served: a repository, and the name of objects."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from capplan.specs.model import ModelSpec


@dataclass(frozen=True, slots=True)
class Names:
    """What a plan calls its model and its accelerator, and the repository to serve."""

    model_id: str
    hardware_id: str
    repository: str | None = None


def repository_of(model: ModelSpec, names: Names) -> tuple[str, str | None]:
    """What to serve, and what to say of it.

    The name that was asked for where it is a repository; else, of the names on file, the chat
    variant of the first one's owner, or the first.
    """
    if names.repository:
        return names.repository, None
    if is_path(names.model_id):
        return names.model_id, (
            f"The model is a file, {names.model_id}: put the folder or repository of its weights "
            "in its place (--repository)."
        )
    known = [alias for alias in model.aliases if alias.count("/") == 1]
    if not known:
        return names.model_id, f"No repository of {model.name} is on file: say --repository."
    owner = known[0].split("/")[0]
    chats = [name for name in known if name.startswith(f"{owner}/") and _is_chat(name)]
    chosen = chats[0] if chats else known[0]
    others = [name for name in known if name != chosen][:2]
    beside = f" On file as well: {', '.join(others)}." if others else ""
    return chosen, f"Repository: {chosen} (--repository changes it).{beside}"


def _is_chat(name: str) -> bool:
    return bool(re.search(r"(?i)(instruct|chat|-it)\b", name))


def is_path(name: str) -> bool:
    return name.startswith(("/", ".", "~")) or name.endswith((".yaml", ".yml", ".json"))


def dns_label(model_id: str) -> str:
    """A DNS label: it names objects, and must begin with a letter.

    >>> dns_label("llama-3.1-8b"), dns_label("./my models/Config.json")
    ('llama-3-1-8b', 'config')
    """
    stem = PurePath(model_id).stem if is_path(model_id) else model_id.split("/")[-1]
    label = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:40].strip("-")
    return label if label[:1].isalpha() else f"llm-{label}".rstrip("-")
