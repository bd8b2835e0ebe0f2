"""What a run's settings were: as the row states them, else as the engine has them by default."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

from capplan.accuracy.engines import Engine, engine_of
from capplan.accuracy.measured import MeasuredRun
from capplan.accuracy.names import NamedModel, hardware_of, model_of
from capplan.errors import UnsupportedError
from capplan.formulas.number_formats import FORMATS
from capplan.results.assumptions import Assumption
from capplan.specs.editions import WeightEdition
from capplan.specs.hardware import HardwareSpec
from capplan.specs.mixers import Attention
from capplan.specs.model import ModelSpec
from capplan.specs.tensors import num_params_total, weight_bytes_per_gpu

T = TypeVar("T")

# trtllm-bench sets both from heuristics that its documents do not print.
_BENCH_MAX_NUM_SEQS = 4096
_BENCH_MAX_NUM_TOKENS = 8192
# Text Generation Inference: --max-batch-prefill-tokens.
_TGI_PREFILL_TOKENS = 4096
# Of an unknown degree, the least at which weights leave this share of memory for the rest.
_MOST_WEIGHTS_FRACTION = 0.65
_MOST_LOADED = 0.92  # with anything left to run in
_DEGREES = (1, 2, 4, 8, 16)
_TRTLLM_FREE_FRACTION = 0.9
_AUTO_READS_CHECKPOINT = (0, 13)  # by its source; older ones not looked at


@dataclass(frozen=True)
class RunSettings:
    """Everything about the server that a prediction needs; ``assumptions`` lists the unstated.

    A replica is ``tp`` x ``pp`` x ``dp`` GPUs; ``dp`` copies of the attention share the experts,
    which ``ep`` ranks divide among them. ``num_replicas`` of them share the load.
    """

    model: ModelSpec
    model_id: str
    dtype: str | None
    hardware: HardwareSpec
    hardware_id: str
    engine: Engine
    tp: int
    pp: int
    dp: int
    ep: int
    num_replicas: int
    kv_dtype: str
    memory_share: float
    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    flags_unknown: bool
    chunked_prefill: bool
    async_scheduling: bool
    scheduler_recv_interval: int
    batch_wait_timeout_iters: int
    batch_wait_max_tokens_ratio: float
    cuda_graph_max_bs: int | None
    moe_backend: str
    assumptions: tuple[Assumption, ...]

    @property
    def edition(self) -> WeightEdition:
        return WeightEdition(self.dtype, kernel=self.engine.profile.mxfp4_kernel)


def settings_of(run: MeasuredRun) -> RunSettings:
    """Raises CapplanError where model, GPU or engine are not known, or nothing fits."""
    return _Settings(run).settings()


class _Settings:
    """Reads settings one by one; what the row does not state becomes an assumption."""

    def __init__(self, run: MeasuredRun) -> None:
        self.run = run
        self.named: NamedModel = model_of(run)
        found = hardware_of(run)
        self.hardware, self.hardware_id = found.spec, found.id
        self.engine = engine_of(run)
        self.profile = self.engine.profile
        self.assumptions: list[Assumption] = []
        for note in (*self.named.notes, *self.engine.notes):
            self.assume("row", note, "the row")

    def assume(self, what: str, value: str, column: str) -> None:
        self.assumptions.append(Assumption(what, value, column))

    def or_default(self, column: str, given: T | None, default: T) -> T:
        if given is not None:
            return given
        self.assume(column.replace("_", " "), str(default), column)
        return default

    def settings(self) -> RunSettings:
        run, engine = self.run, self.engine
        tp, pp, dp, ep, replicas = self.degrees()
        length = run.max_model_len or self.named.spec.max_context_tokens
        chunked = self.chunked(length)
        tokens = self.num_batched_tokens(chunked, length)
        share = self.memory_share(tp * dp)
        return RunSettings(
            model=self.model(),
            model_id=self.named.found.id,
            dtype=self.dtype(),
            hardware=self.hardware,
            hardware_id=self.hardware_id,
            engine=engine,
            tp=tp,
            pp=pp,
            dp=dp,
            ep=ep,
            num_replicas=replicas,
            kv_dtype=self.kv_dtype(),
            memory_share=share,
            max_num_seqs=self.num_seqs(),
            max_num_batched_tokens=tokens,
            max_model_len=length,
            flags_unknown=self.flags_unknown(),
            chunked_prefill=chunked,
            async_scheduling=self.asynchronous(),
            scheduler_recv_interval=self.recv_interval(),
            batch_wait_timeout_iters=run.batch_wait_timeout_iters or 0,
            batch_wait_max_tokens_ratio=run.batch_wait_max_tokens_ratio or 0.0,
            cuda_graph_max_bs=run.cuda_graph_max_bs,
            moe_backend=run.moe_backend,
            assumptions=tuple(self.assumptions),
        )

    def dtype(self) -> str | None:
        """Engines run formats that the accelerator cannot compute in as weight-only (Marlin)."""
        stored = self.named.dtype or self.named.spec.stored_format
        narrow = stored.split("-")[0]
        compute = FORMATS[stored].compute
        if self.run.weight_dtype == "w8a16":
            return "int8-weight-only"
        peaks = self.hardware.compute.peak
        other = {"bf16": "fp16", "fp16": "bf16"}.get(stored)
        if other is not None and stored not in peaks and other in peaks:
            self.assume("weights", f"in {other}: no {stored} tensor cores", "gpu")
            return other
        if compute is None or compute in peaks or FORMATS[stored].bits >= 16:
            return self.named.dtype
        if f"{narrow}-weight-only" not in FORMATS:
            return self.named.dtype
        self.assume("weights", f"{narrow} expanded to 16 bits: no such tensor cores", "gpu")
        return f"{narrow}-weight-only"

    def model(self) -> ModelSpec:
        """TensorRT-LLM's C++ backend attends to everything unless `max_attention_window` is given.

        Its documentation (gpt_attention, sliding window attention): the window is an option of
        the runtime, not read out of the model.
        """
        spec = self.named.spec
        if self.engine.kind != "tensorrt-llm" or self.engine.is_pytorch:
            return spec
        whole = {
            name: mixer.model_copy(update={"window": None})
            for name, mixer in spec.mixers.items()
            if isinstance(mixer, Attention) and mixer.window and not mixer.chunked
        }
        if len(whole) != len(spec.mixers):  # layers of several kinds are told apart
            return spec
        self.assume("attention", "over the whole context: no window was given", "engine")
        return spec.model_copy(update={"mixers": whole})

    def gpu_class(self) -> tuple[int, int]:
        row = self.profile.gpu_class(self.hardware.visible_memory_bytes, self.hardware.name)
        return row.max_num_seqs, row.max_num_batched_tokens

    def degrees(self) -> tuple[int, int, int, int, int]:
        """tp, pp, dp, ep and the number of replicas."""
        run, gpus, pp = self.run, self.run.num_gpus or 1, self.run.pp or 1
        pp = pp if gpus % pp == 0 else 1
        moe = any(ffn.kind == "moe" for ffn in self.named.spec.ffns.values())
        if run.attention_dp and moe and gpus > 1:
            ranks = run.tp or gpus // pp
            return 1, pp, ranks, run.ep or ranks, max(1, gpus // (ranks * pp))
        tp = run.tp or (self.least_tp(gpus) if run.ep is None else gpus // pp)
        if run.tp is None:
            self.assume("tensor parallel", f"{tp}: the least that fits", "tp")
        elif not self.fits(tp * pp, 1.0):
            # The run took place: the row counts its GPUs wrongly.
            tp = next((more for more in _DEGREES if self.fits(more * pp, _MOST_LOADED)), tp)
            gpus = max(gpus, tp * pp)
            self.assume("GPUs", f"{tp}, as the weights do not fit {run.tp}", "tp")
        if run.num_gpus is None:
            self.assume("GPUs", str(tp * pp), "num_gpus")
            gpus = tp * pp
        ep = min(run.ep or 1, tp) if moe else 1
        return tp, pp, 1, ep, max(1, gpus // (tp * pp))

    def least_tp(self, gpus: int) -> int:
        """Powers of two up to what the run had; beyond it where the weights cannot fit at all."""
        domain = min(gpus, self.hardware.node.gpus if gpus > self.hardware.node.gpus else gpus)
        degrees = [tp for tp in _DEGREES if tp <= domain and gpus % tp == 0]
        for tp in degrees:
            if self.fits(tp, _MOST_WEIGHTS_FRACTION):
                return tp
        if self.fits(degrees[-1], _MOST_LOADED):
            return degrees[-1]
        for tp in _DEGREES:
            if tp > degrees[-1] and self.fits(tp, _MOST_WEIGHTS_FRACTION):
                self.assume("GPUs", f"{tp}, as the weights do not fit {gpus}", "num_gpus")
                return tp
        raise UnsupportedError(
            f"{num_params_total(self.named.spec) / 1e9:.0f} B parameters do not fit {gpus} x "
            f"{self.hardware.name}"
        )

    def fits(self, num_shards: int, fraction: float) -> bool:
        """Whether weights in so many parts take at most this fraction of a GPU."""
        memory = self.hardware.visible_memory_bytes
        size = weight_bytes_per_gpu(self.named.spec, num_shards, self.named.dtype)
        return size <= fraction * memory

    def kv_dtype(self) -> str:
        text, activations = self.run.kv_dtype, self.named.spec.activation_dtype
        if "fp8" in text and "not fp8" not in text:
            return "fp8"
        if text.startswith("auto") and self.stores_kv_scales():
            self.assume("kv dtype", "fp8, as `auto` reads it out of ModelOpt's NVFP4", "kv_dtype")
            return "fp8"
        if text:
            return activations if activations in ("bf16", "fp16") else "bf16"
        name = self.run.model.lower()
        narrow = self.named.dtype or self.named.spec.stored_format
        scaled = self.engine.kind == "tensorrt-llm" and narrow.split("-")[0] in ("fp8", "nvfp4")
        published = self.run.model.endswith("-FP8") and not name.startswith("nvidia/")
        if (scaled and not published) or name.endswith("-kv"):
            # NVIDIA's FP8 and FP4 checkpoints, and builds with use_fp8, carry FP8 KV scales.
            return self.or_default("kv_dtype", None, "fp8")
        wide = activations if activations in ("bf16", "fp16") else "bf16"
        return self.or_default("kv_dtype", None, wide)

    def stores_kv_scales(self) -> bool:
        """Later vLLM resolves `auto` by the checkpoint's `kv_cache_quant_algo`.

        vllm/utils/torch_utils.py, resolve_kv_cache_dtype_string; ModelOpt's NVFP4 says FP8.
        """
        narrow = self.named.dtype or self.named.spec.stored_format
        version = self.engine.version
        later = version is not None and version >= _AUTO_READS_CHECKPOINT
        return self.engine.kind == "vllm" and later and narrow.split("-")[0] == "nvfp4"

    def memory_share(self, gpus: int) -> float:
        default = self.profile.memory_share(gpus)
        if self.engine.kind == "tensorrt-llm":
            default = _TRTLLM_FREE_FRACTION
        return self.or_default("gpu_memory_fraction", self.run.gpu_memory_fraction, default)

    def flags_unknown(self) -> bool:
        """Whether the row's share of memory and longest request are only the engine's defaults."""
        guessed = self.run.columns.get("defaulted_fields", "").startswith("all")
        return self.run.max_model_len is None and (guessed or self.run.gpu_memory_fraction is None)

    def chunked(self, length: int) -> bool:
        if self.engine.scheduler in ("tensorrt-llm", "tgi", "turbomind"):
            return bool(self.run.chunked_prefill) and self.engine.kind == "tensorrt-llm"
        default = self.profile.defaults.chunks(length)
        return self.or_default("chunked_prefill", self.run.chunked_prefill, default)

    def asynchronous(self) -> bool:
        default = self.profile.defaults.async_scheduling
        if self.engine.kind == "tensorrt-llm":
            default = self.engine.is_pytorch  # the overlap scheduler of that backend
        return self.or_default("async_scheduling", self.run.async_scheduling, default)

    def num_seqs(self) -> int:
        default = self.gpu_class()[0]
        if self.engine.kind == "tensorrt-llm":
            default = _BENCH_MAX_NUM_SEQS if self.run.workload == "offline" else 2048
        return self.or_default("max_num_seqs", self.run.max_num_seqs, default)

    def num_batched_tokens(self, chunked: bool, length: int) -> int:
        default = self.gpu_class()[1]
        if self.engine.kind == "tensorrt-llm":
            default = _BENCH_MAX_NUM_TOKENS
        elif self.engine.kind == "tgi":
            default = _TGI_PREFILL_TOKENS
        elif self.engine.scheduler == "vllm-v0" and not chunked:
            default = max(length, 2048)
        tokens = self.or_default("max_num_batched_tokens", self.run.max_num_batched_tokens, default)
        if not chunked:  # whole prompts only: the longest must fit
            tokens = max(tokens, math.ceil(self.run.isl or 0))
        return tokens

    def recv_interval(self) -> int:
        """SGLang reads new requests every so many decode steps."""
        if self.engine.kind != "sglang":
            return 1
        return self.or_default("scheduler_recv_interval", self.run.scheduler_recv_interval, 1)
