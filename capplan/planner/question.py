"""The question: model, accelerator, traffic, limits, and the engine's settings."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.performance.calibration import UNCALIBRATED, Calibration
from capplan.performance.kv_layout import KvSettings
from capplan.performance.kv_pool import KvPool
from capplan.specs.hardware import HardwareSpec
from capplan.specs.model import ModelSpec

# Defaults of the command line and of every assumption, in one place.
DEFAULT_MODEL = "llama-3.1-8b"
DEFAULT_HARDWARE = "a100-sxm-80gb"
DEFAULT_ARRIVAL_RATE_PER_S = 100.0
DEFAULT_PROMPT_TOKENS = 1024
DEFAULT_OUTPUT_TOKENS = 256
DEFAULT_SLO_TTFT_S = 0.4
DEFAULT_SLO_TPOT_S = 0.025
DEFAULT_NUM_SPARES = 1
# 419 unexpected interruptions in 54 days on 16,384 H100: one in 50,700 hours of a GPU (The Llama 3
# Herd of Models, arXiv 2407.21783, section 3.3.4).
DEFAULT_GPU_MTBF_S = 16_384 * 54 * 86_400 / 419
# A pod on another node, its weights loaded anew; hours where a machine must be replaced.
DEFAULT_MTTR_S = 3600.0
DEFAULT_PRICE_TIER = "on-demand"
# A GPU with a model loaded and nothing to do; 60 to 120 W of 400 to 700 W are usual.
DEFAULT_IDLE_POWER_FRACTION = 0.15
# vLLM's own defaults: share of the visible memory, KV block, tokens a step.
DEFAULT_GPU_MEMORY_UTILIZATION = 0.9
DEFAULT_BLOCK_SIZE = 16
DEFAULT_MAX_NUM_BATCHED_TOKENS = 8192
DEFAULT_ASYNC_SCHEDULING = True
DEFAULT_ENABLE_PREFIX_CACHING = True
# Runtime, activations and CUDA graphs of vLLM at 8,192 batched tokens: 0.8 to 7.4 GiB in
# start-up logs of versions 0.11 to 0.19, by model and version (docs/model.md).
DEFAULT_RESERVE_BYTES = 3_500_000_000


@dataclass(frozen=True, slots=True)
class Workload:
    """Traffic at its peak; lengths are means."""

    arrival_rate_per_s: float
    prompt_tokens: int
    output_tokens: int

    @property
    def context_tokens(self) -> int:
        """Tokens of a finished request."""
        return self.prompt_tokens + self.output_tokens

    @property
    def decode_context_tokens(self) -> int:
        """Mean context of a decode step: half of the output is there."""
        return self.prompt_tokens + self.output_tokens // 2


@dataclass(frozen=True, slots=True)
class Limits:
    slo_ttft_s: float
    slo_tpot_s: float


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """``dtype`` None keeps the weights as stored; ``tp`` None searches.

    ``gpu_memory_bytes`` None is what the accelerator's file says that a process sees.
    """

    dtype: str | None
    kv_dtype: str
    tp: int | None
    gpu_memory_utilization: float = DEFAULT_GPU_MEMORY_UTILIZATION
    reserve_bytes: int = DEFAULT_RESERVE_BYTES
    block_size: int = DEFAULT_BLOCK_SIZE
    max_num_batched_tokens: int = DEFAULT_MAX_NUM_BATCHED_TOKENS
    gpu_memory_bytes: int | None = None
    async_scheduling: bool = DEFAULT_ASYNC_SCHEDULING
    enable_prefix_caching: bool = DEFAULT_ENABLE_PREFIX_CACHING

    def budget_bytes_per_gpu(self, hardware: HardwareSpec) -> float:
        """Memory that the engine may take on each GPU: visible x utilisation."""
        visible = self.gpu_memory_bytes or hardware.visible_memory_bytes
        return visible * self.gpu_memory_utilization

    def kv_pool(
        self, model: ModelSpec, available_bytes: float, *, tp: int = 1, kv_dtype: str | None = None
    ) -> KvPool:
        """The blocks of a pool under these settings."""
        settings = KvSettings(
            block_size=self.block_size,
            max_num_batched_tokens=self.max_num_batched_tokens,
            enable_prefix_caching=self.enable_prefix_caching,
            async_scheduling=self.async_scheduling,
        )
        return KvPool(model, kv_dtype or self.kv_dtype, tp, settings, available_bytes)


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """``gpus_per_node`` and ``usd_per_gpu_hour`` None: from the hardware file."""

    num_spares: int = DEFAULT_NUM_SPARES
    gpus_per_node: int | None = None
    usd_per_gpu_hour: float | None = None
    price_tier: str = DEFAULT_PRICE_TIER
    price_factor: float = 1.0
    idle_power_fraction: float = DEFAULT_IDLE_POWER_FRACTION
    replica_output_tokens_per_s: float | None = None  # measured by the user; replaces our model
    availability: float | None = None  # a target: spares follow from it
    mtbf_s: float = DEFAULT_GPU_MTBF_S  # of one GPU and what it needs
    mttr_s: float = DEFAULT_MTTR_S


@dataclass(frozen=True)
class Question:
    model: ModelSpec
    hardware_id: str
    hardware: HardwareSpec
    workload: Workload
    limits: Limits
    engine: EngineSettings
    fleet: FleetSettings
    calibration: Calibration = UNCALIBRATED  # to one's own servers
