"""Values of the vLLM production stack's Helm chart (vllm/vllm-stack 0.1.12).

Settings with names of their own in the chart go there, the others into `extraArgs`. The chart
switches prefix caching off where its value is missing, so it is always written.
"""

from __future__ import annotations

from typing import Any

from capplan.errors import CapplanError
from capplan.render.emit import pod
from capplan.render.emit.yaml_text import Noted, document
from capplan.results.launch import Launch

# vllmConfig's name, the launch's, and the option that it becomes.
_CONFIG = (
    ("tensorParallelSize", "tp", "--tensor-parallel-size"),
    ("dtype", "dtype", "--dtype"),
    ("maxModelLen", "max_model_len", "--max-model-len"),
    ("maxNumSeqs", "max_num_seqs", "--max-num-seqs"),
    ("gpuMemoryUtilization", "gpu_memory_utilization", "--gpu-memory-utilization"),
)
# The chart writes these itself.
_OWN = {"--host", "--port", *(option for _, _, option in _CONFIG)}


def text(launch: Launch) -> str:
    """Raises CapplanError for engines that the chart does not start."""
    if launch.engine != "vllm":
        raise CapplanError(
            f"the production stack's chart starts vLLM, not {launch.engine_name}",
            hint="emit kubernetes or kserve, or plan for vLLM",
        )
    notes = [
        f"{launch.title}.",
        "helm repo add vllm https://vllm-project.github.io/production-stack && "
        "helm install vllm vllm/vllm-stack -f FILE",
        *launch.notes,
    ]
    return document({"servingEngineSpec": _engine(launch)}, notes)


def _engine(launch: Launch) -> dict[str, Any]:
    start = launch.start_up
    get = {"httpGet": {"path": launch.health_path, "port": launch.port}}
    probe = {
        "initialDelaySeconds": 15,
        "periodSeconds": start.period_s,
        "failureThreshold": start.failure_threshold,
    }
    return {
        "runtimeClassName": Noted("", "`nvidia` where your nodes need that class"),
        "modelSpec": [_model(launch)],
        "startupProbe": Noted(probe | get, f"{start.patience_s:g} s for the model to load"),
    }


def _model(launch: Launch) -> dict[str, Any]:
    repository, _, tag = launch.image.rpartition(":")
    spare = f"{launch.num_spares} of them spare" if launch.num_spares else "no spare among them"
    memory = pod.quantity(launch.memory_bytes)
    room = pod.quantity(1.2 * launch.start_up.weight_bytes)
    found: dict[str, Any] = {
        "name": launch.name,
        "repository": repository,
        "tag": tag,
        "modelURL": launch.model,
        "replicaCount": Noted(launch.num_replicas, spare),
        "requestCPU": launch.num_cpus,
        "requestMemory": memory,
        "limitMemory": memory,
        "requestGPU": launch.gpus_per_replica,
    }
    if launch.vendor != "nvidia":
        found["requestGPUType"] = launch.gpu_resource
    found |= {
        "extraVolumes": Noted(
            [{"name": "models", "emptyDir": {"sizeLimit": room}}],
            "Every pod fetches the weights anew, into its /tmp; pvcStorage claims a volume.",
        ),
        "extraVolumeMounts": [{"name": "models", "mountPath": "/tmp"}],
        "shmSize": pod.quantity(launch.shm_bytes),
        "vllmConfig": _config(launch),
        "hf_token": {"secretName": "hf-token", "secretKey": "token"},
    }
    if launch.nodes.instance_types:
        terms = pod.node_terms(launch.nodes.instance_types)
        found["nodeSelectorTerms"] = Noted(terms, f"Instances with {launch.nodes.accelerator}.")
    return found


def _config(launch: Launch) -> dict[str, Any]:
    settings = launch.settings
    caching, chunks = settings["enable_prefix_caching"], settings["enable_chunked_prefill"]
    found: dict[str, Any] = {"enablePrefixCaching": caching is not False}
    if chunks is not None:
        found["enableChunkedPrefill"] = chunks
    for name, key, _ in _CONFIG:
        if settings[key] is not None:
            found[name] = settings[key]
    written = _OWN | ({"--enable-chunked-prefill", "--no-enable-chunked-prefill"})
    written |= {"--enable-prefix-caching", "--no-enable-prefix-caching"}
    extra = [option.word for option in launch.options if option.name not in written]
    return found | {"extraArgs": extra} if extra else found
