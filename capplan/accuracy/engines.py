"""Which engine, of which version, with which scheduler a measured row names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from capplan.accuracy.benchmarks.mlperf_settings import is_mlperf
from capplan.accuracy.measured import MeasuredRun
from capplan.errors import CapplanError, one_line
from capplan.specs.engine import EngineSpec, version_key
from capplan.specs.engine_catalogue import engine_at, load_engine, load_engines

Scheduler = Literal["vllm-v1", "vllm-v0", "sglang", "tensorrt-llm", "tgi", "turbomind"]

# Where neither version nor date is stated.
_USUAL_MONTH = "2025-09"
_VLLM_FLAGS = re.compile(r"--max-num-(batched-tokens|seqs)|--max-model-len|--performance-mode")
# Where a benchmark's scripts say which version they installed: (source, engine, GPU, version).
# LLM-Inference-Bench: vLLM/MI300X/README.md, TensorRT-LLM/GH200/README.MD (0.12), and
# TensorRT-LLM/H100/requirements.txt.
_INSTALLED = (
    ("LLM-Inference-Bench", "vllm", "MI300X", (0, 6, 1)),
    ("LLM-Inference-Bench", "tensorrt-llm", "GH200", (0, 12)),
    ("LLM-Inference-Bench", "tensorrt-llm", "", (0, 11)),
)
# TensorRT-LLM's default became its PyTorch backend with 1.0.
_FIRST_PYTORCH = (0, 21)


@dataclass(frozen=True)
class Engine:
    """``kind`` names the code that ran; ``profile`` has its defaults and memory rule."""

    kind: str  # "vllm", "sglang", "tensorrt-llm", "tgi", "turbomind"
    scheduler: Scheduler
    version: tuple[int, ...] | None
    month: str | None
    profile: EngineSpec
    is_pytorch: bool  # of TensorRT-LLM
    notes: tuple[str, ...]
    variant: str | None = None  # another server around the same engine
    is_vendors_build: bool = False  # with the kernels of the accelerator's maker, tuned by it

    def is_since(self, version: tuple[int, ...], month: str) -> bool:
        """Whether this is ``version`` or later; where none is stated, of ``month`` or later."""
        if self.version is not None:
            return self.version >= version
        return self.month is not None and self.month >= month


def engine_of(run: MeasuredRun) -> Engine:
    """Raises CapplanError where the engine's name is not known."""
    kind = _kind(run)
    notes: list[str] = []
    # NIM counts its own versions, MLPerf prints TensorRT's.
    foreign = "NIM" in run.engine or "TensorRT 1" in run.engine_version
    foreign = foreign or "TensorRT 9" in run.engine_version or run.engine.startswith("CUDA")
    if kind == "sglang" and _VLLM_FLAGS.search(run.columns.get("notes", "")):
        notes.append("flags are vLLM's, SGLang has none such: vLLM of that date")
        kind, foreign = "vllm", True
    version = None if foreign else _version(run.engine_version) or _installed(run, kind)
    month = _month(run.source_date)
    if kind in ("tgi", "turbomind"):
        note = f"{run.engine}: memory rule of an early vLLM"
        profile = engine_at("vllm", "2024-06")
        return Engine(kind, _scheduler(kind, profile), version, month, profile, False, (note,))
    profile = _profile(kind, version, month, notes)
    pytorch = kind == "tensorrt-llm" and not foreign and _is_pytorch(version, month)
    return Engine(
        kind,
        _scheduler(kind, profile),
        version,
        month,
        profile,
        pytorch,
        tuple(notes),
        variant="triton" if "Triton" in run.engine else None,
        is_vendors_build="(ROCm)" in run.engine or is_mlperf(run),
    )


def _kind(run: MeasuredRun) -> str:
    name = f"{run.engine} {run.engine_version}".lower()
    for word, kind in (
        ("tensorrt", "tensorrt-llm"),
        ("trt", "tensorrt-llm"),
        ("nim", "tensorrt-llm"),
        ("sglang", "sglang"),
        ("vllm", "vllm"),
        ("tgi", "tgi"),
        ("text-generation-inference", "tgi"),
        ("lmdeploy", "turbomind"),
        ("turbomind", "turbomind"),
        ("llmboost", "vllm"),
        ("atom", "vllm"),
        ("cuda", "tensorrt-llm"),  # MLPerf logs that print the CUDA version alone
    ):
        if word in name:
            return kind
    raise CapplanError(
        f"unknown engine `{one_line(run.engine, 40)}`",
        hint="known: vLLM, SGLang, TensorRT-LLM, NIM, TGI, LMDeploy",
    )


def _scheduler(kind: str, profile: EngineSpec) -> Scheduler:
    if kind == "vllm":
        return "vllm-v0" if profile.core == "v0" else "vllm-v1"
    if kind in ("tgi", "turbomind", "sglang"):
        return kind  # type: ignore[return-value]
    return "tensorrt-llm"


def _version(text: str) -> tuple[int, ...] | None:
    """Of the engine itself: the cell may name other software too."""
    pattern = r"v?(\d{1,2}\.\d{1,2}(?:\.\d{1,2})?)"
    found = re.match(pattern, text) or re.search(rf"vllm[ =-]{pattern}", text, re.I)
    return version_key(found[1]) if found else None


def _installed(run: MeasuredRun, kind: str) -> tuple[int, ...] | None:
    source = run.columns.get("source", "")
    for word, engine, gpu, version in _INSTALLED:
        if word in source and kind == engine and gpu in run.gpu:
            return version
    return None


def _month(date: str) -> str | None:
    """2025-06-10 -> 2025-06; of a year alone, its middle."""
    found = re.match(r"(\d{4})(?:-(\d{2}))?", date)
    return f"{found[1]}-{found[2] or '06'}" if found else None


def _profile(
    name: str, version: tuple[int, ...] | None, month: str | None, notes: list[str]
) -> EngineSpec:
    families = load_engines(name)
    if version is not None:
        try:
            return load_engine(name, ".".join(str(part) for part in version))
        except CapplanError:
            # Beyond what is known: the family next to it.
            older = version < version_key(families[0].versions.first)
            profile = families[0] if older else families[-1]
            notes.append(
                f"{name} {'.'.join(str(part) for part in version)}: profile of {profile.name}"
            )
            return profile
    if month is None:
        notes.append(f"engine version: that of {_USUAL_MONTH}")
    elif len(families) > 1:
        notes.append(f"engine version: that of {month}")
    return engine_at(name, month or _USUAL_MONTH)


def _is_pytorch(version: tuple[int, ...] | None, month: str | None) -> bool:
    if version is not None:
        return version >= _FIRST_PYTORCH
    return month is not None and month >= "2025-09"
