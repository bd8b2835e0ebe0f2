"""An answer of `capplan gpus` as the plan.yaml that every command reads."""

from __future__ import annotations

from typing import Any, NamedTuple

from pydantic import ValidationError

from capplan import units
from capplan.errors import CapplanError
from capplan.planner.emit.options import WIDE_DTYPES
from capplan.planner.question import DEFAULT_BLOCK_SIZE, Question
from capplan.results.gpus import GpusPlan
from capplan.specs.engine_catalogue import load_engine
from capplan.specs.plan import Plan


class AskedFor(NamedTuple):
    """What a question said beside model and accelerator, in the words of a plan.

    ``version`` None is the engine's newest.
    """

    engine: str
    version: str | None
    traffic: dict[str, Any]
    slos: dict[str, Any]
    growth: dict[str, Any] | None = None


def plan_mapping(
    question: Question, answer: GpusPlan, model: str, asked: AskedFor, *, engine: str | None = None
) -> dict[str, Any]:
    """The plan in the order in which people read it; quantities are texts with units.

    ``engine`` None is the one that was asked for, in its version.

    Of a simulated answer it has the settings that were simulated. By bounds alone the sequence cap
    is the largest batch of decodes within the TPOT limit and the pool: more would break the limit,
    and fewer would queue before they have to. Settings of another engine than vLLM
    are those that mean the same; shares of memory do not.
    """
    assert answer.feasible
    deployment: dict[str, Any] = {"replicas": answer.num_replicas, "tp": answer.tp}
    if answer.served_as is not None:
        served = answer.served_as
        degrees = {"pp": served.pp, "dp": served.dp, "ep": served.ep}
        deployment |= {name: degree for name, degree in degrees.items() if degree > 1}
    if answer.num_spare_replicas:
        deployment["spares"] = answer.num_spare_replicas
    if answer.usd_per_gpu_hour is not None:
        deployment["price"] = units.format_money(answer.usd_per_gpu_hour)
    engine = engine or asked.engine
    settings = _ENGINES[engine](question, answer)
    if engine == asked.engine and asked.version is not None:
        settings["version"] = asked.version
    found = {
        "title": f"{answer.num_gpus} x {answer.hardware} for {question.model.name}",
        "model": model,
        "hardware": answer.hardware,
        "deployment": deployment,
        "engine": settings,
        "traffic": asked.traffic,
        "slos": asked.slos,
        "growth": asked.growth,
    }
    return {name: value for name, value in found.items() if value}


def plan_of(mapping: dict[str, Any]) -> Plan:
    """The same as a plan; raises CapplanError where a figure is beyond what plans may hold."""
    try:
        return Plan.model_validate(mapping)
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        raise CapplanError(
            f"no plan holds this answer: {place}: {fault['msg'].removeprefix('Value error, ')}",
            hint="ask for a rate, lengths and limits that a server could have",
        ) from None


def _weights(question: Question) -> dict[str, Any]:
    engine, model = question.engine, question.model
    found: dict[str, Any] = {}
    if engine.dtype is not None and engine.dtype != model.stored_format:
        wide = engine.dtype in WIDE_DTYPES
        found["dtype" if wide else "quantization"] = WIDE_DTYPES.get(engine.dtype, engine.dtype)
    if engine.kv_dtype != model.activation_dtype:
        found["kv_cache_dtype"] = engine.kv_dtype
    return found


def _version(name: str) -> str:
    """Named, so that the same file means the same engine next year."""
    return load_engine(name).versions.last


def _vllm(question: Question, answer: GpusPlan) -> dict[str, Any]:
    engine = question.engine
    found = {"name": "vllm", "version": _version("vllm"), **_weights(question)}
    found["gpu_memory_utilization"] = engine.gpu_memory_utilization
    found |= _caps(question, answer, "max_num_seqs", "max_num_batched_tokens")
    if engine.block_size != DEFAULT_BLOCK_SIZE:
        found["block_size"] = engine.block_size
    found["enable_prefix_caching"] = engine.enable_prefix_caching
    found["enable_chunked_prefill"] = True
    found["async_scheduling"] = engine.async_scheduling
    return found


def _sglang(question: Question, answer: GpusPlan) -> dict[str, Any]:
    engine = question.engine
    found = {"name": "sglang", "version": _version("sglang"), **_weights(question)}
    found |= _caps(question, answer, "max_running_requests", "chunked_prefill_size")
    if not engine.enable_prefix_caching:
        found["disable_radix_cache"] = True
    if not engine.async_scheduling:
        found["disable_overlap_schedule"] = True
    return found


def _tensorrt_llm(question: Question, answer: GpusPlan) -> dict[str, Any]:
    engine = question.engine
    found = {"name": "tensorrt-llm", "version": _version("tensorrt-llm"), **_weights(question)}
    found |= _caps(question, answer, "max_batch_size", "max_num_tokens")
    found["enable_block_reuse"] = engine.enable_prefix_caching
    found["enable_chunked_prefill"] = True
    return found


def _caps(question: Question, answer: GpusPlan, seqs: str, tokens: str) -> dict[str, Any]:
    if answer.served_as is not None:  # what was simulated is what is to be run
        most = answer.served_as.max_num_seqs
    else:
        assert answer.replica is not None
        # A replica whose limits leave room for single prompts only still runs one request.
        most = max(1, answer.replica.max_decode_batch)
    return {seqs: most, tokens: question.engine.max_num_batched_tokens}


_ENGINES = {"vllm": _vllm, "sglang": _sglang, "tensorrt-llm": _tensorrt_llm}
