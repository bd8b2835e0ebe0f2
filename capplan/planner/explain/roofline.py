"""`capplan explain roofline`: the roofs, and each point under them."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.planner.explain.figure import figure
from capplan.results.explanation import Explanation, Figure, Symbol
from capplan.results.roofline import GpuRoofline, RooflinePoint

_WILLIAMS = "Williams, Waterman, Patterson, CACM 52(4), 2009; docs/model.md 11"


def explain_roofline(result: GpuRoofline) -> Explanation:
    figures = [_ridge(result)]
    for point in result.points:
        figures += _point(result, point)
    headline = f"{result.model} in {result.dtype} on {result.tp} x {result.hardware}"
    left_out = (
        "work and traffic of a step: sums over all matrices and layers, docs/model.md 6 to 9",
        "time at measured rates: the step model, docs/model.md, Time",
    )
    return Explanation("roofline", headline, tuple(figures), left_out)


def _ridge(result: GpuRoofline) -> Figure:
    derated = result.derated_peak_flops_per_s / result.derated_bandwidth_bytes_per_s
    return figure(
        "ridge point",
        result.ridge_flop_per_byte,
        "FLOP/byte",
        "ridge = peak / bandwidth",
        [
            Symbol("peak", f"dense, in {result.compute_format}", result.peak_flops_per_s, "FLOP/s"),
            Symbol("bandwidth", "of memory", result.bandwidth_bytes_per_s, "bytes/s"),
        ],
        why="Left of it memory decides, right of it compute: it says what a larger batch buys.",
        picture="Two roofs, a slope and a flat one; this is where they meet.",
        check=f"At measured rates they meet at {derated:,.0f}.",
        source=_WILLIAMS,
    )


def _point(result: GpuRoofline, point: RooflinePoint) -> Iterator[Figure]:
    name = f"prefill of {point.context_tokens:,} tokens"
    if point.phase == "decode":
        name = f"decode of {point.num_sequences:,} at {point.context_tokens:,} tokens"
    work = Symbol("work", "of the step, one GPU", point.flop, "FLOP")
    moved = Symbol("moved", "weights, KV and activations", point.hbm_bytes, "bytes")
    yield figure(
        f"{name}: traffic",
        point.hbm_bytes,
        "bytes",
        "moved = weights + kv + activations",
        [
            Symbol("weights", "read once a step", point.weight_bytes, "bytes"),
            Symbol("kv", "read and written", point.kv_bytes, "bytes"),
            Symbol("activations", "in and out of the matrices", point.activation_bytes, "bytes"),
        ],
        why="Decode waits for this, not for compute.",
        picture="Everything that has to pass between memory and the cores.",
        check=f"Weights are {point.weight_bytes / point.hbm_bytes:.0%} of it.",
        source="docs/model.md 6 to 9",
    )
    yield figure(
        f"{name}: intensity",
        point.intensity_flop_per_byte,
        "FLOP/byte",
        "intensity = work / moved",
        [work, moved],
        why="It places the step under the roof.",
        picture="How much is computed with each byte that was fetched.",
        check=f"{point.intensity_flop_per_byte / result.ridge_flop_per_byte:.2g} of the ridge: "
        f"{point.bound} decides.",
        source=_WILLIAMS,
    )
    yield from _times(result, point, name, work, moved)


def _times(
    result: GpuRoofline, point: RooflinePoint, name: str, work: Symbol, moved: Symbol
) -> Iterator[Figure]:
    bandwidth = Symbol("bandwidth", "of memory", result.bandwidth_bytes_per_s, "bytes/s")
    # What attention computes may run in another format than the products: share of time at peak.
    compute_s = point.peak_fraction * point.time_s
    yield figure(
        f"{name}: shortest time",
        point.time_s,
        "s",
        "time = max(compute, moved / bandwidth)",
        [Symbol("compute", "work at the peaks of its formats", compute_s, "s"), moved, bandwidth],
        why="No kernel can be faster on this GPU.",
        picture="Compute and traffic at once; the slower one ends last.",
        check=f"At measured rates it is {point.derated_time_s / point.time_s:.2g} times as long.",
        source=_WILLIAMS,
    )
    yield figure(
        f"{name}: attainable",
        point.attainable_flop_per_s,
        "FLOP/s",
        "attainable = work / time",
        [work, Symbol("time", "the shortest", point.time_s, "s")],
        why="The height of the roof over this step.",
        picture="Work done in the time that it cannot be done faster.",
        check=f"{point.peak_fraction:.1%} of the peak.",
        source=_WILLIAMS,
    )
    yield figure(
        f"{name}: tokens a second",
        point.tokens_per_s,
        "tokens/s",
        "rate = tokens / time",
        [
            Symbol("tokens", "new in this step", point.new_tokens, "tokens"),
            Symbol("time", "the shortest", point.time_s, "s"),
        ],
        why="What the step would serve at the roof.",
        picture="Tokens of a step over its time.",
        check=f"At measured rates {point.new_tokens / point.derated_time_s:,.0f}.",
        source="definition",
    )
    yield from _band(result, point, name)
    time = Symbol("time", "at measured rates", point.derated_time_s, "s")
    yield figure(
        f"{name}: MFU",
        point.mfu,
        "",
        "mfu = compute / time",
        [Symbol("compute", "work at the peaks of its formats", compute_s, "s"), time],
        why="The share of the arithmetic that was paid for and is used.",
        picture="Hours worked over hours paid.",
        check=f"The roof allows {point.peak_fraction:.1%}.",
        source="Chowdhery et al., PaLM, 2022, appendix B",
    )
    yield figure(
        f"{name}: MBU",
        point.mbu,
        "",
        "mbu = (weights + kv) / (time × bandwidth)",
        [
            Symbol("weights", "read once a step", point.weight_bytes, "bytes"),
            Symbol("kv", "read and written", point.kv_bytes, "bytes"),
            time,
            bandwidth,
        ],
        why="The share of the memory's rate that the model's own bytes take: decode lives by it.",
        picture="How wide the tap is open.",
        check="Activations are traffic too, and not counted here.",
        source="Agarwal et al., LLM Inference Performance Engineering, Databricks, 2023",
    )


def _band(result: GpuRoofline, point: RooflinePoint, name: str) -> Iterator[Figure]:
    """The ends of the time at measured rates, as servers were off."""
    prefill, decode = result.bands
    band = prefill if point.phase == "prefill" else decode
    for end, value, ratio in (
        ("low", point.band_low_s, band.low_ratio),
        ("high", point.band_high_s, band.high_ratio),
    ):
        yield figure(
            f"{name}: time at measured rates, {end} end",
            value,
            "s",
            f"{end} = time × ratio",
            [
                Symbol("time", "at measured rates, as predicted", point.derated_time_s, "s"),
                Symbol("ratio", "measured over predicted, at this end", ratio, ""),
            ],
            why="The step model is a prediction too: of five servers like it four lie within.",
            picture="A thermometer with its tolerance printed on the back.",
            check=f"Behind it: {band.words}.",
            source="docs/accuracy.md, Error bands; docs/calibrate.md",
        )
