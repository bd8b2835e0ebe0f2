"""Schedulers side by side, as a screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from capplan.render import shows
from capplan.render.band_columns import with_ends
from capplan.render.band_shares import shares_note
from capplan.render.bands import behind_note
from capplan.render.screen import Column, Screen, Table
from capplan.results.assumptions import Assumption
from capplan.results.bands import BandedFigure
from capplan.results.schedulers import SchedulerRow, SchedulersInputs, SchedulersResult

_ALLOCATIONS = {
    "paged": "no, paged",
    "exact": "true length",
    "power_of_two": "next 2^n",
    "max_tokens": "max_tokens",
    "max_model_len": "longest of all",
}
# Columns whose bands are called otherwise.
_OWN_NAMES = {
    "ttft_longest_prompt_s": "longest_prompt_ttft_s",
    "itl_longest_gap_s": "longest_gap_s",
}
NOT_CHECKED = (
    "vLLM V1 is the exact scheduler, compared with the real one step for step. The others are "
    "small policies on one loop, written from papers and documentation; those of TensorRT-LLM and "
    "SGLang are not trace-checked. Memory, slots and step times are the same for all."
)


def screen(
    result: SchedulersResult, inputs: SchedulersInputs, assumptions: Sequence[Assumption]
) -> Screen:
    return Screen(
        headline=_headline(result, inputs),
        tables=[_latencies(result), _machine(result)],
        notes=[*_effects(result), NOT_CHECKED, *_sure(result)],
        assumptions=assumptions,
        next_commands=_next(inputs),
        tsv=_for_programs(result),
    )


def _headline(result: SchedulersResult, inputs: SchedulersInputs) -> str:
    subject = f"{inputs.model_name} on {inputs.tp * inputs.pp} x {inputs.hardware}, "
    subject += inputs.traffic
    if not result.rows:
        return f"{subject}: interrupted; nothing is known yet."
    most = max(row.output_tokens_per_s for row in result.rows)
    best = next(row for row in result.rows if row.output_tokens_per_s > 0.995 * most)
    text = f"{subject}: {shows.plural(result.num_requests, 'request')} under "
    text += f"{len(result.rows)} schedulers.\n"
    quick = [row for row in result.rows if row.longest_gap_s is not None]
    if not quick:
        return text
    calm = min(quick, key=lambda row: row.longest_gap_s or 0.0)
    long = max(quick, key=lambda row: row.longest_gap_s or 0.0)
    return text + (
        f"Most tokens: {best.name} ({shows.tokens(best.output_tokens_per_s)} tok/s). The longest "
        f"wait for a next token: {shows.duration(calm.longest_gap_s or 0.0)} under {calm.name} to "
        f"{shows.duration(long.longest_gap_s or 0.0)} under {long.name}."
    )


def _latencies(result: SchedulersResult) -> Table:
    prompts = shows.plural(result.num_longest_prompts, "prompt")
    columns = (
        Column("name", "", right=False, prose=True),
        Column("output_tokens_per_s", "output\ntok/s", shows.tokens),
        Column("ttft_p50_s", "TTFT\nP50", shows.duration),
        Column("ttft_p99_s", "TTFT\nP99", shows.duration),
        Column("longest_prompt_ttft_s", "longest\nprompt", shows.duration),
        Column("itl_p50_s", "ITL\nP50", shows.duration),
        Column("itl_p99_s", "ITL\nP99", shows.duration),
        Column("longest_gap_s", "longest\nstall", shows.duration),
    )
    rows = [
        (
            _name(row),
            row.output_tokens_per_s,
            row.ttft_p50_s,
            row.ttft_p99_s,
            row.longest_prompt_ttft_s,
            row.itl_p50_s,
            row.itl_p99_s,
            row.longest_gap_s,
        )
        for row in result.rows
    ]
    note = (
        f"Longest prompt: the mean TTFT of {prompts} of {result.longest_prompt_tokens:,} tokens. "
        "Longest stall: that a running request waited for its next token. A dash: fewer than ten "
        "samples lie beyond."
    )
    bands = shares_note([(row.name, _shown(row)) for row in result.rows])
    if bands is not None:
        note += f" {bands}"
    return Table("What users see", columns, rows, note=note, in_tsv=False)


def _shown(row: SchedulerRow) -> list[BandedFigure]:
    return [
        replace(band, statistic=band.statistic.replace("_", " "))
        for band in row.bands
        if band.statistic not in ("max", "longest_gap") or band.figure == "itl"
    ]


def _machine(result: SchedulersResult) -> Table:
    columns: tuple[Column, ...] = (
        Column("name", "", right=False, prose=True),
        Column("kv", "KV\nreserved", right=False, prose=True),
        Column("max_num_batched_tokens", "token\nbudget", shows.count),
        Column("wasted_slot_fraction", "wasted\nslots", shows.share),
        Column("max_running", "most\nrunning", shows.count),
        Column("num_preemptions", "evic-\ntions", shows.count),
        Column("end_s", "all done\nafter", shows.duration),
    )
    lost = any(row.num_answered < result.num_requests for row in result.rows)
    if lost:
        columns = (*columns, Column("num_answered", "ans-\nwered", shows.count))
    rows = [
        (
            _name(row),
            _ALLOCATIONS[row.kv_allocation],
            row.max_num_batched_tokens,
            row.wasted_slot_fraction,
            row.max_running,
            row.num_preemptions,
            row.end_s,
            *((row.num_answered,) if lost else ()),
        )
        for row in result.rows
    ]
    note = (
        "KV reserved at admission: prompt and max_tokens (max_model_len for static batching), or "
        "blocks as they are needed. Wasted slots (bubbles): of the slots held, step by step, those "
        "that neither computed a prompt nor got a token."
    )
    return Table("What the machine does", columns, rows, note=note, in_tsv=False)


def _sure(result: SchedulersResult) -> list[str]:
    """What is behind the bands: no policy was measured but the engines'."""
    full = next((row for row in reversed(result.rows) if row.bands), None)
    if full is None:
        return []
    return [
        "Bands are those of the engine that was asked for, at the load of each row: of the other "
        f"schedulers no server was measured. {behind_note(full.bands)}"
    ]


