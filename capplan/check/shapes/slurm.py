"""What the comments of a Slurm batch script ask for: `#SBATCH --gres=gpu:h100:4`."""

from __future__ import annotations

import re
from dataclasses import replace

from capplan.check.deployment import Deployment, Stated, parse_number
from capplan.check.source import whole
from capplan.check.values import Scope, Value, value_of

_OPTION = re.compile(r"^#SBATCH[ \t]+(--?[\w-]+)(?:=|[ \t]+)?(\S*)", re.M)
# Per node, with the type before the count: `gpu:h100:4`, `h100:4`, `4`.
_GPUS = {"--gres": r"gpu(?::([A-Za-z][\w-]*))?(?::(\d+))?", "--gpus-per-node": r"(?:(\w+):)?(\d+)"}


def by_slurm(deployment: Deployment, scope: Scope) -> Deployment:
    """The one server of a script, with the GPUs and nodes of its job."""
    gpus, pods, hints = deployment.gpus_per_pod, deployment.pods, list(deployment.gpu_hints)
    text = whole(deployment.source)
    for match in _OPTION.finditer(text.chars):
        name, at = match[1], match.start(2)
        value = value_of(text.part(at, match.end(2)), scope)
        if name in ("--nodes", "-N") and pods is None:
            pods = Stated(value, parse_number(value.word))
        elif name in _GPUS and (held := re.fullmatch(_GPUS[name], match[2])):
            if held[1]:
                hints.append(value.part(held.start(1), held.end(1)))
            if gpus is None:
                gpus = _count(value, held)
    return replace(deployment, gpus_per_pod=gpus, pods=pods, gpu_hints=tuple(hints))


def _count(value: Value, held: re.Match[str]) -> Stated:
    if held[2] is None:
        return Stated(value, 1.0)
    return Stated(value.part(held.start(2), held.end(2)), parse_number(held[2]))
