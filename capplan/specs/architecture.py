"""How kernels run on one architecture generation: curves, with where they were measured.

One YAML file of ``capplan/architectures/`` is one generation; an accelerator belongs to the one
with whose stem its own ``architecture`` begins. Shares are of the data sheet's dense peak and
bandwidth and never above 1. ``serving`` are corrections: what running servers reach, as fitted
to measured runs, over what the kernels reach alone.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, Strict

from capplan.specs.documents import read_yaml
from capplan.specs.fields import CountOrZero, Fraction, Seconds, Sources, Spec, Text, validate

FOLDER = Path(__file__).resolve().parent.parent / "architectures"
GENERIC = "generic"
Figure = Annotated[float, Strict(), Field(ge=0, le=1000, allow_inf_nan=False)]
# The smooth maximum (a^p + b^p)^(1/p): 1 is the sum, large is the maximum.
Norm = Annotated[float, Strict(), Field(ge=1, le=20, allow_inf_nan=False)]
Factor = Annotated[float, Strict(), Field(gt=0, le=20, allow_inf_nan=False)]


class ProductCurve(Spec):
    """Matrix products: fixed + ((FLOP / compute peak)^norm + (bytes / bandwidth)^norm)^(1/norm)."""

    compute: Fraction
    bandwidth: Fraction
    fixed: Seconds
    norm: Norm


class ExpertCurve(ProductCurve):
    """The products of a layer's experts; each computes ``tile`` rows beyond its own (half one)."""

    tile: Figure = 0.0


class AttentionCurve(Spec):
    """Decode reads KV at a share of the bandwidth; prefill saturates with the tokens of a chunk.

    ``saturation`` is the context, in tokens, at which prefill reaches half of ``compute``.
    """

    bandwidth: Fraction
    decode_fixed: Seconds
    compute: Fraction
    saturation: Figure
    prefill_fixed: Seconds
    # Of the FP32 peak of vector units, for kernels in which each query head reads KV by itself.
    vector: Fraction = 0.15
    state_bandwidth: Fraction  # of recurrent layers
    state_compute: Fraction
    state_fixed: Seconds


class ElementwiseCurve(Spec):
    """Norms, rotations, activations: ``fixed`` for each of four kernels a layer."""

    bandwidth: Fraction
    fixed: Seconds


class KernelServing(Spec):
    """Corrections of one kind of product."""

    compute: Factor = 1.0
    bandwidth: Factor = 1.0
    fixed: Factor = 1.0


class Serving(Spec):
    """Corrections to the kernels' figures, fitted to ``rows`` measured runs; 1 is none.

    ``products`` are by format of the weights, ``experts`` by family and format. ``latency`` and
    ``link`` are of collectives: ranks wait for the last, and messages are seldom as large as those
    of the bus bandwidth. ``spread`` is the standard deviation of what a GPU takes between two
    collectives, over the mean: the others wait for the slowest.
    """

    products: dict[Text, KernelServing] = {}
    fixed: Factor = 1.0  # of attention, recurrent and elementwise kernels
    attention: Factor = 1.0
    prefill: Factor = 1.0
    launch: Factor = 1.0
    latency: Factor = 1.0
    link: Fraction = 0.8
    spread: Annotated[float, Strict(), Field(ge=0, le=1)] = 0.0
    experts: dict[Text, dict[Text, KernelServing]] = {}
    rows: CountOrZero = 0
    source: Text | None = None


class ArchitectureSpec(Spec):
    """One file of ``capplan/architectures/``."""

    name: Text
    measured_on: tuple[Text, ...] = ()
    sources: Sources
    # By number format of the weights; `weight-only` for formats that are expanded to 16 bits.
    products: Annotated[dict[Text, ProductCurve], Field(min_length=1)]
    # By kernel family, then by number format.
    experts: Annotated[dict[Text, dict[Text, ExpertCurve]], Field(min_length=1)]
    attention: AttentionCurve
    elementwise: ElementwiseCurve
    most_tokens: CountOrZero = 0  # in a step, of the measurements behind the curves
    serving: Serving = Field(default_factory=Serving)
    note: Text | None = None


@cache
def load_architecture(stem: str) -> ArchitectureSpec:
    """A generation by the stem of its file."""
    return validate(ArchitectureSpec, read_yaml(FOLDER / f"{stem}.yaml"))


@cache
def architecture_of(architecture: str) -> ArchitectureSpec:
    """The generation of an accelerator, by its file's ``architecture``; else the generic one.

    The stem of a file is the beginning of the names that it stands for, so that only one is read.

    >>> architecture_of("Hopper (GH100) with Grace CPU").name, architecture_of("Gaudi 3").name
    ('Hopper', 'any other')
    """
    wanted = re.sub(r"[\s(]+", "-", architecture.lower())
    stems = sorted((path.stem for path in FOLDER.glob("*.yaml")), key=len, reverse=True)
    stem = next((stem for stem in stems if wanted.startswith(stem)), GENERIC)
    return load_architecture(stem)
