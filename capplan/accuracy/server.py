"""The server of a run: its step times, its KV pool and what lies before the engine."""

from __future__ import annotations

from dataclasses import dataclass, replace

from capplan.accuracy.settings import RunSettings
from capplan.performance.calibration import UNCALIBRATED, Calibration
from capplan.performance.engine_families import engine_kernels, engine_overheads
from capplan.performance.kv_engine import Deployment, KvEngine
from capplan.performance.kv_pool import KvPool
from capplan.performance.overheads import EngineOverheads
from capplan.performance.rates import derated_rates
from capplan.performance.step import StepModel
from capplan.simulator.model_step_time import ModelStepTime
from capplan.specs.engine_performance import engine_performance

_RAISED_SHARE = 0.95  # as vLLM's documents and recipes raise it
_LAST_CPP = (0, 20)  # of TensorRT-LLM: later ones run on PyTorch
_FIRST_MULTI_STEP = (0, 6)  # of vLLM, which prepared every step by itself before
_EXPERT_FAMILIES = {
    "marlin": "marlin",
    "cutlass": "cutlass",
    "triton": "triton",
    "trtllm": "trtllm-gen",
    "flashinfer trtllm": "trtllm-gen",
}


@dataclass(frozen=True)
class Server:
    settings: RunSettings
    model: StepModel
    steps: ModelStepTime
    deployment: Deployment

    def front_end_s(self, prompt_tokens: float) -> float:
        """What a client waits for beside the engine's steps: HTTP, tokenizer, detokenizer."""
        return self.model.engine.ttft_s(prompt_tokens)

    @property
    def intake_s(self) -> float:
        """What of it one process works for each request, others waiting."""
        return self.model.engine.intake_s + self.model.engine.template_s

    def kv_tokens(self, context_tokens: float, longest_tokens: int) -> tuple[float, str | None]:
        """Tokens that the pool holds in requests of this length, over all attention copies.

        A run that took place had room for its longest request, whatever the estimate; the second
        value says so.
        """
        likely = self._held(self.deployment.pool, context_tokens)
        if likely >= longest_tokens:
            return likely, None
        most = self._held(self.deployment.most_pool, context_tokens)
        if most < longest_tokens:
            # All that is known: more than one request, less than all that the weights leave.
            beside = self._held(self.deployment.pool_beside_weights, context_tokens)
            most = max(longest_tokens, (longest_tokens + beside) / 2)
        return most, f"{most:,.0f} tokens: the estimate of {likely:,.0f} would not have run"

    def _held(self, pool: KvPool, context_tokens: float) -> float:
        length = max(1, round(context_tokens))
        if pool.keeps_nothing:
            return float("inf")
        blocks = pool.decode_blocks(length)
        tokens = length * pool.usable_blocks / blocks if blocks else float("inf")
        return tokens * self.settings.dp


# Filled as rows ask for it; specifications are not hashable, their catalogue names are.
_STEPS: dict[tuple[object, ...], tuple[StepModel, ModelStepTime]] = {}


def server_of(settings: RunSettings, calibration: Calibration = UNCALIBRATED) -> Server:
    """Raises CapplanError where the accelerator cannot compute in this format."""
    engine = overheads_of(settings)
    key = (*step_key(settings, engine), calibration)
    steps = _STEPS.get(key)
    if steps is None:
        model = _step_model(settings, engine, calibration)
        steps = _STEPS[key] = model, ModelStepTime(model)
    return Server(settings, *steps, deployment_of(settings))


def step_key(settings: RunSettings, engine: EngineOverheads) -> tuple[object, ...]:
    """What step times depend on, by names: runs that agree in it share them."""
    return (
        settings.model_id,
        settings.hardware_id,
        settings.tp,
        settings.pp,
        settings.dp,
        settings.ep,
        settings.dtype,
        settings.kv_dtype,
        engine.name,
        engine.step_s,
        engine.cuda_graph_max_bs,
        engine.cuda_graph_sizes,
        engine.template_s,
        engine.kernels,
        settings.moe_backend,
    )


