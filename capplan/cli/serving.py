"""The deployment of a simulation: options, then the plan, then the engine's defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from capplan import units
from capplan.cli.calibration import calibration_of
from capplan.cli.inputs import MOST_STAGES, Inputs, on_off
from capplan.errors import CapplanError
from capplan.formulas.number_formats import FORMATS
from capplan.performance.kv_engine import Deployment, KvEngine
from capplan.planner.serving import Serving
from capplan.specs.engine import EngineSpec
from capplan.specs.engine_catalogue import DEFAULT_ENGINE, load_engine, version_within
from capplan.specs.model import ModelSpec
from capplan.specs.plan import Plan
from capplan.specs.plan_engine import FlagValues, VllmEngine

MOST_REPLICAS = 1024
ONE_BATCH = "one batch, dealt evenly; seats and budgets added up"


class ServingOptions(NamedTuple):
    model: str | None
    hardware: str | None
    dtype: str | None
    kv_dtype: str | None
    tp: str | None
    pp: str | None
    engine: str | None
    engine_version: str | None
    gpu_memory: str | None
    gpu_memory_utilization: str | None
    block_size: str | None
    max_model_len: str | None
    max_num_seqs: str | None
    max_num_batched_tokens: str | None
    num_gpu_blocks_override: str | None
    enable_chunked_prefill: bool | None
    enable_prefix_caching: bool | None
    async_scheduling: bool | None
    calibration: str | None = None


def serving_of(
    options: ServingOptions, plan: Plan | None, num_replicas: int, inputs: Inputs
) -> Serving:
    """What is simulated, `num_replicas` of it; defaults are noted as assumptions."""
    flags = plan.engine.settings if plan else VllmEngine().settings
    model = inputs.model(options.model or (plan.model if plan else None))
    hardware = inputs.hardware(options.hardware or (plan.hardware if plan else None))
    degrees = plan.deployment if plan else None
    tp = inputs.given_count("--tp", options.tp) or (degrees.tp if degrees else None)
    if tp is None:
        inputs.assume("tensor parallelism", "1", "--tp")
    engine = _engine(options, plan, flags, model.spec, inputs)
    engine = _with_degrees(engine, options, plan, inputs)
    deployment = Deployment(model.spec, hardware.spec, engine, tp or 1)
    chunked = options.enable_chunked_prefill
    return Serving(
        model_id=model.id,
        hardware_id=hardware.id,
        deployment=deployment,
        num_replicas=num_replicas,
        ep=degrees.ep if degrees else 1,
        num_gpu_blocks=inputs.given_count(
            "--num-gpu-blocks-override", options.num_gpu_blocks_override
        )
        or flags.num_gpu_blocks,
        enable_chunked_prefill=flags.enable_chunked_prefill if chunked is None else chunked,
        long_prefill_token_threshold=flags.long_prefill_token_threshold or 0,
        policy="priority" if flags.scheduling_policy == "priority" else "fcfs",
        scheduler_flags=flags.scheduler,
        calibration=calibration_of(
            inputs, options.calibration, model.id, hardware.id, engine.profile.engine
        ),
    )


def assume_serving(
    options: ServingOptions, plan: Plan | None, serving: Serving, inputs: Inputs
) -> None:
    """What the engine's profile supplied, with the option that changes each."""
    flags = plan.engine.settings if plan else VllmEngine().settings
    config, budget = serving.config, serving.deployment.budget
    if serving.scheduler != "vllm-v1":
        inputs.assume("scheduler", "its documented rules, not trace-checked", "--engine")
    if serving.deployment.engine.dp > 1:
        inputs.assume("copies of the attention", ONE_BATCH, "deployment.dp")
    if options.gpu_memory_utilization is None and flags.gpu_memory_utilization is None:
        what = f"share of memory ({budget.memory_share_option})"
        inputs.assume(what, units.format_fraction(budget.memory_share), "--gpu-memory-utilization")
    if not (options.num_gpu_blocks_override or flags.num_gpu_blocks):
        blocks = f"{config.num_gpu_blocks:,} blocks of {config.block_size} tokens"
        inputs.assume("KV pool", f"{blocks} a replica", "--num-gpu-blocks-override")
    said: tuple[tuple[object, str, str, str], ...] = (
        (options.max_num_seqs or flags.max_num_seqs, "running requests",
         f"{config.max_num_seqs:,}", "--max-num-seqs"),
        (options.max_num_batched_tokens or flags.max_num_batched_tokens, "token budget of a step",
         f"{config.max_num_batched_tokens:,} tokens", "--max-num-batched-tokens"),
        (options.max_model_len or flags.max_model_len, "longest request",
         f"{config.max_model_len:,} tokens", "--max-model-len"),
        (options.block_size or flags.block_size, "KV block",
         f"{config.block_size} tokens", "--block-size"),
        (_said(serving.enable_chunked_prefill), "chunked prefill",
         on_off(config.enable_chunked_prefill), "--[no-]enable-chunked-prefill"),
        (_said(options.enable_prefix_caching, flags.enable_prefix_caching), "prefix caching",
         on_off(config.enable_prefix_caching), "--[no-]enable-prefix-caching"),
        (_said(options.async_scheduling, flags.async_scheduling), "asynchronous scheduling",
         on_off(config.async_scheduling), "--[no-]async-scheduling"),
    )  # fmt: skip
    for given, what, value, option in said:
        if not given:
            inputs.assume(what, value, option)


