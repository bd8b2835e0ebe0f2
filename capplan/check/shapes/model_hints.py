"""Which repository a model at a local path was downloaded from."""

from __future__ import annotations

import re

from capplan.check.nodes import Node
from capplan.check.values import Scope, Value, value_of

_DOWNLOAD = re.compile(
    r"(?:hf|huggingface-cli)\s+download\s+(?:--\S+\s+)*([\w.-]+/[\w.-]+)|snapshot_download\(\s*(?:repo_id\s*=\s*)?['\"]([\w.-]+/[\w.-]+)"
)


def model_hints(pod: Node | None, container: Node, scope: Scope) -> tuple[Value, ...]:
    """Repositories that an init container or the script downloads."""
    found: list[Value] = []
    texts: list[Node] = []
    holders = [*((pod.get("initContainers") or pod).items or () if pod is not None else ())]
    extra = container.get("initContainer")
    for holder in [*holders, *([extra] if extra is not None else []), container]:
        for name in ("command", "args"):
            node = holder.get(name)
            if node is not None:
                texts += [n for n in (node.items or [node]) if n.kind == "scalar"]
    joined = [node for node in texts if len(node.value) < 20_000]
    for node in joined:
        match = _DOWNLOAD.search(node.value)
        if match:
            group = 1 if match[1] else 2
            found.append(value_of(node.text().part(match.start(group), match.end(group)), scope))
    for node in joined:
        if re.fullmatch(r"(?:s3|gs|tos|oss|hf)://\S+", node.value):
            found.append(value_of(node.text(), scope))
    return tuple(found)
