"""What the simulation found, as tables: kinds of replica, trade-offs, and the proof in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from capplan.render import shows
from capplan.render.band_shares import shares_note, shares_text
from capplan.render.bands import GPUS, count_range, durations, find_band, rates
from capplan.render.limit_names import WHY_NOT, limit_name
from capplan.render.screen import Column, Table
from capplan.results.bands import Range, statistic_name
from capplan.results.gpus import GpusResult, ServiceLevel

if TYPE_CHECKING:
    from capplan.results.sizing import Availability, Kind, ReplicaLoss, Sizing, TradeOff

MOST_KINDS = 12
SECONDS_A_YEAR = 365.25 * 86_400


def levels_table(result: GpusResult) -> Table:
    """Percentiles of the fleet with their intervals against the limits."""
    proof = result.sizing.proof if result.sizing else None
    columns = (
        Column("met", "", lambda met: "✓ met" if met else "✗ missed", right=False),
        Column("name", "", right=False),
        Column("predicted_s", "simulated", shows.duration),
        Column("interval", "95 % interval", right=False),
        Column("limit_s", "limit", shows.duration),
        Column("headroom_fraction", "headroom", shows.share),
    )
    rows = [_level_row(level) for level in result.service_levels]
    title = "Service levels"
    if proof is not None:
        title += (
            f" ({shows.plural(proof.num_replicas, 'replica')} behind {proof.router}, "
            f"{shows.count(proof.num_measured)} requests at {shows.rate(proof.rate_per_s)})"
        )
    return Table(title, columns, rows, in_tsv=False)


def _level_row(level: ServiceLevel) -> tuple[object, ...]:
    interval = "-"
    if level.low_s is not None and level.high_s is not None:
        interval = f"{shows.duration(level.low_s)} to {shows.duration(level.high_s)}"
    name = f"{level.name} {statistic_name(level.percentile, level.kind)}"
    headroom = None
    if level.predicted_s is not None:
        headroom = max(0.0, 1 - level.predicted_s / level.limit_s)
    return (level.met, name, level.predicted_s, interval, level.limit_s, headroom)


def kinds_tables(sizing: Sizing, several: bool, most: int = MOST_KINDS) -> list[Table]:
    """Every kind that was looked at: what it sustains, and those that were passed over."""
    shown = sizing.kinds[:most]
    left = len(sizing.kinds) - len(shown)
    more = f"and {left:,} more; --json has all of them" if left else None
    over = [kind for kind in shown if kind.sustained is None]
    columns = (
        Column("kind", "replica", right=False),
        Column("bound_requests_per_s", "bound\nreq/s", shows.number),
        Column("words", "why", right=False, prose=True),
    )
    rows = [
        (kind_name(kind, sizing.kinds, several), kind.bound_requests_per_s, _words(kind, sizing))
        for kind in over
    ]
    sustaining = _sustaining(
        sizing, several, [kind for kind in shown if kind.sustained], None if over else more
    )
    passed = Table("Kinds passed over", columns, rows, note=more, in_tsv=False)
    return [table for table in (sustaining, passed) if table.rows]


def _sustaining(sizing: Sizing, several: bool, shown: Sequence[Kind], more: str | None) -> Table:
    columns = (
        Column("kind", "replica", right=False),
        Column("bound_requests_per_s", "bound\nreq/s", shows.number),
        Column("requests_per_s", "sustains\nreq/s", shows.number),
        Column("num_gpus", "GPUs", shows.count),
        Column("num_gpus_band", "80 %\nband", count_range),
        Column("num_gpus_rounded", "to buy", shows.count),
        Column("usd_per_hour", "$/hour", shows.money),
        Column("words", "", right=False, prose=True),
    )
    rows = [
        (
            kind_name(kind, sizing.kinds, several),
            kind.bound_requests_per_s,
            kind.sustained.requests_per_s if kind.sustained else None,
            kind.num_gpus,
            kind.num_gpus_band,
            kind.num_gpus_rounded,
            kind.usd_per_hour,
            _words(kind, sizing),
        )
        for kind in shown
    ]
    note = "; ".join([*([more] if more else []), *_sustained_note(shown)]) or None
    return Table("Kinds of replica, best first", columns, rows, note=note, in_tsv=False)


def _sustained_note(kinds: Sequence[Kind]) -> list[str]:
    """Of what is sustained: one line where the kinds share it, else a part for each."""
    shares: dict[str, list[str]] = {}
    for kind in kinds:
        if kind.sustained is not None and kind.sustained.band is not None:
            band, value = kind.sustained.band, kind.sustained.requests_per_s
            share = shares_text(band.low / value, band.high / value)
            shares.setdefault(share, []).append(kind_name(kind, kinds, several=True))
    if len(shares) <= 1:
        return [f"80 % band of what is sustained: {share}." for share in shares]
    return [
        "80 % bands of what is sustained: "
        + "; ".join(f"{share} ({', '.join(names)})" for share, names in shares.items())
        + "."
    ]


def kind_name(kind: Kind, kinds: Sequence[Kind], several: bool) -> str:
    """`h100-sxm-80gb TP 2`, with whatever else tells it from the others."""
    parts = [kind.hardware] if several else []
    parts += _degrees(kind)
    for name, text in (
        ("dtype", kind.dtype),
        ("kv_dtype", f"KV {kind.kv_dtype}"),
        ("max_num_seqs", f"seqs {kind.max_num_seqs}"),
        ("max_num_batched_tokens", f"budget {kind.max_num_batched_tokens}"),
        ("enable_prefix_caching", f"caching {'on' if kind.enable_prefix_caching else 'off'}"),
    ):
        alike = {getattr(one, name) for one in kinds if _shape(one) == _shape(kind)}
        if len(alike) > 1:
            parts.append(text)
    return " ".join(parts)


def _degrees(kind: Kind | TradeOff) -> list[str]:
    return shows.degrees(kind.tp, kind.pp, kind.dp, kind.ep)


def _shape(kind: Kind) -> tuple[object, ...]:
    return (kind.hardware, kind.tp, kind.pp, kind.dp, kind.ep)


def _words(kind: Kind, sizing: Sizing) -> str:
    if kind.reason == "dominated":
        text = f"✗ {kind.words} by its bound"
    elif kind.sustained is None:
        why = WHY_NOT.get(kind.reason or "", "")
        text = f"✗ {why}" + (f": {kind.words}" if kind.words else "")
    else:
        text = f"{limit_name(kind.sustained.binding)} binds"
        if kind is sizing.kinds[0]:
            text = f"chosen; {text}"
    if kind.collective_fraction is not None and kind.collective_fraction >= 0.25:
        text += f"; links take {shows.share(kind.collective_fraction)} of a decode step"
    return text


def trade_table(sizing: Sizing, several: bool) -> Table:
    columns = [
        Column("kind", "replica", right=False),
        Column("num_gpus", "GPUs", shows.count),
        Column("num_gpus_band", "80 %\nband", count_range),
        Column("usd_per_hour", "$/hour", shows.money),
        Column("requests_per_s", "a replica\nreq/s", shows.number),
        Column("ttft_s", "TTFT", shows.duration),
        Column("tpot_s", "TPOT", shows.duration),
        Column("e2e_s", "E2E", shows.duration),
    ]
    rows = [
        (
            " ".join(([each.hardware] if several else []) + _degrees(each)),
            each.num_gpus,
            _count(each),
            each.usd_per_hour,
            each.requests_per_s,
            each.ttft_s,
            each.tpot_s,
            each.e2e_s,
        )
        for each in sizing.trade_offs
    ]
    named = [
        (f"{row[0]} at {row[1]} GPUs", [b for b in each.bands if b.figure != GPUS])
        for row, each in zip(rows, sizing.trade_offs, strict=True)
    ]
    title = "Cost against latency (nothing cheaper is sooner)"
    return Table(title, columns, rows, note=shares_note(named), in_tsv=False)


def _count(each: TradeOff) -> Range | None:
    band = find_band(each.bands, GPUS, "mean")
    return None if band is None else Range(band.low, band.high)


def proof_notes(result: GpusResult, rate_per_s: float) -> list[str]:
    """Margins, and what happens when a replica dies."""
    return [text for _, text in proof_parts(result, rate_per_s)]


def proof_parts(result: GpusResult, rate_per_s: float) -> list[tuple[str, str]]:
    """The same, each with a heading."""
    sizing = result.sizing
    if sizing is None or sizing.proof is None or result.sustained is None:
        return []
    proof, sustained = sizing.proof, result.sustained
    parts = []
    if proof.num_added:
        text = (
            f"{shows.plural(proof.num_added, 'replica')} beyond what was sized: with fewer the "
            "simulated fleet missed a limit."
        )
        parts.append(("Added by the proof", text))
    binding = limit_name(sustained.binding)
    whole = sustained.requests_per_s * proof.num_replicas
    text = (
        f"A replica sustains {shows.rate(sustained.requests_per_s)}{_rates(sustained.band)} within "
        f"all limits; {binding} fails at {shows.rate(sustained.fails_at_per_s)}. The fleet is "
        f"sized for {shows.rate(whole)}, {shows.share(whole / rate_per_s - 1)} over the traffic; "
        f"without limits it saturates at {shows.rate(proof.saturates_at_per_s)}"
        f"{_rates(proof.saturates_band)}."
    )
    parts.append(("Headroom", text))
    if proof.loss is not None:
        parts.append(("One replica dead", _loss(proof.loss)))
    if sizing.availability is not None:
        parts.append(("Spares", _availability(sizing.availability)))
    return parts


def _rates(band: Range | None) -> str:
    """` (80 %: 5.5 to 20)`."""
    return "" if band is None else f" (80 %: {rates(band.low, band.high)})"


def _availability(found: Availability) -> str:
    asked = ""
    if found.target_fraction is not None:
        asked = f" ({100 * found.target_fraction:.7g} % was asked for)"
    short_s = (1 - found.fleet_fraction) * SECONDS_A_YEAR
    return (
        f"With {shows.plural(found.num_spares, 'spare')}{asked} too few replicas are up for "
        f"{shows.duration(short_s)} a year, where a GPU fails every "
        f"{found.gpu_mtbf_s / 3600:,.0f} h and a replica is back after "
        f"{shows.duration(found.mttr_s)} (--mtbf, --mttr)."
    )


def _loss(loss: ReplicaLoss) -> str:
    fate = f"{shows.plural(loss.num_sent_again, 'attempt')} failed and came again"
    if loss.num_failed:
        fate += f", {shows.plural(loss.num_failed, 'request')} got no answer"
    missed = [
        f"{level.name} P{level.percentile:g} {shows.duration(level.value_s)}{_ends(level.band)}"
        for level in loss.levels
        if not level.holds and level.value_s is not None
    ]
    miss = f"miss: {', '.join(missed)}" if missed else "miss the goodput target"
    then = {
        True: "the others keep all limits",
        False: f"the others {_BEHIND if loss.falls_behind else miss}",
        None: "too few requests to tell whether the others keep the limits",
    }[loss.holds]
    return (
        f"When one of {loss.num_replicas} replicas dies, spares included: {fate}, the longest "
        f"first token took {shows.duration(loss.longest_ttft_s)}{_ends(loss.longest_ttft_band)}; "
        f"then {then}."
    )


_BEHIND = "keep each limit for now and fall behind: more comes in than goes out"


def _ends(band: Range | None) -> str:
    return "" if band is None else f" (80 %: {durations(band.low, band.high)})"
