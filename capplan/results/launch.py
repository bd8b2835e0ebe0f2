"""How a planned deployment is started: what every manifest and command line says in its own way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ENGINE_NAMES = {"vllm": "vLLM", "sglang": "SGLang", "tensorrt-llm": "TensorRT-LLM"}


@dataclass(frozen=True, slots=True)
class LaunchOption:
    """One option as the engine's version writes it; ``value`` None is a switch."""

    name: str
    value: str | None = None
    why: str | None = None

    @property
    def word(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value}"


@dataclass(frozen=True, slots=True)
class StartUp:
    """How long a server may take to answer, and what that was reckoned from."""

    weight_bytes: float  # of one replica
    read_bytes_per_s: float
    load_s: float
    engine_s: float  # compilation, profiling, CUDA graphs
    patience_s: float
    period_s: int
    failure_threshold: int


@dataclass(frozen=True, slots=True)
class NodeLabels:
    """Where the pods may run, in the words of cloud providers; empty where nobody knows."""

    accelerator: str
    instance_types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """One deployment: ``num_replicas`` servers, spares included."""

    name: str  # a DNS label
    title: str
    engine: str  # vllm | sglang | tensorrt-llm
    version: str
    image: str
    model: str  # a repository, or a path
    model_is_path: bool
    command: tuple[str, ...]  # the program, up to its options
    options: tuple[LaunchOption, ...]
    config: Mapping[str, Any]  # of the engine's YAML file; empty where it takes none
    config_option: str | None
    port: int
    health_path: str
    num_replicas: int
    num_spares: int
    gpus_per_replica: int
    gpus_per_node: int
    nodes_per_replica: int
    vendor: str  # nvidia | amd
    gpu_resource: str
    num_cpus: int
    memory_bytes: int  # host memory of one replica, its /dev/shm included
    shm_bytes: int
    start_up: StartUp
    nodes: NodeLabels
    notes: tuple[str, ...]  # what was assumed or left to the engine
    # Settings that Helm charts take by names of their own.
    settings: Mapping[str, Any]

    @property
    def engine_name(self) -> str:
        return ENGINE_NAMES[self.engine]
