"""Utilisation by block size as a PNG or SVG file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from capplan.render.plot_file import write_figure
from capplan.results.kv import KvResult

# Okabe-Ito: told apart with any colour vision.
PAGED, STATIC = "#0072B2", "#D55E00"


def write(result: KvResult, path: Path) -> None:
    """Draw paged and static utilisation to ``path``; CapplanError where that cannot be."""
    write_figure(path, lambda axes: _draw(axes, result))


def _draw(axes: Any, result: KvResult) -> None:
    sizes = [row.block_size for row in result.blocks]
    shares = [row.paged_utilisation for row in result.blocks]
    axes.plot(sizes, shares, "o-", color=PAGED, label="paged, by block size")
    label = f"static pre-allocation of {result.static_length:,} tokens"
    axes.axhline(result.static_utilisation, color=STATIC, linestyle="--", label=label)
    for size, share in zip(sizes, shares, strict=True):
        axes.annotate(
            f"{share:.1%}", (size, share), textcoords="offset points", xytext=(0, 8),
            fontsize=8, ha="center",
        )  # fmt: skip
    axes.set(
        xscale="log",
        ylim=(0, 1.08),
        xlabel="block size (tokens)",
        ylabel="share of the slots that hold a token",
    )
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.set_title(
        f"{result.num_lengths:,} requests, {result.lengths_total_tokens:,} tokens: "
        "what static and paged KV use",
        parse_math=False,
    )
    axes.grid(visible=True, color="0.9")
    axes.legend(loc="best", frameon=False)
