"""What block size costs: slots without a token, and requests that the pool then holds."""

from __future__ import annotations

from collections.abc import Sequence

from capplan.render import shows
from capplan.render.plots.chart import Axis, Dots, Line, Mark, Panel, Plot, Point, Rule
from capplan.render.plots.ticks import linear, logarithmic
from capplan.results.kv import BlockSizeRow, KvResult


def blocks_plot(result: KvResult) -> Plot:
    """Exact for the request lengths that were given; static pre-allocation beside it."""
    static_waste = 100 * (1 - result.static_utilisation)
    wasted = [(row.block_size, 100 * (1 - row.paged_utilisation)) for row in result.blocks]
    drawn = [(float(size), share) for size, share in wasted if share > 0]  # the axis has no zero
    shares = [share for _, share in drawn] + ([static_waste] if static_waste > 0 else [])
    sizes = _sizes(result.blocks)
    panels = [
        Panel(
            x=sizes,
            y=logarithmic("slots without a token (%)", min(shares) / 2, max(shares) * 2)
            if shares
            else linear("slots without a token (%)", 0, 100),
            marks=[
                *(
                    [Rule("y", static_waste, "red", "dashed", _static(result))]
                    if static_waste
                    else []
                ),
                *_paged(drawn, [f"{y:.2g}" for _, y in drawn]),
            ],
            title="Internal fragmentation",
        )
    ]
    held = [(float(r.block_size), float(r.num_requests)) for r in result.blocks if r.num_requests]
    if held:
        most = max(max(num for _, num in held), result.num_static_requests or 0)
        static = result.num_static_requests
        panels.append(
            Panel(
                x=sizes,
                y=linear("requests held at once", 0, 1.2 * most, whole=True),
                marks=[
                    *([Rule("y", static, "red", "dashed", _static(result))] if static else []),
                    *_paged(held, [f"{y:,.0f}" for _, y in held]),
                ],
                title="What the pool holds",
            )
        )
    return Plot(
        name="blocks",
        finding=_finding(result),
        subject=f"{result.model} on {result.hardware}, {result.num_lengths:,} requests of "
        f"{result.mean_length_tokens:,} tokens on average",
        panels=panels,
        num_columns=len(panels),
        height_in=4.4,
    )


def _paged(points: Sequence[Point], labels: Sequence[str]) -> list[Mark]:
    if not points:
        return []
    return [Line(points, "blue"), Dots(points, "blue", "circle", "paged", labels=labels)]


def _sizes(rows: Sequence[BlockSizeRow]) -> Axis:
    ticks = tuple((float(row.block_size), f"{row.block_size:,}") for row in rows)
    low, high = ticks[0][0], ticks[-1][0]
    return Axis("block size (tokens)", low / 1.5, high * 1.5, ticks, is_log=True)


def _static(result: KvResult) -> str:
    return f"static pre-allocation of {result.static_length:,} tokens each"


def _finding(result: KvResult) -> str:
    used = next(row for row in result.blocks if row.block_size == result.block_size)
    text = (
        f"Blocks of {used.block_size:,} tokens leave {shows.share(1 - used.paged_utilisation)} of "
        f"the slots empty, static pre-allocation {shows.share(1 - result.static_utilisation)}"
    )
    if not used.num_requests or result.num_static_requests is None:
        return text
    return (
        f"{text}: the pool holds {shows.plural(used.num_requests, 'request')} instead of "
        f"{result.num_static_requests:,}"
    )
