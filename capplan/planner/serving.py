"""What a simulation runs on: one deployment as scheduler settings, a pool and a step time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from capplan.errors import CapplanError, UnsupportedError
from capplan.performance.calibration import UNCALIBRATED, Calibration
from capplan.performance.engine_families import engine_kernels, engine_overheads
from capplan.performance.kv_engine import Deployment
from capplan.performance.kv_pool import KvPool
from capplan.performance.overheads import EngineOverheads
from capplan.performance.rates import Rates, compute_format, derated_rates
from capplan.performance.step import StepModel
from capplan.planner.parallelism import check_copies, check_tp
from capplan.simulator.config import (
    CURRENT,
    VLLM_0_11,
    EngineRules,
    KvGroup,
    SchedulerConfig,
)
from capplan.simulator.model_step_time import ModelStepTime
from capplan.specs.engine import EngineSpec, version_key
from capplan.specs.engine_performance import engine_performance
from capplan.specs.kv_cache import has_states
from capplan.specs.plan_engine import DEFAULT_SCHEDULER_FLAGS, SchedulerFlags

# From this version on the scheduler follows the current rules; 0.11 stands for those before.
_CURRENT_RULES_SINCE = "0.13"
Scheduler = Literal["vllm-v1", "vllm-v0", "sglang", "tensorrt-llm"]
_GROUP_KINDS: dict[str, Literal["full", "sliding", "mamba"]] = {
    "full": "full",
    "sliding": "sliding",
    "chunked": "sliding",  # as much is kept, and forgotten a little at a time
    "state": "mamba",
}


@dataclass(frozen=True)
class Serving:
    """One model on accelerators under an engine, ready to be simulated.

    Copies of the attention (data-parallel attention) step together and are one replica here: a
    batch over all of them, evenly, with the seats, budgets and blocks of all.

    ``ep`` ranks share the experts; ``num_gpu_blocks`` stands in for what memory holds.
    """

    model_id: str
    hardware_id: str
    deployment: Deployment
    num_replicas: int
    ep: int = 1
    num_gpu_blocks: int | None = None
    enable_chunked_prefill: bool | None = None
    long_prefill_token_threshold: int = 0
    policy: Literal["fcfs", "priority"] = "fcfs"
    scheduler_flags: SchedulerFlags = DEFAULT_SCHEDULER_FLAGS
    calibration: Calibration = UNCALIBRATED  # to one's own servers

    @property
    def num_gpus(self) -> int:
        return self.num_replicas * self.deployment.num_gpus

    @property
    def profile(self) -> EngineSpec:
        return self.deployment.engine.profile

    @cached_property
    def scheduler(self) -> Scheduler:
        """Whose rules are simulated; raises UnsupportedError where none are known."""
        profile = self.profile
        if profile.engine in ("sglang", "tensorrt-llm"):
            return "sglang" if profile.engine == "sglang" else "tensorrt-llm"
        if profile.engine == "vllm":
            return "vllm-v1" if profile.core == "v1" else "vllm-v0"
        raise UnsupportedError(
            f"the scheduler of {profile.name} is not simulated",
            hint="simulated are vLLM, SGLang and TensorRT-LLM: --engine",
        )

    @cached_property
    def rules(self) -> EngineRules:
        """Of vLLM V1; the others have one set of rules."""
        if self.scheduler != "vllm-v1":
            return CURRENT
        newer = version_key(self.profile.versions.first) >= version_key(_CURRENT_RULES_SINCE)
        return CURRENT if newer else VLLM_0_11

    @property
    def is_quick(self) -> bool:
        """Whether the counters cover it; else every request is followed through every step."""
        return self.scheduler != "vllm-v1" or self.config.is_plain

    @cached_property
    def pool(self) -> KvPool:
        return self.deployment.pool

    @cached_property
    def max_model_len(self) -> int:
        """As given, else the model's context, or as much of it as the pool lets the engine start.

        Raises CapplanError where the weights leave no room at all.
        """
        deployment, pool = self.deployment, self.pool
        if self.num_gpu_blocks is not None or deployment.starts:
            return pool.max_model_len
        longest = deployment.longest(pool.max_model_len)
        given = deployment.engine.max_model_len
        if longest < 1:
            raise CapplanError(
                f"{deployment.model.name} leaves no room for KV on {deployment.tp} x "
                f"{self.hardware_id}",
                hint=f"see `capplan kv --model {self.model_id} --hardware {self.hardware_id}`",
            )
        if given is not None:
            raise CapplanError(
                f"the engine does not start with max_model_len {given:,}: the KV pool holds "
                f"{longest:,} tokens of one request",
                hint=f"set max_model_len to {longest} or less",
            )
        return longest

    @cached_property
    def num_blocks(self) -> int:
        """Of all copies of the attention."""
        return (self.num_gpu_blocks or self.pool.num_blocks) * self.deployment.engine.dp

    @cached_property
    def config(self) -> SchedulerConfig:
        """The scheduler's settings; raises CapplanError where there is nothing to schedule on."""
        deployment, settings = self.deployment, self.deployment.settings
        self._check()
        copies = deployment.engine.dp
        states = has_states(deployment.model) and settings.enable_prefix_caching
        return SchedulerConfig(
            num_gpu_blocks=self.num_blocks,
            block_size=self.pool.block_size,
            max_num_seqs=deployment.budget.max_num_seqs * copies,
            max_num_batched_tokens=deployment.budget.max_num_batched_tokens * copies,
            max_model_len=self.max_model_len,
            enable_chunked_prefill=self._chunks_prefill(),
            enable_prefix_caching=settings.enable_prefix_caching,
            async_scheduling=settings.async_scheduling,
            long_prefill_token_threshold=self.long_prefill_token_threshold,
            policy=self.policy,
            kv_groups=self._groups(),
            mamba_cache_mode="align" if states else "none",
            rules=self.rules,
        )

    def _chunks_prefill(self) -> bool:
        """As given, else as the engine does at this context; the old core of vLLM keeps prompts
        whole on ROCm (vllm-project/vllm#11146)."""
        if self.enable_chunked_prefill is not None:
            return self.enable_chunked_prefill
        defaults = self.profile.defaults
        if self.profile.core == "v0" and self.deployment.hardware.vendor == "AMD":
            return defaults.chunked_prefill
        return defaults.chunks_prefill(self.max_model_len)

    def _groups(self) -> tuple[KvGroup, ...]:
        """Empty where one group of full attention holds everything: the quick path."""
        groups = self.pool.layout.groups
        if all(group.layer.kind == "full" for group in groups) and len(groups) == 1:
            return ()
        return tuple(
            KvGroup(
                _GROUP_KINDS[group.layer.kind],
                group.layer.block_size,
                group.layer.reach_tokens or 0,
            )
            for group in groups
        )

    def _check(self) -> None:
        deployment, engine = self.deployment, self.deployment.engine
        check_tp(deployment.model, deployment.hardware, deployment.tp)
        check_copies(deployment.model, deployment.hardware, deployment.tp, engine.dp, self.ep)
        if engine.dcp > 1:
            raise UnsupportedError(
                f"dcp {engine.dcp} is not simulated", hint="tp, pp, dp, ep and replicas are"
            )
        needed = self.pool.num_blocks if self.num_gpu_blocks is None else self.num_gpu_blocks
        if needed < 2 or self.max_model_len < 1:
            raise CapplanError(
                "the KV pool holds no block",
                hint=f"see `capplan kv --model {self.model_id} --hardware {self.hardware_id}`",
            )

    @cached_property
    def overheads(self) -> EngineOverheads:
        """Host time, launches, front end and kernels of the engine's version."""
        profile, config = self.profile, self.config
        version = version_key(self.deployment.engine.version or profile.versions.last)
        asynchronous = config.async_scheduling
        family = engine_performance(profile.engine, version, asynchronous=asynchronous)
        vendor, chunks = self.deployment.hardware.vendor, config.enable_chunked_prefill
        kernels = engine_kernels(family, version, vendor, chunks_prefill=chunks)
        return self.calibration.overheads(replace(engine_overheads(family), kernels=kernels))

    @cached_property
    def rates(self) -> Rates:
        deployment, engine = self.deployment, self.deployment.engine
        model, hardware = deployment.model, deployment.hardware
        weights = engine.dtype or model.stored_format
        compute = compute_format(hardware, weights, model.activation_dtype)
        rates = derated_rates(
            hardware,
            deployment.tp,
            compute,
            engine=self.overheads.kernels,
            dp=engine.dp,
            pp=engine.pp,
            fixed_factor=self.overheads.fixed_factor,
        )
        return self.calibration.rates(rates)

    @cached_property
    def steps(self) -> StepModel:
        deployment, engine = self.deployment, self.deployment.engine
        return StepModel(
            deployment.model,
            deployment.hardware,
            self.rates,
            tp=deployment.tp,
            dtype=engine.dtype,
            kv_dtype=engine.kv_dtype,
            pp=engine.pp,
            dp=engine.dp,
            ep=self.ep,
            engine=self.overheads,
        )

    @cached_property
    def step_time(self) -> ModelStepTime:
        """What the scheduler's clock asks."""
        return ModelStepTime(self.steps)
