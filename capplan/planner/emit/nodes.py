"""Which machines hold an accelerator, in the words of `node.kubernetes.io/instance-type`."""

from __future__ import annotations

import re

from capplan.results.launch import NodeLabels
from capplan.specs.hardware import HardwareSpec

# How the managed Kubernetes of a provider writes its own instance names in that label.
_PREFIXES = {"AWS": "", "GCP": "", "Azure": "Standard_", "OCI": ""}
_INSTANCE = re.compile(r"(\w+) (\S+) \((\d+)\)")


def node_labels(hardware: HardwareSpec, hardware_id: str, gpus: int) -> NodeLabels:
    """The instances of the hardware file that hold a replica of ``gpus``."""
    found = []
    for text in hardware.instances:
        match = _INSTANCE.fullmatch(text)
        if match and match[1] in _PREFIXES and int(match[3]) >= gpus:
            found.append(_PREFIXES[match[1]] + match[2])
    return NodeLabels(hardware_id, tuple(found))