def _next(inputs: SchedulersInputs) -> list[str]:
    what = f"--plan {inputs.plan}"
    if inputs.plan is None:
        what = f"--model {inputs.model} --hardware {inputs.hardware}"
    return [f"capplan simulate {what}"]


def _name(row: SchedulerRow) -> str:
    return row.name + (f" ({row.end})" if row.end != "finished" else "")


def _effects(result: SchedulersResult) -> list[str]:
    """What the pairs of rows show, where both are there."""
    rows = {row.key: row for row in result.rows}
    notes = []
    static, orca = rows.get("static"), rows.get("orca")
    if static and static.wasted_slot_fraction and orca:
        notes.append(
            f"Static batching wastes {shows.share(static.wasted_slot_fraction)} of its slots on "
            f"who has finished, and computes {static.padding_tokens:,} tokens of padding to make "
            "prompts equally long; at iteration level a slot is given back at once."
        )
    whole, cut = rows.get("prefill-first") or orca, rows.get("chunked")
    gaps = (whole and whole.longest_gap_s, cut and cut.longest_gap_s)
    if whole and cut and gaps[0] and gaps[1] and gaps[0] > 1.2 * gaps[1]:
        notes.append(_blocking(whole, cut))
    soonest_s = min((row.end_s for row in result.rows), default=0.0)
    slow = [row.name for row in result.rows if row.end_s > 1.2 * soonest_s]
    if slow:
        notes.append(
            f"Done long after the others: {', '.join(slow)}. Percentiles there say how long the "
            "run was."
        )
    refused = max((row.num_refused for row in result.rows), default=0)
    if refused:
        notes.append(f"Refused by some, as too long: {shows.plural(refused, 'request')}.")
    first, last = rows.get("prefill-first"), rows.get("decode-first")
    if first and last and first.ttft_mean_s and last.ttft_mean_s and last.itl_p99_s:
        notes.append(
            f"Prefill first: mean TTFT {shows.duration(first.ttft_mean_s)}, ITL P99 "
            f"{shows.duration(first.itl_p99_s or 0.0)}; decode first: "
            f"{shows.duration(last.ttft_mean_s)} and {shows.duration(last.itl_p99_s)}."
        )
    return notes


def _blocking(whole: SchedulerRow, cut: SchedulerRow) -> str:
    text = (
        f"Whole prompts block the line: a stall of {shows.duration(whole.longest_gap_s or 0.0)}, "
        f"{shows.duration(cut.longest_gap_s or 0.0)} in chunks."
    )
    before_s, after_s = whole.longest_prompt_ttft_s, cut.longest_prompt_ttft_s
    if before_s and after_s and after_s > before_s:
        text += (
            f" The price: the first token of the longest prompt comes after "
            f"{shows.duration(after_s)} instead of {shows.duration(before_s)} "
            f"(+{shows.share(after_s / before_s - 1)})."
        )
    return text


def _for_programs(result: SchedulersResult) -> Table:
    """One row a scheduler, the ends of a band behind its figure."""
    names = [name for name in SchedulerRow.__slots__ if name != "bands"]
    rows = [
        with_ends(
            {name: getattr(row, name) for name in names},
            row.bands, also=_OWN_NAMES.values(), called=_OWN_NAMES,
        )
        for row in result.rows
    ]  # fmt: skip
    columns = [Column(name, name) for name in (rows[0] if rows else names)]
    return Table("schedulers", columns, [list(row.values()) for row in rows])
