"""Step times explained by their parts."""

from __future__ import annotations

from dataclasses import fields

from capplan.performance.batch import StepTime
from capplan.planner.explain.figure import figure
from capplan.results.explanation import Figure, Symbol

_MEANINGS = {
    "gemm_s": "matrix products and the head",
    "experts_s": "routed experts",
    "attention_s": "attention, its KV read",
    "elementwise_s": "norms, rotations, activations, sampling",
    "collective_s": "all-reduces between GPUs",
    "host_s": "CPU and launches that the GPU waits for",
}


def step_time(name: str, step: StepTime, value: float, *, why: str, picture: str) -> Figure:
    """``value`` by the parts of ``step``."""
    symbols = [
        Symbol(field.name.removesuffix("_s"), _MEANINGS[field.name], seconds, "s")
        for field in fields(StepTime)
        if (seconds := getattr(step, field.name))
    ]
    total = " + ".join(symbol.name for symbol in symbols) or "0"
    largest = max(symbols, key=lambda symbol: symbol.value, default=None)
    share = largest.value / step.total_s if largest and step.total_s else 0.0
    return figure(
        name,
        value,
        "s",
        f"time = {total}",
        symbols,
        why=why,
        picture=picture,
        check=f"Most of it, {share:.0%}, is {largest.meaning}." if largest else "Nothing runs.",
        source="docs/model.md, Time; rates measured on the accelerator (capplan hardware show)",
    )
