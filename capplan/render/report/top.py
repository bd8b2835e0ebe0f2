"""What a meeting reads first: the answer in figures, and whether it is safe."""

from __future__ import annotations

from capplan.render import shows
from capplan.render.bands import NAMES, TO_BUY, band_text, coverage, find_band
from capplan.render.gpus import shape_of
from capplan.render.limit_names import WHY_NOT, limit_name
from capplan.render.report.page import Block, Tile, Tiles, Words
from capplan.results.bands import BandedFigure, statistic_name
from capplan.results.gpus import GpusPlan, GpusResult, ServiceLevel


def top_of(result: GpusResult) -> list[Block]:
    """The verdict in a sentence or two, and tiles."""
    if not result.feasible:
        return _why_not(result)
    tiles = [_gpus(result)]
    if result.cost is not None:
        tiles.append(_bill(result))
    tiles += [_level(level, result) for level in result.service_levels]
    tiles.append(_binding(result))
    return [*verdict(result), Tiles(tiles)]


def _why_not(result: GpusResult) -> list[Block]:
    reason = WHY_NOT.get(result.binding_limit, result.binding_limit)
    why = f": {result.why}" if result.why else ""
    words: list[Block] = [Words([f"✗ No number of GPUs is enough: {reason}{why}."], "bad")]
    nearest = [f"? With {s.option} {s.value}: {s.why}." for s in result.suggestions]
    return [*words, Words(nearest, "open")] if nearest else words


def verdict(result: GpusResult) -> list[Block]:
    """Met or missed; and where the error band leaves it open."""
    words: list[Block] = []
    missed = [_name(level) for level in result.service_levels if not level.met]
    how = "in the simulation of the whole fleet" if result.sizing else "as a mean, without queues"
    if missed:
        words.append(Words([f"✗ Missed {how}: {', '.join(missed)}."], "bad"))
    elif result.service_levels:
        words.append(Words([f"✓ Every limit holds {how}."], "good"))
    inside = [_name(level) for level in result.service_levels if _is_open(level, result)]
    if inside:
        limits, lie = ("limit of", "lies") if len(inside) == 1 else ("limits of", "lie")
        text = (
            f"? The {limits} {' and '.join(inside)} {lie} within the {coverage(result.bands)} "
            "error band: measure one replica before the fleet is bought."
        )
        words.append(Words([text], "open"))
    far = [band for band in result.bands if not band.is_measured]
    if far:
        names = ", ".join(dict.fromkeys(NAMES[band.figure] for band in far))
        text = (
            f"? Nothing like this deployment was ever measured ({names}): the widest band stands."
        )
        words.append(Words([text], "open"))
    return words


def _gpus(result: GpusResult) -> Tile:
    assert result.num_replicas is not None
    assert result.num_nodes is not None
    replicas = shows.plural(result.num_replicas, "replica")
    note = (
        f"{result.hardware}: {result.num_gpus} for the load ({replicas} x {shape_of(result)}), "
        f"{spares(result)}, "
        f"{shows.plural(result.num_nodes, 'whole node')} of {result.gpus_per_node}"
    )
    band, tone = find_band(result.bands, TO_BUY, "mean"), "plain"
    if band is not None:
        note += f"; {coverage([band])} band {band_text(band)}"
        tone = "open" if band.high > (result.num_gpus_rounded or 0) else "plain"
    return Tile("GPUs to get", shows.count(result.num_gpus_rounded or 0), note, tone)


def spares(result: GpusResult) -> str:
    num = result.num_spare_replicas
    return shows.plural(num, "spare replica") if num else "no spare"


def _bill(result: GpusResult) -> Tile:
    cost = result.cost
    assert cost is not None
    note = (
        f"{shows.money(cost.usd_per_month)} a month; "
        f"{shows.money(cost.usd_per_million_tokens)} per 1M tokens, prompt and output alike; "
        f"{shows.money(cost.usd_per_gpu_hour)}/GPU-hour: {cost.source}"
    )
    return Tile("Bill", f"{shows.money(cost.usd_per_hour)}/hour", note)


def _level(level: ServiceLevel, result: GpusResult) -> Tile:
    band = _band(level, result)
    value = "saturated" if level.predicted_s is None else shows.duration(level.predicted_s)
    tone = "bad" if not level.met else "open" if _is_open(level, result) else "good"
    mark = {"bad": "✗ missed", "open": "✓ met, but within the band", "good": "✓ met"}[tone]
    note = f"limit {shows.duration(level.limit_s)}: {mark}"
    if band is not None:
        note += f"; {coverage([band])} band {band_text(band)}"
    return Tile(_name(level), value, note, tone)


def _binding(result: GpusResult) -> Tile:
    if result.sustained is None:
        limit = f"a bound; the limit is {limit_name(result.binding_limit)}"
        return Tile("What binds", result.binding, limit)
    sustained = result.sustained
    note = (
        f"a replica sustains {shows.rate(sustained.requests_per_s)}; at "
        f"{shows.rate(sustained.fails_at_per_s)} it fails"
    )
    return Tile("What binds", limit_name(sustained.binding), note)


def _name(level: ServiceLevel) -> str:
    return f"{level.name} {statistic_name(level.percentile, level.kind)}"


def _band(level: ServiceLevel, plan: GpusPlan) -> BandedFigure | None:
    wanted = (level.name, statistic_name(level.percentile, level.kind))
    return next((b for b in plan.bands if (NAMES[b.figure], b.statistic) == wanted), None)


def _is_open(level: ServiceLevel, plan: GpusPlan) -> bool:
    band = _band(level, plan)
    return level.met and band is not None and band.low <= level.limit_s <= band.high
