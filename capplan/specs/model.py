"""A language model, as the sizes of its layers: our own schema, in the field's terms.

A model is a stack of layers. Each layer has a *mixer* (attention, or a recurrent layer in its
place) and an *ffn* (dense, or a mixture of experts); either may be absent. The kinds that a
model uses are described once, by name, and `layers` says in which order they are stacked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from capplan.errors import did_you_mean
from capplan.specs.ffn_tensors import ffn_tensors
from capplan.specs.ffns import FFN
from capplan.specs.fields import Count, CountOrZero, Flag, Month, Sources, Spec, SpecError, Text
from capplan.specs.mixer_tensors import mixer_tensors
from capplan.specs.mixers import Mixer

WeightFormat = Literal[
    "fp32", "bf16", "fp16", "fp8", "fp8-block128", "mxfp8", "int8", "int4", "int4-group32",
    "int4-group64", "int4-symmetric", "int4-symmetric-group32", "nf4", "nf4-double", "mxfp4",
    "nvfp4", "nvfp4-weight-only", "fp8-weight-only", "int8-weight-only",
]  # fmt: skip
MAX_LAYERS = 10_000


class Layers(Spec):
    """``repeat`` layers of one kind, or a ``pattern`` of such runs, repeated."""

    repeat: Annotated[Count, Field(le=MAX_LAYERS)] = 1
    mixer: Text | None = None
    ffn: Text | None = None
    pattern: tuple[Layers, ...] = ()

    @model_validator(mode="after")
    def _one_of(self) -> Layers:
        if self.pattern and (self.mixer or self.ffn):
            raise SpecError("should have a `pattern`, or `mixer` and `ffn`, not both")
        if not self.pattern and not (self.mixer or self.ffn):
            raise SpecError("needs a `mixer`, an `ffn`, or a `pattern`")
        return self

    @property
    def num_layers(self) -> int:
        inner = sum(part.num_layers for part in self.pattern) if self.pattern else 1
        return self.repeat * inner

    def parts(self, *path: str | int) -> Iterator[tuple[tuple[str | int, ...], Layers]]:
        """This and all that its patterns hold, each with its place in the file."""
        yield path, self
        for i, part in enumerate(self.pattern):
            yield from part.parts(*path, "pattern", i)

    def runs(self) -> Iterator[tuple[int, str | None, str | None]]:
        """Runs of equal layers in stacking order: (how many, mixer name, ffn name)."""
        if not self.pattern:
            yield self.repeat, self.mixer, self.ffn
            return
        for _ in range(self.repeat):
            for part in self.pattern:
                yield from part.runs()


QuantizedGroup = Literal["attention", "dense_ffn", "shared_experts", "experts", "lm_head"]
QUANTIZED_GROUPS: tuple[str, ...] = get_args(QuantizedGroup)


class Quantization(Spec):
    """Tensor groups stored in another format than the rest.

    ``others`` are stored in a format of their own, most specific name first: a tensor of a mixer
    or ffn (`linear.out_proj`), a mixer or ffn (`dense`), a group (`attention`).
    """

    format: WeightFormat
    groups: Annotated[tuple[QuantizedGroup, ...], Field(min_length=1)]
    others: dict[Text, WeightFormat] = {}


class Weights(Spec):
    dtype: Literal["fp32", "bf16", "fp16"]
    quantization: Quantization | None = None


class ModelSpec(Spec):
    """One file of ``models/``."""

    name: Text
    aliases: tuple[Text, ...] = ()
    sources: Sources
    released: Month | None = None
    max_context_tokens: Count
    hidden_size: Count
    vocab_size: Count
    tied_embeddings: Flag
    norm: Literal["rms", "layer", "layer-without-bias", "none"] = "rms"
    # Norms of a layer: one before each half; also one after each; one for both halves.
    norm_placement: Literal["pre", "sandwich", "parallel"] = "pre"
    final_norm: Flag = True
    learned_positions: CountOrZero = 0
    embedding_norm: Flag = False
    layer_scalar: Flag = False  # one number a layer multiplies its output (Gemma 4)
    head_bias: Flag = False
    # Parallel residual streams, mixed before and after each half by learned weights
    # (manifold-constrained hyper-connections, DeepSeek-V4).
    residual_streams: Annotated[Count, Field(le=64)] = 1
    weights: Weights
    mixers: dict[Text, Mixer] = {}
    ffns: dict[Text, FFN] = {}
    layers: Annotated[tuple[Layers, ...], Field(min_length=1)]
    # Parameters beside the decoder (a vision tower), stated in the checkpoint, by name.
    extra_parameters: dict[Text, CountOrZero] = {}
    # Multi-token-prediction layers of the checkpoint; only speculative decoding loads them, so
    # they are named beside the total and are in none of the sizes.
    mtp_parameters: CountOrZero = 0
    # Parts of the checkpoint whose tensors are not known exactly and are in none of the sizes.
    not_counted: tuple[Text, ...] = ()
    note: Text | None = None

    @model_validator(mode="after")
    def _names_resolve(self) -> ModelSpec:
        if self.num_layers > MAX_LAYERS:
            raise SpecError(f"stack {self.num_layers:,}, more than {MAX_LAYERS:,}", "layers")
        for i, layers in enumerate(self.layers):
            for path, part in layers.parts("layers", i):
                for field, name, known in (
                    ("mixer", part.mixer, list(self.mixers)),
                    ("ffn", part.ffn, list(self.ffns)),
                ):
                    if name is not None and name not in known:
                        message = f"names `{name}`, which `{field}s` does not describe"
                        raise SpecError(message, *path, field, hint=did_you_mean(name, known))
        used = {*self.mixer_counts, *self.ffn_counts}
        for field, described in (("mixers", list(self.mixers)), ("ffns", list(self.ffns))):
            for name in described:
                if name not in used:
                    raise SpecError("is described and no layer uses it", field, name)
        return self

    @model_validator(mode="after")
    def _quantised_names_resolve(self) -> ModelSpec:
        quantization = self.weights.quantization
        parts = [*self.mixers, *self.ffns]
        for name in quantization.others if quantization else ():
            part, dot, tensor = name.partition(".")
            known = [*parts, *(() if dot else QUANTIZED_GROUPS)]
            message = "is no tensor group, mixer or ffn"
            if dot and part in known:
                message = f"names no tensor of `{part}`"
                part, known = tensor, self._tensor_names(part)
            if part not in known:
                path = ("weights", "quantization", "others", name)
                raise SpecError(message, *path, hint=did_you_mean(part, known))
        return self

    def _tensor_names(self, part: str) -> list[str]:
        if part in self.mixers:
            tensors = mixer_tensors(part, self.mixers[part], self.hidden_size, 1)
        else:
            tensors = ffn_tensors(part, self.ffns[part], self.hidden_size, 1)
        return [tensor.name for tensor in tensors]

    def __hash__(self) -> int:
        # What follows from a model is memoised; equal models agree in these.
        return hash((self.name, self.hidden_size, self.vocab_size, self.num_layers))

    @property
    def num_layers(self) -> int:
        return sum(part.num_layers for part in self.layers)

    @cached_property
    def layer_runs(self) -> tuple[tuple[int, str | None, str | None], ...]:
        """Runs of equal layers in stacking order: (how many, mixer name, ffn name)."""
        return tuple(run for part in self.layers for run in part.runs())

    @cached_property
    def mixer_counts(self) -> dict[str, int]:
        """Layers by mixer name, in the order of their first use."""
        return _count((mixer, num) for num, mixer, _ in self.layer_runs)

    @cached_property
    def ffn_counts(self) -> dict[str, int]:
        """Layers by ffn name, in the order of their first use."""
        return _count((ffn, num) for num, _, ffn in self.layer_runs)

    @property
    def has_experts(self) -> bool:
        return any(ffn.kind == "moe" for ffn in self.ffns.values())

    @property
    def stored_format(self) -> str:
        """The format of most weights: the quantised one where there is one."""
        quantization = self.weights.quantization
        return quantization.format if quantization else self.weights.dtype

    @property
    def activation_dtype(self) -> str:
        return self.weights.dtype


def _count(pairs: Iterator[tuple[str | None, int]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for name, num in pairs:
        if name is not None:
            counts[name] += num
    return dict(counts)
