"""The formats by name."""

from __future__ import annotations

from capplan.errors import UnsupportedError
from capplan.render.emit import compose, helm, kserve, kubernetes, shell
from capplan.results.launch import Launch

_WRITERS = {
    "vllm": shell.text,
    "sglang": shell.text,
    "trtllm": shell.text,
    "kubernetes": kubernetes.text,
    "helm": helm.text,
    "kserve": kserve.text,
    "compose": compose.text,
}


def launch_text(form: str, launch: Launch) -> str:
    """The launch in a format of `capplan emit`.

    Raises UnsupportedError where a replica takes several nodes: no manifest here holds them
    together.
    """
    if launch.nodes_per_replica > 1 and _WRITERS[form] is not shell.text:
        raise UnsupportedError(
            f"a replica of {launch.gpus_per_replica} GPUs spans nodes of {launch.gpus_per_node}",
            hint=f"--format {launch.engine} prints its commands; in Kubernetes it takes a "
            "LeaderWorkerSet or Ray, which are not written",
        )
    return _WRITERS[form](launch)
