"""The answer of `capplan simulate` as a screen."""

from __future__ import annotations

from collections.abc import Sequence

from capplan.render import shows
from capplan.render.bands import band_table
from capplan.render.replicas import replica_table
from capplan.render.screen import Column, Screen, Table
from capplan.render.service_levels import inside_notes, levels_table, percentile_name
from capplan.render.simulate_tsv import for_programs
from capplan.render.traffic_classes import class_table
from capplan.results.assumptions import Assumption
from capplan.results.simulate import (
    Percentile,
    SimulateInputs,
    SimulateResult,
)

_VERDICTS = {
    "meets": "every limit holds.",
    "saturated": "more comes in than goes out.",
    "undecided": "too few requests to tell.",
    "interrupted": "interrupted; this is what is known so far.",
    "no-requests": "no request was answered.",
}
_ENDS = {
    "stalled": "The engine stalled: requests wait for blocks that nobody will free.",
    "livelock": "The engine runs in circles: requests preempt each other and get no token.",
}
_ENDLESS = (
    "Percentiles are left out: they would say how long the run was, not how good the service is."
)
_FINITE = "The percentiles are those of this run; a longer one would have worse."
MOST_PERCENTILES = 4  # beside each other
MODELLED = (
    "Queueing, batching and memory follow the engine's own scheduler step for step; how long a "
    "step takes is the performance model's, at the rates under Assumed."
)
DOCUMENTED = (
    "Queueing, batching and memory follow the engine's documented rules, which were not compared "
    "with recorded steps; how long a step takes is the performance model's, at the rates under "
    "Assumed."
)


def screen(
    result: SimulateResult, inputs: SimulateInputs, assumptions: Sequence[Assumption]
) -> Screen:
    tables = []
    if result.service_levels:
        tables.append(levels_table(result))
    if result.latencies and result.num_measured:
        tables.append(_latencies(result))
    if result.bands:
        tables.append(band_table(result.bands, _banded_statistics(result)))
    if result.classes:
        tables.append(class_table(result.classes, result.bands))
    tables.append(_load(result, inputs))
    if len(result.replicas) > 1:
        tables.append(replica_table(result.replicas))
    return Screen(
        headline=_headline(result, inputs),
        tables=tables,
        notes=_notes(result, inputs),
        assumptions=assumptions,
        next_commands=_next(result, inputs, assumptions),
        tsv=for_programs(result, inputs),
    )


def deployment(inputs: SimulateInputs) -> str:
    """`2 x (TP 4, h100-sxm-80gb)`."""
    gpus = f"{inputs.num_replicas * inputs.tp * inputs.pp * inputs.dp} x {inputs.hardware}"
    degrees = ", ".join(shows.degrees(inputs.tp, inputs.pp, inputs.dp, inputs.ep))
    return f"{gpus} ({shows.plural(inputs.num_replicas, 'replica')} x {degrees})"


def _headline(result: SimulateResult, inputs: SimulateInputs) -> str:
    verdict = _VERDICTS.get(result.verdict) or _misses(result)
    text = f"{inputs.model_name} on {deployment(inputs)}, {inputs.traffic}: {verdict}\n"
    counted = f"{result.num_measured:,} of {shows.plural(result.num_requests, 'request')} count"
    if result.warmup_s > 0:
        counted += f" ({shows.duration(result.warmup_s)} of warm-up cut)"
    text += f"{counted}; {shows.duration(result.window_s)} measured"
    if inputs.num_replications > 1:
        text += f" over {inputs.num_replications} replications"
    return text + f", seed {inputs.seed}."


def _misses(result: SimulateResult) -> str:
    missed = [level.name for level in result.service_levels if level.met is False]
    if result.goodput and result.goodput.met is False:
        missed.append("goodput")
    return f"{' and '.join(missed) or 'the run'} {'miss' if len(missed) > 1 else 'misses'}."


def _banded_statistics(result: SimulateResult) -> list[str]:
    """The mean, the median and the uppermost: more would not fit."""
    if not result.latencies:
        return ["mean"]
    known = [percentile_name(p.percentile) for p in result.latencies[0].percentiles]
    return ["mean", *dict.fromkeys((known[0], known[-1]))]


def _latencies(result: SimulateResult) -> Table:
    known = range(len(result.latencies[0].percentiles))
    # The median and the upper ones: more would not fit.
    kept = [known[0], *known[1:][-(MOST_PERCENTILES - 1) :]]
    names = [percentile_name(result.latencies[0].percentiles[i].percentile) for i in kept]
    columns = (
        Column("measure", "", right=False),
        Column("mean_s", "mean", shows.duration),
        *(Column(name.lower().replace(".", "_"), name) for name in names),
        Column("interval", f"{names[-1]} 95 %\n±", shows.duration),
        Column("max_s", "max", shows.duration),
    )
    rows = [
        (
            latency.name,
            latency.mean_s,
            *(_value(latency.percentiles[i]) for i in kept),
            _half_width(latency.percentiles[kept[-1]]),
            latency.max_s,
        )
        for latency in result.latencies
        if latency.num_samples
    ]
    return Table("Latencies", columns, rows, note=_latency_note(result), in_tsv=False)


def _latency_note(result: SimulateResult) -> str:
    text = "ITL over all gaps between tokens, the others over requests."
    if result.interval:
        text += f" ±: 95 % interval from {result.interval}."
    missing = {
        percentile.percentile: percentile.num_needed
        for found in result.latencies
        for percentile in found.percentiles
        if percentile.num_needed is not None
    }
    if missing:
        needs = ", ".join(f"{percentile_name(p)} needs {n:,}" for p, n in sorted(missing.items()))
        text += f" -: fewer than ten beyond; {needs} of them."
    return text