def overheads_of(settings: RunSettings) -> EngineOverheads:
    """What the engine takes beside the GPU's kernels, with the run's own settings in it."""
    engine = settings.engine
    version, variant = engine.version, None
    if engine.kind == "tensorrt-llm" and not engine.is_pytorch:
        # Foreign version numbers (NIM's, TensorRT's) say nothing about the backend.
        version, variant = _LAST_CPP, engine.variant
    spec = engine_performance(
        engine.kind, version, engine.month, variant, asynchronous=settings.async_scheduling
    )
    found = engine_overheads(spec)
    kernels = engine_kernels(
        spec,
        engine.version,
        settings.hardware.vendor,
        chunks_prefill=settings.chunked_prefill,
        is_vendors_build=engine.is_vendors_build,
    )
    steps = _steps_of_a_group(settings)
    captured = settings.cuda_graph_max_bs
    return replace(
        found,
        kernels=kernels,
        step_s=found.step_s / steps,
        sequence_s=found.sequence_s / steps,
        template_s=spec.template_s(version) if settings.chat_template else 0.0,
        cuda_graph_max_bs=found.cuda_graph_max_bs if captured is None else captured,
        cuda_graph_sizes=settings.cuda_graph_sizes,
        expert_backends=_expert_families(settings.moe_backend) or found.expert_backends,
    )


def _steps_of_a_group(settings: RunSettings) -> int:
    """Decode steps that vLLM V0 prepares inputs and collects outputs for at once (from 0.6 on)."""
    version = settings.engine.version
    if settings.engine.scheduler != "vllm-v0" or version is None or version < _FIRST_MULTI_STEP:
        return 1
    return settings.num_scheduler_steps


def _expert_families(backend: str) -> dict[str, tuple[str, ...]]:
    """The kernel family that a row's `moe_backend` names; empty where it says nothing."""
    text = backend.lower()
    named = [family for word, family in _EXPERT_FAMILIES.items() if text.startswith(word)]
    return {"default": (named[0],), "weight-only": (named[0],)} if named else {}


def _step_model(
    settings: RunSettings, engine: EngineOverheads, calibration: Calibration
) -> StepModel:
    rates = derated_rates(
        settings.hardware,
        settings.tp,
        dp=settings.dp,
        pp=settings.pp,
        fixed_factor=engine.fixed_factor,
        engine=engine.kernels,
    )
    return StepModel(
        settings.model,
        settings.hardware,
        calibration.rates(rates),
        tp=settings.tp,
        pp=settings.pp,
        dp=settings.dp,
        ep=settings.ep,
        dtype=settings.dtype,
        kv_dtype=settings.kv_dtype,
        engine=calibration.overheads(engine),
    )


def deployment_of(settings: RunSettings) -> Deployment:
    """With its flags; where they are not known and vLLM would not start so, with more memory.

    The pool must hold a request of `max_model_len`. The error message says what to do about it,
    first of all to raise `gpu_memory_utilization`.
    """
    found = _with_share(settings, settings.memory_share)
    raised = settings.flags_unknown and settings.engine.kind == "vllm" and not found.starts
    return _with_share(settings, max(settings.memory_share, _RAISED_SHARE)) if raised else found


def _with_share(settings: RunSettings, memory_share: float) -> Deployment:
    engine = KvEngine(
        profile=settings.engine.profile,
        dtype=settings.dtype,
        kv_dtype=settings.kv_dtype,
        tp=settings.tp,
        pp=settings.pp,
        dp=settings.dp,
        memory_share=memory_share,
        max_model_len=settings.max_model_len,
        max_num_seqs=settings.max_num_seqs,
        max_num_batched_tokens=settings.max_num_batched_tokens,
        async_scheduling=settings.async_scheduling,
    )
    return Deployment(settings.model, settings.hardware, engine, settings.tp)
