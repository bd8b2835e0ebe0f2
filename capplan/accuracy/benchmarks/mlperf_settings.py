"""What submitters of MLPerf set where an ordinary server has its engine's defaults.

From the configurations that are published with the submissions, which partners of an accelerator's
maker take over nearly unchanged: closed/*/configs/{llama2-70b,mixtral-8x7b} of
mlcommons/inference_results_v4.1, closed/*/configs/llama2-70b of v5.0 (H100: two pipeline stages)
and closed/*/configs/SYSTEM/SCENARIO of v5.1. All of NVIDIA's run TensorRT-LLM with MAX_UTILIZATION.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from capplan.accuracy.measured import MeasuredRun
from capplan.specs.hardware import HardwareSpec

_GB = 1e9


@dataclass(frozen=True)
class Tuning:
    """Engine settings of a submission; a batch and a token limit are of one engine's rank."""

    max_num_seqs: int
    max_num_batched_tokens: int
    chunked_prefill: bool
    memory_share: float
    tp: int | None = None  # None: not known
    pp: int = 1
    attention_dp: bool = False
    num_scheduler_steps: int = 1


@dataclass(frozen=True)
class _Row:
    """Settings and the submissions that they are of: patterns of the whole text, least memory."""

    rounds: str
    model: str
    scenario: str
    weights: str
    least_gb: float
    tuning: Tuning


_ANY, _FP4, _ONLINE = r".*", r"(nv)?fp4", r"Server|Interactive"
# Of AMD (its harness for v5.1, the description of llm_config): vLLM V0 with multi-step scheduling.
_AMD = Tuning(1024, 26_624, False, 0.96, num_scheduler_steps=9)
# The first that fits, so larger memories come first.
_NVIDIA = (
    # v4.1: no chunked context yet.
    _Row(r"v4\.1", r"llama-?2-70b", "Server", "fp8", 130, Tuning(896, 4096, False, 0.9, tp=1)),
    _Row(r"v4\.1", r"llama-?2-70b", "Offline", "fp8", 130, Tuning(806, 4096, False, 0.9, tp=1)),
    _Row(r"v4\.1", r"llama-?2-70b", "Server", "fp8", 90, Tuning(640, 4096, False, 0.9, tp=2)),
    _Row(r"v4\.1", r"llama-?2-70b", "Offline", "fp8", 90, Tuning(1300, 4096, False, 0.9, tp=2)),
    _Row(r"v4\.1", r"llama-?2-70b", "Server", "fp8", 70, Tuning(1024, 4096, False, 0.9, tp=2)),
    _Row(r"v4\.1", r"llama-?2-70b", "Offline", "fp8", 70, Tuning(896, 4096, False, 0.9, tp=2)),
    _Row(r"v4\.1", r"llama-?2-70b", _ANY, "fp8", 40, Tuning(1024, 4096, False, 0.9, tp=4)),
    _Row(r"v4\.1", r"mixtral-8x7b", "Server", "fp8", 130, Tuning(3072, 8192, False, 0.9, tp=1)),
    _Row(r"v4\.1", r"mixtral-8x7b", _ANY, "fp8", 130, Tuning(3072, 16_384, False, 0.9, tp=1)),
    _Row(r"v4\.1", r"mixtral-8x7b", "Server", "fp8", 70, Tuning(896, 16_384, False, 0.9, tp=1)),
    _Row(r"v4\.1", r"mixtral-8x7b", _ANY, "fp8", 70, Tuning(896, 8192, False, 0.9, tp=1)),
    _Row(r"v4\.1", r"mixtral-8x7b", _ANY, "fp8", 40, Tuning(512, 16_384, False, 0.9, tp=2)),
    # v5.0 and v5.1.
    _Row(_ANY, r"llama-?2-70b", "Interactive", _FP4, 150, Tuning(768, 768, True, 0.95, tp=1)),
    _Row(_ANY, r"llama-?2-70b", _ANY, _FP4, 150, Tuning(2048, 3584, True, 0.95, tp=1)),
    _Row(_ANY, r"llama-?2-70b", _ANY, _FP4, 90, Tuning(2048, 2048, True, 0.9, tp=1)),
    _Row(_ANY, r"llama-?2-70b", "Interactive", "fp8", 130, Tuning(512, 256, True, 0.9, tp=1)),
    _Row(_ANY, r"llama-?2-70b", _ANY, "fp8", 130, Tuning(2048, 1536, True, 0.9, tp=1)),
    _Row(_ANY, r"llama-?2-70b", _ANY, "fp8", 90, Tuning(640, 1536, True, 0.9, tp=2)),
    _Row(_ANY, r"llama-?2-70b", _ANY, "fp8", 70, Tuning(1024, 1024, True, 0.95, tp=1, pp=2)),
    _Row(_ANY, r"llama-?3\.1-405b", _ANY, _FP4, 270, Tuning(2048, 1536, True, 0.95, tp=2)),
    _Row(_ANY, r"llama-?3\.1-405b", "Server", _FP4, 150, Tuning(256, 2048, True, 0.95, tp=4)),
    _Row(_ANY, r"llama-?3\.1-405b", "Interactive", _FP4, 150, Tuning(256, 1536, True, 0.95, tp=4)),
    _Row(_ANY, r"llama-?3\.1-405b", _ANY, _FP4, 150, Tuning(128, 1536, True, 0.95, tp=2, pp=2)),
    _Row(_ANY, r"llama-?3\.1-405b", _ONLINE, "fp8", 130, Tuning(512, 2560, True, 0.9, tp=8)),
    _Row(_ANY, r"llama-?3\.1-405b", _ANY, "fp8", 130, Tuning(512, 1536, True, 0.95, tp=4, pp=2)),
    _Row(_ANY, r"llama-?3\.1-8b", _ANY, _FP4, 150, Tuning(6000, 12_000, True, 0.9, tp=1)),
    _Row(_ANY, r"llama-?3\.1-8b", _ANY, _ANY, 40, Tuning(2048, 1536, True, 0.9, tp=1)),
    _Row(_ANY, r"mixtral-8x7b", "Server", _FP4, 150, Tuning(6144, 10_240, False, 0.9, tp=1)),
    _Row(_ANY, r"mixtral-8x7b", _ANY, _FP4, 150, Tuning(6144, 14_336, False, 0.95, tp=1)),
    _Row(_ANY, r"mixtral-8x7b", "Server", "fp8", 70, Tuning(3072, 8192, True, 0.9, tp=1)),
    _Row(_ANY, r"mixtral-8x7b", _ANY, "fp8", 70, Tuning(3072, 9216, True, 0.9, tp=1)),
    _Row(
        _ANY, r"deepseek-r1", _ANY, _FP4, 270,
        Tuning(1536, 6656, False, 0.95, tp=8, attention_dp=True),
    ),
    _Row(
        _ANY, r"deepseek-r1", _ONLINE, _FP4, 150,
        Tuning(512, 3456, False, 0.9, tp=8, attention_dp=True),
    ),
    _Row(
        _ANY, r"deepseek-r1", _ANY, _FP4, 150,
        Tuning(512, 4608, False, 0.9, tp=8, attention_dp=True),
    ),
    _Row(
        _ANY, r"deepseek-r1", _ANY, "fp8", 130,
        Tuning(216, 4608, False, 0.6, tp=8, attention_dp=True),
    ),
    # A model that is in none of them: a guess.
    _Row(_ANY, _ANY, _ANY, _ANY, 0, Tuning(2048, 2048, True, 0.9)),
)  # fmt: skip