def _value(percentile: Percentile) -> str | None:
    return None if percentile.value_s is None else shows.duration(percentile.value_s)


def _half_width(percentile: Percentile) -> float | None:
    if percentile.value_s is None or percentile.high_s is None:
        return None
    return percentile.high_s - percentile.value_s


def _load(result: SimulateResult, inputs: SimulateInputs) -> Table:
    usage, state = result.usage, result.saturation
    seats = f"{usage.max_running:,} running at most (max_num_seqs {inputs.max_num_seqs:,})"
    rows: list[tuple[str, str, str]] = [
        ("served", shows.rate(state.served_per_s), f"of {shows.rate(state.offered_per_s)} offered"),
    ]
    if result.goodput and result.verdict != "saturated":
        target = result.goodput.target_fraction
        met = f"{shows.share(result.goodput.met_fraction)} of the requests meet every limit"
        met += f" (target {shows.share(target)})" if target else ""
        rows.append(("goodput", shows.rate(result.goodput.goodput_per_s), met))
    rows.append(
        (
            "output tokens",
            f"{shows.tokens(result.output_tokens_per_s)}/s",
            f"{shows.tokens(result.prompt_tokens_per_s)}/s of prompts",
        )
    )
    if usage.mean_step_s and usage.mean_batch is not None and usage.mean_step_tokens:
        rows.append(
            (
                "step",
                shows.duration(usage.mean_step_s),
                f"{shows.share(usage.busy_fraction)} of the time busy",
            )
        )
        rows.append(("decodes a step", shows.number(usage.mean_batch), seats))
        budget = f"of max_num_batched_tokens {inputs.max_num_batched_tokens:,}"
        rows.append(("tokens a step", shows.number(usage.mean_step_tokens), budget))
    if usage.kv_used_fraction is not None:
        blocks = f"{inputs.num_gpu_blocks - 1:,} blocks of {inputs.block_size} tokens"
        most = f"{shows.share(usage.kv_used_fraction_max)} at most, of {blocks} a replica"
        rows.append(("KV in use", shows.share(usage.kv_used_fraction), most))
    rows += _events(result)
    columns = (
        Column("what", "", right=False),
        Column("value", ""),
        Column("more", "", right=False, prose=True),
    )
    return Table("Load", columns, rows, in_tsv=False)


def _events(result: SimulateResult) -> list[tuple[str, str, str]]:
    """Rows that are only shown where there is something to say."""
    usage = result.usage
    rows = []
    if usage.num_preemptions:
        rows.append(("preemptions", f"{usage.num_preemptions:,}", "evicted and computed again"))
    if usage.wasted_tokens:
        share = f"{shows.share(usage.wasted_fraction)} of all: computed again, or for nobody"
        rows.append(("tokens wasted", f"{usage.wasted_tokens:,}", share))
    if usage.prefix_hit_fraction:
        hits = shows.share(usage.prefix_hit_fraction)
        rows.append(("prefix hits", hits, "of the prompt tokens were in the cache"))
    if result.num_attempts > result.num_requests:
        more = f"for {result.num_requests:,} requests: users sent again"
        rows.append(("attempts", f"{result.num_attempts:,}", more))
    rows += [(item.end, f"{item.count:,}", item.why or "") for item in result.unanswered]
    return rows


def _notes(result: SimulateResult, inputs: SimulateInputs) -> list[str]:
    notes = []
    state = result.saturation
    if state.saturated:
        notes.append(
            f"More comes in than goes out: {shows.rate(state.offered_per_s)} are offered, "
            f"{shows.rate(state.served_per_s)} served; {state.num_present_half:,} requests were in "
            f"the system half way, {state.num_present_end:,} at the last arrival. To drain what "
            f"had queued up took {shows.duration(result.drain_s)}. "
            + (_ENDLESS if result.verdict == "saturated" else _FINITE)
        )
    elif state.too_short and result.num_measured:
        notes.append(
            "The arrivals last less than four times as long as a quick request: nothing settles, "
            "and a queue that grows would not be seen. Ask for more requests or a longer "
            "duration for a steady state."
        )
    if result.end in _ENDS:
        notes.append(_ENDS[result.end])
    if result.bottleneck == "seats":
        notes.append(
            f"Every seat was taken at times: max_num_seqs {inputs.max_num_seqs:,} makes requests "
            "wait."
        )
    elif result.bottleneck == "kv":
        notes.append("The KV pool ran full: requests were evicted and computed again.")
    return [*notes, *inside_notes(result), MODELLED if "(V1)" in inputs.engine else DOCUMENTED]


def _next(
    result: SimulateResult, inputs: SimulateInputs, assumptions: Sequence[Assumption]
) -> list[str]:
    same = question(inputs, assumptions)
    commands = [f"capplan pareto {same}".rstrip()]
    rate = inputs.arrival_rate_per_s
    if result.verdict == "saturated" and rate is not None and inputs.plan is None:
        commands.insert(0, f"capplan gpus --qps {rate:g} {same}".rstrip())
    return commands


def question(inputs: SimulateInputs, assumptions: Sequence[Assumption]) -> str:
    """The options that ask about the same deployment, those left out that were not given."""
    if inputs.plan is not None:
        return f"--plan {inputs.plan} "
    assumed = {assumption.option for assumption in assumptions}
    given = {"--model": inputs.model, "--hardware": inputs.hardware}
    return "".join(f"{option} {name} " for option, name in given.items() if option not in assumed)
