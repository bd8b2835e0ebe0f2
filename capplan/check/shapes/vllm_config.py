"""The file that `vllm serve --config` reads: option names as keys."""

from __future__ import annotations

from dataclasses import replace

from capplan.check.deployment import Deployment, Shm
from capplan.check.documents import File
from capplan.check.flag_tables.vllm import VLLM
from capplan.check.flags import mapping_flags
from capplan.check.nodes import Node
from capplan.check.shapes.containers import Surroundings
from capplan.check.shapes.fields import plain_value
from capplan.check.shapes.synthetic import from_parts
from capplan.check.values import Scope

SHAPE = "vLLM config"
_VLLM_CONFIG = {
    "max-model-len",
    "gpu-memory-utilization",
    "tensor-parallel-size",
    "max-num-seqs",
    "max-num-batched-tokens",
    "enable-prefix-caching",
    "enforce-eager",
}


def read(file: File, root: Node) -> list[Deployment]:
    """The file that `vllm serve --config` reads: option names as keys."""
    keys = {name.replace("_", "-") for name in root.entries()}
    if (
        root.get("kind") is not None
        or len(keys & _VLLM_CONFIG) < 2
        or ("model" not in keys and "tensor-parallel-size" not in keys)
    ):
        return []
    scope = Scope(file.source, overrides=file.overrides)
    known = [name for name in root.entries() if VLLM.find(name)[0] is not None]
    if len(known) < len(root.entries()) / 2:
        return []
    model = plain_value(root.get("model"), scope)
    around = Surroundings(
        shape=SHAPE, name=file.source.file.rpartition("/")[2], model=model, kubernetes=False
    )
    found = from_parts(
        file, root, around, engine="vllm", options=list(mapping_flags(root, VLLM, scope))
    )
    return [replace(found, shm=Shm(None, model))]
