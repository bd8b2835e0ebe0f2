"""What a run's settings were: as the row states them, else as the engine has them by default."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TypeVar

from capplan.accuracy.benchmarks.aiconfigurator import recipe_of
from capplan.accuracy.benchmarks.mlperf_settings import tuning_of, with_degrees
from capplan.accuracy.benchmarks.trtllm_bench import BenchLimits, bench_limits
from capplan.accuracy.endpoint import renders_template
from capplan.accuracy.engines import Engine, engine_of
from capplan.accuracy.in_process import in_process_limits
from capplan.accuracy.measured import MeasuredRun
from capplan.accuracy.names import NamedModel, hardware_of, model_of
from capplan.accuracy.parallelism import Degrees, Parallelism
from capplan.formulas.number_formats import FORMATS
from capplan.results.assumptions import Assumption
from capplan.specs.hardware import HardwareSpec
from capplan.specs.kv_cache import kv_bytes_per_token
from capplan.specs.mixers import Attention
from capplan.specs.model import ModelSpec
from capplan.specs.tensors import weight_bytes_per_gpu

T = TypeVar("T")

# Defaults of TensorRT-LLM's servers: BuildConfig.max_batch_size and max_num_tokens.
_SERVER_MAX_BATCH_SIZE, _SERVER_MAX_NUM_TOKENS = 2048, 8192
# Text Generation Inference: --max-batch-prefill-tokens.
_TGI_PREFILL_TOKENS = 4096
_TGI_NUM_SEQS = 4096  # --max-batch-size has no default: memory alone bounds the batch
# vLLM V0: chunks of 512 tokens up to vllm-project/vllm#10544, and none on ROCm without being asked
# for from vllm-project/vllm#11146 on; both are of 0.6.5.
_V0_CHUNK_TOKENS = 512
_V0_CHANGED = (0, 6, 5), "2024-12"
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
    reserves_output: bool  # of an admitted request all blocks that its answer may need
    chunked_prefill: bool
    async_scheduling: bool
    scheduler_recv_interval: int
    enable_mixed_chunk: bool
    num_scheduler_steps: int
    balances_prompts: bool  # over the ranks of TensorRT-LLM's attention data parallelism
    batch_wait_timeout_iters: int
    batch_wait_max_tokens_ratio: float
    cuda_graph_max_bs: int | None
    cuda_graph_sizes: tuple[int, ...]  # unpadded; empty: all up to the largest
    moe_backend: str
    chat_template: bool  # rendered for each request
    assumptions: tuple[Assumption, ...]


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
        self.recipe = recipe_of(run)
        self.assumptions: list[Assumption] = []
        self.tuned = tuning_of(run, self.engine.kind, self.hardware)
        if self.tuned is not None:
            self.run = with_degrees(run, self.tuned)
        if self.run is not run:
            what = f"tp {self.run.tp}, pp {self.run.pp}, as submitters of its round configure it"
            self.assume("parallelism", what, "tp")
        for note in (*self.named.notes, *self.engine.notes, *self.recipe.notes):
            self.assume("row", note, "the row")
        if self.hardware.vendor == "AMD" and self.engine.scheduler == "vllm-v0":
            # AMD's containers have tuned kernels; its rows seldom say that they ran in one.
            own = self.engine.version is not None and not self.engine.is_vendors_build
            self.assume("kernels", "of vLLM's own build" if own else "of AMD's build", "engine")

    def assume(self, what: str, value: str, column: str) -> None:
        self.assumptions.append(Assumption(what, value, column))

    def or_default(self, column: str, given: T | None, default: T) -> T:
        if given is not None:
            return given
        self.assume(column.replace("_", " "), str(default), column)
        return default

    def settings(self) -> RunSettings:
        run, engine = self.run, self.engine
        degrees = Parallelism(run, self.named, self.hardware, self.assume).degrees()
        length = run.max_model_len or self.named.spec.max_context_tokens
        chunked = self.chunked(length)
        kv_dtype = self.kv_dtype()
        bench = self.bench_limits(degrees, kv_dtype)
        tokens = self.num_batched_tokens(chunked, length, bench)
        share = self.memory_share(degrees)
        return RunSettings(
            model=self.model(),
            model_id=self.named.found.id,
            dtype=self.dtype(),
            hardware=self.hardware,
            hardware_id=self.hardware_id,
            engine=engine,
            tp=degrees.tp,
            pp=degrees.pp,
            dp=degrees.dp,
            ep=degrees.ep,
            num_replicas=degrees.num_replicas,
            kv_dtype=kv_dtype,
            memory_share=share,
            max_num_seqs=self.num_seqs(bench),
            max_num_batched_tokens=tokens,
            max_model_len=length,
            flags_unknown=self.flags_unknown(),
            reserves_output=self.reserves_output(),
            chunked_prefill=chunked,
            async_scheduling=self.asynchronous(),
            scheduler_recv_interval=self.recv_interval(),
            enable_mixed_chunk=self.recipe.enable_mixed_chunk,
            num_scheduler_steps=self.scheduler_steps(),
            balances_prompts=self.balances_prompts(),
            batch_wait_timeout_iters=run.batch_wait_timeout_iters or 0,
            batch_wait_max_tokens_ratio=run.batch_wait_max_tokens_ratio or 0.0,
            cuda_graph_max_bs=run.cuda_graph_max_bs,
            cuda_graph_sizes=self.recipe.cuda_graph_sizes,
            moe_backend=run.moe_backend,
            chat_template=renders_template(run, self.engine, self.named.spec, self.assume),
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
        server = row.max_num_seqs, row.max_num_batched_tokens
        return in_process_limits(self.run, self.engine, self.hardware, server)

    def kv_dtype(self) -> str:
        text, activations = self.run.kv_dtype, self.named.spec.activation_dtype
        wide = activations if activations in ("bf16", "fp16") else "bf16"
        if "fp8" in text and "not fp8" not in text:
            return "fp8"
        if text.startswith("auto") and self.stores_kv_scales():
            self.assume("kv dtype", "fp8, as `auto` reads it out of ModelOpt's NVFP4", "kv_dtype")
            return "fp8"
        if text:
            return wide
        name = self.run.model.lower()
        narrow = self.named.dtype or self.named.spec.stored_format
        scaled = self.engine.kind == "tensorrt-llm" and narrow.split("-")[0] in ("fp8", "nvfp4")
        published = self.run.model.endswith("-FP8") and not name.startswith("nvidia/")
        if (scaled and not published) or name.endswith("-kv"):
            # NVIDIA's FP8 and FP4 checkpoints, and builds with use_fp8, carry FP8 KV scales.
            return self.or_default("kv_dtype", None, "fp8")
        return self.or_default("kv_dtype", None, wide)

    def stores_kv_scales(self) -> bool:
        """Later vLLM resolves `auto` by the checkpoint's `kv_cache_quant_algo`.

        vllm/utils/torch_utils.py, resolve_kv_cache_dtype_string; ModelOpt's NVFP4 says FP8.
        """
        narrow = self.named.dtype or self.named.spec.stored_format
        version = self.engine.version
        later = version is not None and version >= _AUTO_READS_CHECKPOINT
        return self.engine.kind == "vllm" and later and narrow.split("-")[0] == "nvfp4"

    def memory_share(self, degrees: Degrees) -> float:
        gpus, tokens = degrees.tp * degrees.pp * degrees.dp, self.run.max_num_batched_tokens
        memory, name = self.hardware.visible_memory_bytes, self.hardware.name
        default = self.profile.share_of(memory, name, gpus, degrees.dp, tokens)
        if self.engine.kind == "tensorrt-llm":
            default = self.recipe.memory_share or _TRTLLM_FREE_FRACTION
        if self.tuned is not None:
            default = self.tuned.memory_share
        return self.or_default("gpu_memory_fraction", self.run.gpu_memory_fraction, default)

    def flags_unknown(self) -> bool:
        """Whether the row's share of memory and longest request are only the engine's defaults."""
        guessed = self.run.columns.get("defaulted_fields", "").startswith("all")
        return self.run.max_model_len is None and (guessed or self.run.gpu_memory_fraction is None)

    def reserves_output(self) -> bool:
        """TGI, and TensorRT-LLM but for submissions to MLPerf, which run MAX_UTILIZATION."""
        scheduler = self.engine.scheduler
        return scheduler == "tgi" or (scheduler == "tensorrt-llm" and self.tuned is None)

    def scheduler_steps(self) -> int:
        """Decode steps to one run of the scheduler (vLLM V0's --num-scheduler-steps)."""
        noted = re.search(r"num-scheduler-steps? (\d+)", self.run.columns.get("settings_notes", ""))
        if noted or self.tuned is None:
            return int(noted[1]) if noted else 1
        steps = self.tuned.num_scheduler_steps
        if steps > 1:
            self.assume("num scheduler steps", str(steps), "settings_notes")
        return steps

    def chunked(self, length: int) -> bool:
        if self.tuned is not None:
            default = self.tuned.chunked_prefill
            return self.or_default("chunked_prefill", self.run.chunked_prefill, default)
        if self.engine.scheduler in ("tensorrt-llm", "tgi", "turbomind"):
            return bool(self.run.chunked_prefill) and self.engine.kind == "tensorrt-llm"
        default = self.profile.defaults.chunks_prefill(length)
        if self.engine.scheduler == "vllm-v0" and self.hardware.vendor == "AMD":
            default = default and not self.engine.is_since(*_V0_CHANGED)
        return self.or_default("chunked_prefill", self.run.chunked_prefill, default)

    def asynchronous(self) -> bool:
        default = self.profile.defaults.async_scheduling
        if self.engine.kind == "tensorrt-llm":
            default = self.engine.is_pytorch  # the overlap scheduler of that backend
        return self.or_default("async_scheduling", self.run.async_scheduling, default)

    def num_seqs(self, bench: BenchLimits | None) -> int:
        default = self.gpu_class()[0]
        if self.engine.kind == "tensorrt-llm":
            default = bench.max_batch_size if bench else _SERVER_MAX_BATCH_SIZE
        if self.engine.kind == "tgi":
            default = _TGI_NUM_SEQS
        if self.tuned is not None:
            default = self.tuned.max_num_seqs
        return self.or_default("max_num_seqs", self.run.max_num_seqs, default)

    def num_batched_tokens(self, chunked: bool, length: int, bench: BenchLimits | None) -> int:
        default = self.gpu_class()[1]
        if self.engine.kind == "tensorrt-llm":
            usual = bench.max_num_tokens if bench else _SERVER_MAX_NUM_TOKENS
            default = self.recipe.max_num_tokens or usual
        elif self.engine.kind == "tgi":
            default = _TGI_PREFILL_TOKENS
        elif self.engine.scheduler == "vllm-v0" and not chunked:
            default = max(length, 2048)
        elif self.engine.scheduler == "vllm-v0" and not self.engine.is_since(*_V0_CHANGED):
            default = _V0_CHUNK_TOKENS
        if self.tuned is not None:
            default = self.tuned.max_num_batched_tokens
        tokens = self.or_default("max_num_batched_tokens", self.run.max_num_batched_tokens, default)
        if not chunked:  # whole prompts only: the longest must fit
            tokens = max(tokens, math.ceil(self.run.isl or 0))
        return tokens

    def bench_limits(self, degrees: Degrees, kv_dtype: str) -> BenchLimits | None:
        """Of trtllm-bench, which makes the offline rows of TensorRT-LLM."""
        run, named = self.run, self.named
        if run.workload != "offline" or self.engine.kind != "tensorrt-llm" or self.tuned:
            return None
        ranks = degrees.tp * degrees.dp
        memory = ranks * degrees.pp * self.hardware.visible_memory_bytes
        return bench_limits(
            memory - weight_bytes_per_gpu(named.spec, 1, named.dtype),
            ranks * kv_bytes_per_token(named.spec, kv_dtype, ranks),
            run.isl or 1.0,
            max(1.0, run.osl or 1.0),
            degrees.pp,
        )

    def balances_prompts(self) -> bool:
        """`enable_balance`: off by default, on in NVIDIA's recipes of servers."""
        if not (self.run.attention_dp and self.engine.is_pytorch):
            return False
        if "enable_balance" in self.run.columns.get("settings_notes", ""):
            return True
        serves = self.run.workload in ("closed", "poisson")
        self.assume("enable balance", "on" if serves else "off", "settings_notes")
        return serves

    def recv_interval(self) -> int:
        """SGLang reads new requests every so many decode steps."""
        if self.engine.kind != "sglang":
            return 1
        return self.or_default("scheduler_recv_interval", self.run.scheduler_recv_interval, 1)
