"""The formats by name."""

from __future__ import annotations

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
    """The launch in a format of `capplan emit`."""
    return _WRITERS[form](launch)