def _said(*flags: bool | None) -> bool:
    return any(flag is not None for flag in flags)


def _engine(
    options: ServingOptions,
    plan: Plan | None,
    flags: FlagValues,
    model: ModelSpec,
    inputs: Inputs,
) -> KvEngine:
    name = options.engine or (plan.engine.name if plan else None)
    version = options.engine_version or (plan.engine.version if plan else None)
    profile = profile_of(name, version, inputs)
    dtype = inputs.dtype(options.dtype or _weights(flags, model), model)
    share = options.gpu_memory_utilization
    prefixes, asynchronous = options.enable_prefix_caching, options.async_scheduling
    return KvEngine(
        profile=profile,
        version=version_within(profile, version),
        dtype=dtype,
        kv_dtype=inputs.kv_dtype(options.kv_dtype or flags.kv_cache_dtype, model, dtype),
        gpu_memory_bytes=inputs.gpu_memory(options.gpu_memory),
        memory_share=flags.gpu_memory_utilization
        if share is None
        else inputs.share("--gpu-memory-utilization", share, 0.0, ""),
        max_model_len=inputs.given_tokens("--max-model-len", options.max_model_len)
        or flags.max_model_len,
        max_num_seqs=inputs.given_count("--max-num-seqs", options.max_num_seqs)
        or flags.max_num_seqs,
        max_num_batched_tokens=inputs.given_tokens(
            "--max-num-batched-tokens", options.max_num_batched_tokens
        )
        or flags.max_num_batched_tokens,
        block_size=inputs.given_tokens("--block-size", options.block_size) or flags.block_size,
        async_scheduling=flags.async_scheduling if asynchronous is None else asynchronous,
        enable_prefix_caching=flags.enable_prefix_caching if prefixes is None else prefixes,
    )


def profile_of(name: str | None, version: str | None, inputs: Inputs) -> EngineSpec:
    """The engine's rules by version; raises CapplanError for an unknown one."""
    profile = load_engine(name or DEFAULT_ENGINE, version)
    if name is None and version is None:
        inputs.assume("engine", profile.name, "--engine, --engine-version")
    elif version is None:
        inputs.assume("engine version", f"the newest: {profile.name}", "--engine-version")
    return profile


def _with_degrees(
    engine: KvEngine, options: ServingOptions, plan: Plan | None, inputs: Inputs
) -> KvEngine:
    degrees = plan.deployment if plan else None
    pp = inputs.given_count("--pp", options.pp) or (degrees.pp if degrees else 1)
    if pp > MOST_STAGES:
        raise CapplanError(f"--pp: {pp:,} stages are more than {MOST_STAGES}")
    if degrees is None:
        return replace(engine, pp=pp)
    return replace(engine, pp=pp, dp=degrees.dp, dcp=degrees.dcp)


def _weights(flags: FlagValues, model: ModelSpec) -> str | None:
    """The weight format that an engine's own flags amount to; None keeps the stored one.

    `quantization` converts where it names a format; other names (awq, compressed-tensors) say how
    a checkpoint is stored. `dtype` converts weights that are stored wide.
    """
    if flags.quantization is not None:
        return flags.quantization if flags.quantization.lower() in FORMATS else "auto"
    if flags.dtype is None:
        return None
    return flags.dtype if FORMATS[model.stored_format].bits >= 16 else "auto"


def replicas_of(text: str | None, plan: Plan | None, inputs: Inputs) -> int:
    """How many replicas; one where nobody says."""
    if text is None and plan is not None:
        return plan.deployment.replicas
    found = inputs.count("--replicas", text, 1, "replicas")
    if found > MOST_REPLICAS:
        raise CapplanError(f"--replicas: {found:,} are more than {MOST_REPLICAS:,}")
    return found
