"""KServe: an InferenceService with the engine's own container.

The Hugging Face runtime of KServe brings a vLLM of its own version; a container of ours keeps the
version that was planned with. Shape: KServe's documentation of custom predictors, v1beta1.
"""

from __future__ import annotations

from typing import Any

from capplan.render.emit import pod
from capplan.render.emit.yaml_text import Noted, document
from capplan.results.launch import Launch


def text(launch: Launch) -> str:
    """The InferenceService and, where the engine takes a file, its ConfigMap."""
    parts = [document(_service(launch), [f"{launch.title}.", *launch.notes])]
    if launch.config:
        parts.append(document(pod.config_map(launch)))
    return pod.join(parts)


def _service(launch: Launch) -> dict[str, Any]:
    container = pod.container(launch, "kserve-container")
    container["ports"] = [{"containerPort": launch.port, "protocol": "TCP"}]
    replicas = launch.num_replicas
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {
            "name": launch.name,
            "annotations": {
                "serving.kserve.io/deploymentMode": Noted(
                    "RawDeployment",
                    "Pods under a Deployment, not Knative; KServe 0.16 also calls it Standard.",
                )
            },
        },
        "spec": {
            "predictor": {
                "minReplicas": Noted(replicas, "the plan's count, spares included"),
                "maxReplicas": replicas,
                **pod.placement(launch),
                "containers": [container],
                "volumes": pod.volumes(launch),
            }
        },
    }
