"""Plain Kubernetes: a Deployment and a Service."""

from __future__ import annotations

from typing import Any

from capplan.render.emit import pod
from capplan.render.emit.yaml_text import Noted, document
from capplan.results.launch import Launch


def text(launch: Launch) -> str:
    """Deployment, Service and, where the engine takes a file, its ConfigMap."""
    parts = [document(_deployment(launch), [f"{launch.title}.", *launch.notes])]
    parts.append(document(_service(launch)))
    if launch.config:
        parts.append(document(pod.config_map(launch)))
    return pod.join(parts)


def _deployment(launch: Launch) -> dict[str, Any]:
    labels = {"app": launch.name}
    spare = f"{launch.num_spares} of them spare" if launch.num_spares else "no spare among them"
    spec = {
        "replicas": Noted(launch.num_replicas, spare),
        # A new pod needs GPUs of its own: on a full cluster an old one has to go first.
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
        },
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                **pod.placement(launch),
                "terminationGracePeriodSeconds": Noted(120, "requests under way finish"),
                "containers": [pod.container(launch, "server")],
                "volumes": pod.volumes(launch),
            },
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": launch.name, "labels": labels},
        "spec": spec,
    }


def _service(launch: Launch) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": launch.name},
        "spec": {
            "selector": {"app": launch.name},
            "ports": [{"name": "http", "port": 80, "targetPort": launch.port}],
        },
    }
