"""What all Kubernetes shapes share: the container, its volumes, probes, and where it may run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from capplan.render.emit.yaml_text import Noted, document
from capplan.results.launch import Launch
from capplan.units import GIB

CONFIG_FOLDER = "/etc/engine"
CACHE = "/models"


def quantity(size: float) -> str:
    """`8Gi`: rounded up to whole GiB."""
    return f"{-(-int(size) // GIB)}Gi"


def container(launch: Launch, name: str, *, with_probes: bool = True) -> dict[str, Any]:
    words: list[Any] = [option.word for option in launch.options]
    if launch.config:
        words.append(f"{launch.config_option}={CONFIG_FOLDER}/options.yaml")
    found: dict[str, Any] = {
        "name": name,
        "image": launch.image,
        "command": list(launch.command),
        "args": words,
        "env": environment(),
        "ports": [{"name": "http", "containerPort": launch.port}],
        "resources": resources(launch),
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in _mounts(launch)],
    }
    if with_probes:
        found |= probes(launch)
    return found


def environment() -> list[Any]:
    token = {
        "name": "HF_TOKEN",
        "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token", "optional": True}},
    }
    note = "kubectl create secret generic hf-token --from-literal=token=... (gated models)"
    return [Noted(token, note), {"name": "HF_HOME", "value": CACHE}]


def resources(launch: Launch) -> dict[str, Any]:
    gpus = str(launch.gpus_per_replica)
    return {
        "requests": {
            "cpu": Noted(str(launch.num_cpus), "API server, scheduler, and one a GPU"),
            "memory": Noted(quantity(launch.memory_bytes), "/dev/shm included"),
            launch.gpu_resource: gpus,
        },
        "limits": {"memory": quantity(launch.memory_bytes), launch.gpu_resource: gpus},
    }


def probes(launch: Launch) -> dict[str, Any]:
    start = launch.start_up
    get = {"httpGet": {"path": launch.health_path, "port": launch.port}}
    startup = get | {
        "periodSeconds": start.period_s,
        "failureThreshold": start.failure_threshold,
    }
    return {
        "startupProbe": Noted(startup, f"{start.patience_s:g} s for the model to load"),
        "readinessProbe": get | {"periodSeconds": 5, "failureThreshold": 3},
        "livenessProbe": get | {"periodSeconds": 10, "failureThreshold": 6, "timeoutSeconds": 5},
    }


def _mounts(launch: Launch) -> list[tuple[str, str]]:
    mounts = [("shm", "/dev/shm"), ("models", CACHE)]
    return [*mounts, ("engine", CONFIG_FOLDER)] if launch.config else mounts


def volumes(launch: Launch) -> list[Any]:
    shm = {"medium": "Memory", "sizeLimit": quantity(launch.shm_bytes)}
    room = 1.2 * launch.start_up.weight_bytes
    found: list[Any] = [
        {"name": "shm", "emptyDir": shm},
        Noted(
            {"name": "models", "emptyDir": {"sizeLimit": quantity(room)}},
            "Weights are fetched anew by every pod; a persistentVolumeClaim here loads faster.",
        ),
    ]
    if launch.config:
        found.append({"name": "engine", "configMap": {"name": f"{launch.name}-engine"}})
    return found


def placement(launch: Launch) -> dict[str, Any]:
    """Node affinity by instance type, and the usual taint."""
    taint = {"key": launch.gpu_resource, "operator": "Exists", "effect": "NoSchedule"}
    found: dict[str, Any] = {}
    affinity = node_affinity(launch)
    if affinity is not None:
        found["affinity"] = Noted(affinity, f"Instances with {launch.nodes.accelerator}.")
        found["tolerations"] = [taint]
    else:
        note = (
            f"No instance type with {launch.nodes.accelerator} is on file: add a nodeSelector for "
            "your nodes, such as nvidia.com/gpu.product."
        )
        found["tolerations"] = Noted([taint], note)
    return found


def node_affinity(launch: Launch) -> dict[str, Any] | None:
    if not launch.nodes.instance_types:
        return None
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": node_terms(launch.nodes.instance_types)
            }
        }
    }


def node_terms(instance_types: Sequence[str]) -> list[dict[str, Any]]:
    expression = {
        "key": "node.kubernetes.io/instance-type",
        "operator": "In",
        "values": list(instance_types),
    }
    return [{"matchExpressions": [expression]}]


def config_map(launch: Launch) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{launch.name}-engine"},
        "data": {"options.yaml": document(launch.config)},
    }


def join(documents: Sequence[str]) -> str:
    return "---\n".join(documents)
