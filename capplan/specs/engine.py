"""An engine of one version family: defaults, the rule of its memory budget, measured terms.

One YAML file of ``capplan/engines/`` is one family. Everything that logs show to vary is a range;
``rows`` says how many logged figures stand behind it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict, model_validator

from capplan.specs.fields import (
    Bytes,
    Count,
    CountOrZero,
    Flag,
    Fraction,
    Month,
    Sources,
    Spec,
    SpecError,
    Text,
)

# How the pool follows: share of visible memory less what is used; share of what was free before
# loading, kept by weights and pool; share of what is free after loading.
BudgetRule = Literal["share-of-visible", "static-share-of-free", "share-of-free-after-load"]
# What the log prints as the size of the KV cache in tokens.
PrintedSize = Literal["blocks-of-one-group", "concurrency-times-length", "tokens"]
Figure = Annotated[float, Strict(), Field(ge=0, le=10_000, allow_inf_nan=False)]
Version = Annotated[str, Field(pattern=r"^\d+\.\d+(\.\d+)?$")]


class BytesRange(Spec):
    """A size that varies: least, usual and most of the logged ones."""

    low: Bytes
    likely: Bytes
    high: Bytes
    rows: CountOrZero
    note: Text | None = None

    @model_validator(mode="after")
    def _ordered(self) -> BytesRange:
        if not self.low <= self.likely <= self.high:
            raise SpecError("should rise from `low` over `likely` to `high`", "likely")
        return self


class FigureRange(Spec):
    """The same for a coefficient."""

    low: Figure
    likely: Figure
    high: Figure
    rows: CountOrZero
    note: Text | None = None

    @model_validator(mode="after")
    def _ordered(self) -> FigureRange:
        if not self.low <= self.likely <= self.high:
            raise SpecError("should rise from `low` over `likely` to `high`", "likely")
        return self


class PerTp(BytesRange):
    """A range that holds from this tensor-parallel degree on, for GPUs with or without a switch."""

    tp: Count = 1
    fast_link: Flag | None = None  # None: either


class Reserve(Spec):
    """What the default share of memory leaves free, where an engine reckons it in bytes."""

    constant: Bytes
    per_token: Bytes = 0  # of a step's budget, which copies of the attention divide among them
    least_tokens: CountOrZero = 0
    per_gpu: Bytes = 0
    from_four_gpus: Bytes = 0  # CUDA graphs of larger batches
    per_copy: Bytes = 0  # of the attention, where there are several
    least: Bytes = 0

    def size_bytes(self, gpus: int, copies: int, tokens: int) -> float:
        """For a replica of so many GPUs and copies of the attention."""
        step = self.per_token * max(self.least_tokens, tokens // copies)
        shared = self.per_gpu * gpus + (self.from_four_gpus if gpus >= 4 else 0)
        return max(
            self.least, self.constant + step + shared + self.per_copy * (copies > 1) * copies
        )


class GpuClass(Spec):
    """Defaults of GPUs with this much memory; the first class that fits counts."""

    min_memory: Bytes | None = None
    except_names: tuple[Text, ...] = ()  # as the engine looks for them in the device's name
    max_num_seqs: Count
    max_num_batched_tokens: Count
    reserve: Reserve | None = None  # in place of `memory_share`


class ShareByTp(Spec):
    tp: Count
    fraction: Fraction


class Defaults(Spec):
    # Share of memory, under the engine's own option, by the least TP that it holds from.
    memory_share_option: Text
    memory_share: Annotated[tuple[ShareByTp, ...], Field(min_length=1)]
    block_size: Count
    chunked_prefill: Flag
    # Contexts above this are chunked even where that is off by default.
    chunked_prefill_above: Count | None = None
    prefix_caching: Flag
    async_scheduling: Flag
    # Layers of several kinds get groups of their own; without, windows are kept at full length.
    hybrid_manager: Flag
    # False: a model with chunked-local layers (Llama 4) goes without the hybrid manager.
    hybrid_chunked: Flag = True
    gpu_classes: Annotated[tuple[GpuClass, ...], Field(min_length=1)]

    def chunks_prefill(self, max_model_len: int) -> bool:
        """Whether prompts are read in chunks where nothing is said."""
        above = self.chunked_prefill_above
        return self.chunked_prefill or (above is not None and max_model_len > above)


class Activations(Spec):
    """Peak of the profiling step: a constant, and the largest of three moments.

    Sampling: rows x vocabulary x ``logit_bytes``. The widest layer: tokens x 16 bits x
    (``ffn_copies`` x intermediate / tp + ``hidden_copies`` x hidden), or the experts' workspaces.
    The encoder of a multimodal model.
    """

    constant: BytesRange
    logit_bytes: FigureRange
    ffn_copies: Figure
    hidden_copies: Figure
    encoder: BytesRange
    # Profiling a multimodal model runs as few sequences as its encoder's tokens allow.
    one_row_with_encoder: Flag = False


class CudaGraphs(BytesRange):
    subtracted: Flag  # before the pool is sized; if not, graphs live in what the share left free


class MemoryTerms(Spec):
    """Measured terms of the budget; a rule that does not know a term leaves it out."""

    context: tuple[PerTp, ...] = ()  # taken before loading: CUDA context, communicators
    non_torch: Annotated[tuple[PerTp, ...], Field(min_length=1)]
    activations: Activations | None = None
    cuda_graphs: CudaGraphs


class Versions(Spec):
    first: Version
    last: Version

    @model_validator(mode="after")
    def _ordered(self) -> Versions:
        if version_key(self.first) > version_key(self.last):
            raise SpecError(f"`{self.last}` is before `first`", "last")
        return self


class EngineSpec(Spec):
    """One file of ``capplan/engines/``."""

    name: Text
    engine: Literal["vllm", "sglang", "tensorrt-llm"]
    versions: Versions
    since: Month  # of the first version: logs without one are dated by this
    core: Literal["v0", "v1"] | None = None  # of vLLM
    sources: Sources
    budget_rule: BudgetRule
    printed_size: PrintedSize
    # Some versions compare the KV of the whole model with one pipeline rank's memory.
    whole_model_startup_check: Flag = False
    mxfp4_kernel: Literal["marlin", "triton"] = "triton"
    defaults: Defaults
    memory: MemoryTerms
    note: Text | None = None

    def share_of(
        self, visible_bytes: float, gpu_name: str, gpus: int, copies: int, tokens: int | None
    ) -> float:
        """The default share of a replica's GPUs, of which ``copies`` hold the attention each.

        ``tokens`` is the budget of a step, None the default.
        """
        row = self.gpu_class(visible_bytes, gpu_name)
        if row.reserve is None:
            return self.memory_share(gpus)
        left = row.reserve.size_bytes(gpus, copies, tokens or row.max_num_batched_tokens)
        return round((visible_bytes - left) / visible_bytes, 3)

    def memory_share(self, tp: int) -> float:
        """The default share for a TP degree, where it does not follow from the memory."""
        rows = [row for row in self.defaults.memory_share if row.tp <= tp]
        best = max(rows, key=lambda row: row.tp) if rows else self.defaults.memory_share[0]
        return best.fraction

    def gpu_class(self, visible_bytes: float, gpu_name: str) -> GpuClass:
        """The defaults for a GPU, by its memory and name."""
        name = gpu_name.lower()
        for row in self.defaults.gpu_classes:
            large = row.min_memory is None or visible_bytes >= row.min_memory
            if large and not any(part in name for part in row.except_names):
                return row
        return self.defaults.gpu_classes[-1]

    def non_torch(self, tp: int, fast_link: bool) -> PerTp:
        """The range for a TP degree and the kind of link."""
        return _for_tp(self.memory.non_torch, tp, fast_link) or self.memory.non_torch[0]

    def context(self, tp: int, fast_link: bool) -> PerTp | None:
        """The range of what is taken before loading; None where the rule does not know it."""
        return _for_tp(self.memory.context, tp, fast_link)


def _for_tp(rows: tuple[PerTp, ...], tp: int, fast_link: bool) -> PerTp | None:
    fitting = [row for row in rows if row.tp <= tp and row.fast_link in (None, fast_link)]
    return max(fitting, key=lambda row: row.tp) if fitting else None


def version_key(version: str) -> tuple[int, ...]:
    """Versions in order.

    >>> version_key("0.9") < version_key("0.10") < version_key("0.10.1")
    True
    """
    return tuple(int(part) for part in version.split("."))
