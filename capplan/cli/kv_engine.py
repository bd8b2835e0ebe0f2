"""The engine of `capplan kv`: its profile, flags and degrees; its defaults become assumptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capplan import units
from capplan.cli.inputs import MOST_STAGES, Inputs, on_off
from capplan.errors import CapplanError
from capplan.performance.kv_engine import Deployment, KvEngine
from capplan.planner import question as defaults
from capplan.specs.engine_catalogue import DEFAULT_ENGINE, load_engine
from capplan.specs.kv_cache import has_states, has_windows
from capplan.specs.model import ModelSpec

if TYPE_CHECKING:
    from capplan.cli.kv_log import ReadLog
    from capplan.cli.kv_options import KvOptions


def engine_of(
    options: KvOptions, inputs: Inputs, model: ModelSpec, log: ReadLog | None
) -> KvEngine:
    """Settings as given; what was not is None, the profile's default."""
    profile = load_engine(options.engine or DEFAULT_ENGINE, options.engine_version)
    if options.engine is None:
        inputs.assume("engine", profile.name, "--engine, --engine-version")
    elif options.engine_version is None:
        inputs.assume("engine version", f"the newest: {profile.name}", "--engine-version")
    edition = log.edition(model) if log and options.dtype is None else None
    dtype = None if edition else inputs.dtype(options.dtype, model)
    if edition and log:
        stored = edition.format or f"as stored: {model.stored_format}"
        inputs.assume("weights", f"{stored}, from the log", "--dtype")
    flat = options.reserve is not None
    share = options.gpu_memory_utilization
    return KvEngine(
        profile=profile,
        dtype=dtype,
        kv_dtype=inputs.kv_dtype(options.kv_dtype, model, dtype),
        tp=_tp(options, inputs),
        pp=_degree(inputs, "--pp", options.pp),
        dcp=_degree(inputs, "--dcp", options.dcp),
        dp=_degree(inputs, "--dp-attention", options.dp_attention),
        reserve_bytes=inputs.size("--reserve", options.reserve, 0, "") if flat else None,
        gpu_memory_bytes=inputs.gpu_memory(options.gpu_memory),
        memory_share=inputs.share("--gpu-memory-utilization", share, 0.0, "")
        if share is not None
        else defaults.DEFAULT_GPU_MEMORY_UTILIZATION
        if flat
        else None,
        max_model_len=inputs.given_tokens("--max-model-len", options.max_model_len),
        max_num_seqs=inputs.given_count("--max-num-seqs", options.max_num_seqs),
        max_num_batched_tokens=inputs.given_tokens(
            "--max-num-batched-tokens", options.max_num_batched_tokens
        )
        or (defaults.DEFAULT_MAX_NUM_BATCHED_TOKENS if flat else None),
        block_size=inputs.given_tokens("--block-size", options.block_size),
        async_scheduling=options.async_scheduling,
        enable_prefix_caching=options.enable_prefix_caching,
        edition=edition,
    )


def assume_defaults(options: KvOptions, inputs: Inputs, here: Deployment) -> None:
    """What the profile supplied, with the option that changes each."""
    model, budget, settings = here.model, here.budget, here.settings
    if options.max_model_len is None:
        context = units.format_tokens(model.max_context_tokens)
        inputs.assume("longest request", f"the model's {context} tokens", "--max-model-len")
    if options.gpu_memory_utilization is None:
        what = f"share of memory ({budget.memory_share_option})"
        inputs.assume(what, units.format_fraction(budget.memory_share), "--gpu-memory-utilization")
    if options.max_num_batched_tokens is None:
        shown = f"{units.format_tokens(budget.max_num_batched_tokens)} tokens"
        inputs.assume("token budget of a step", shown, "--max-num-batched-tokens")
    if options.max_num_seqs is None and options.reserve is None:
        inputs.assume("running requests", f"{budget.max_num_seqs:,}", "--max-num-seqs")
    if options.block_size is None:
        inputs.assume("KV block", f"{settings.block_size} tokens", "--block-size")
    if options.async_scheduling is None and has_windows(model):
        option = "--[no-]async-scheduling"
        inputs.assume("asynchronous scheduling", on_off(settings.async_scheduling), option)
    if options.enable_prefix_caching is None and has_states(model):
        option = "--[no-]enable-prefix-caching"
        inputs.assume("prefix caching", on_off(settings.enable_prefix_caching), option)


def _tp(options: KvOptions, inputs: Inputs) -> int | None:
    if options.tp is None:
        inputs.assume("tensor parallelism", "1 (the table shows others)", "--tp")
        return None
    return inputs.count("--tp", options.tp, 1, None)


def _degree(inputs: Inputs, option: str, text: str | None) -> int:
    value = inputs.count(option, text, 1, None)
    if option == "--pp" and value > MOST_STAGES:
        raise CapplanError(f"{option}: {value:,} stages are more than {MOST_STAGES}")
    return value