def is_mlperf(run: MeasuredRun) -> bool:
    """Whether the row is a submission to MLPerf Inference."""
    return round_of(run) is not None


def tuning_of(run: MeasuredRun, engine: str, hardware: HardwareSpec) -> Tuning | None:
    """Of a submission; None for other rows, and where nobody's configuration is known."""
    found = round_of(run)
    if found is None:
        return None
    if (engine, hardware.vendor) == ("vllm", "AMD"):
        return _AMD
    if (engine, hardware.vendor) != ("tensorrt-llm", "NVIDIA"):
        return None
    version, scenario = found
    texts = (version, scenario, run.weight_dtype)
    memory_gb = hardware.visible_memory_bytes / _GB
    for row in _NVIDIA:
        patterns = (row.rounds, row.scenario, row.weights)
        fits = all(map(re.fullmatch, patterns, texts)) and memory_gb >= row.least_gb
        if fits and re.search(row.model, run.model.lower()):
            return row.tuning
    return None


def with_degrees(run: MeasuredRun, tuning: Tuning) -> MeasuredRun:
    """The row with that parallelism, where it states none and its GPUs divide so."""
    gpus = tuning.pp * (tuning.tp or 0)
    if run.tp is not None or tuning.tp is None or (run.num_gpus or 0) % gpus:
        return run
    attention = tuning.attention_dp or run.attention_dp
    return replace(run, tp=tuning.tp, pp=tuning.pp, attention_dp=attention)


def round_of(run: MeasuredRun) -> tuple[str, str] | None:
    """Round and scenario of a submission, out of the notes: MLPerf v5.1 closed Server."""
    found = re.search(r"MLPerf (v\d+\.\d+) \w+ (\w+)", run.columns.get("notes", ""))
    return (found[1], found[2]) if found else None
