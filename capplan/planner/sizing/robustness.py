"""How the count moves when the world is otherwise: traffic, lengths, bursts, the model's error."""

from __future__ import annotations

from dataclasses import dataclass, replace

from capplan.performance.bands import band_for
from capplan.planner.fleet import fleet_of
from capplan.planner.question import Workload
from capplan.planner.simulated_bands import key_of
from capplan.planner.sizing.banded import count_range
from capplan.planner.sizing.candidates import Candidate
from capplan.planner.sizing.demand import Demand
from capplan.planner.sizing.objectives import usd_per_hour
from capplan.planner.sizing.parallel import run_all
from capplan.planner.sizing.search import Search, Sized
from capplan.planner.sizing.sustained import replicas_at, replicas_for, whole_replicas
from capplan.results.bands import ErrorBand
from capplan.results.sizing import Month, Variation
from capplan.simulator.fleet.settings import Routing
from capplan.specs.randomness import Arrivals

TRAFFIC = (0.8, 1.2)
LENGTHS = (0.8, 1.2)
BURSTINESS = (1.0, 2.0, 3.0)


def model_band(best: Sized) -> ErrorBand:
    """Of what a replica carries, from measured rows like it at full load."""
    return band_for("throughput", key_of(best.candidate.serving, 1.0))


def at_rates(best: Sized, aims: Search) -> tuple[Variation, ...]:
    """What follows from the sustained rate alone: other traffic, and a model that is wrong."""
    sustained, base = best.kind.sustained, best.kind.num_replicas
    assert sustained is not None
    assert base is not None
    candidate, need, band = best.candidate, aims.demand.peak_per_s, model_band(best)
    found = []
    for factor in TRAFFIC:
        num = covers(best, need, need * factor)
        other = _variation(candidate, "traffic", "traffic", f"{factor - 1:+.0%}", num)
        found.append(_banded(other, candidate, need * factor, sustained.requests_per_s))
    for word, ratio in (("pessimistic", band.high_ratio), ("optimistic", band.low_ratio)):
        # As the count's band has it; never on the other side of today's count.
        num = whole_replicas(need / (sustained.requests_per_s * ratio))
        num = max(num, base) if word == "optimistic" else min(num, base)
        what, value = f"the model is {word}", f"x {ratio:.2f}"
        found.append(_variation(candidate, "model", what, value, num))
    return tuple(found)


def covers(best: Sized, need_per_s: float, rate_per_s: float) -> int:
    """Replicas for another rate than today's, each with what it carries in today's fleet.

    Where the proof added some, as many more are added in proportion.
    """
    sustained, base = best.kind.sustained, best.kind.num_replicas
    assert sustained is not None
    assert base is not None
    today, then = (replicas_at(rate, sustained.requests_per_s) for rate in (need_per_s, rate_per_s))
    return in_proportion(then, base, today)


def in_proportion(num_replicas: int, base: int, today: int) -> int:
    """As many more as stand there today beyond the ``today`` that would be enough."""
    return num_replicas if base <= today else whole_replicas(num_replicas * base / today)


def simulated(best: Sized, aims: Search) -> tuple[Variation, ...]:
    """Lengths and bursts: each a search of its own."""
    demand = aims.demand
    cases: list[tuple[str, str, str, Demand]] = []
    for factor in LENGTHS:
        by = f"{factor - 1:+.0%}"
        cases.append(("prompt", "prompt length", by, demand.with_lengths(prompt=factor)))
        cases.append(("output", "output length", by, demand.with_lengths(output=factor)))
    cases += [
        ("burstiness", "CV of the gaps", f"{cv:g}", demand.with_arrivals(Arrivals("gamma", cv=cv)))
        for cv in BURSTINESS
    ]
    # Without a router that looks at load each replica sees the bursts of its own arrivals.
    blind = replace(aims, routing=Routing(policy="random"))
    cases_of = [(*case, aims) for case in cases]
    cases_of.append(("router", "router", "random", demand, blind))
    numbers = run_all(lambda case: _replicas(best.candidate, case[3], case[4]), cases_of)
    return tuple(
        _banded(_variation(best.candidate, key, what, value, num), best.candidate, other.peak_per_s)
        for (key, what, value, other, _), num in zip(cases_of, numbers, strict=True)
    )


def _banded(
    variation: Variation, candidate: Candidate, rate_per_s: float, carried_per_s: float = 0.0
) -> Variation:
    """With the band of the count; without what a replica carries it is taken as needed."""
    if variation.num_gpus is None:
        return variation
    band = count_range(candidate, variation.num_gpus, rate_per_s, carried_per_s)
    return replace(variation, num_gpus_band=band)


def _replicas(candidate: Candidate, demand: Demand, aims: Search) -> int | None:
    traffic = demand.traffic(1.0, 1000, 0)
    workload = Workload(
        demand.peak_per_s,
        max(1, round(traffic.mean_prompt_tokens)),
        max(1, round(traffic.mean_output_tokens)),
    )
    own = Candidate(
        replace(candidate.question, workload=workload),
        candidate.serving,
        candidate.slo_e2e_s,
        demand.own_prompt_tokens,
    )
    if own.best is None:
        return None
    found = replicas_for(replace(aims, demand=demand).curve(own), demand.peak_per_s)
    return None if found is None else found[0]


def _variation(
    candidate: Candidate, key: str, what: str, value: str, num_replicas: int | None
) -> Variation:
    if num_replicas is None:
        return Variation(key, what, value, None, None, None)
    fleet = fleet_of(candidate.question, num_replicas, candidate.gpus_per_replica)
    return Variation(key, what, value, fleet.num_gpus, fleet.num_bought, None)


@dataclass(frozen=True, slots=True)
class Growth:
    """Traffic times (1 + ``per_month``) each month, for so many months."""

    per_month: float
    num_months: int


def months(best: Sized, aims: Search, growth: Growth | None) -> tuple[Month, ...]:
    """The fleet of every month, of the kind that is best today."""
    if growth is None:
        return ()
    sustained, need = best.kind.sustained, aims.demand.peak_per_s
    assert sustained is not None
    question, each = best.candidate.question, best.candidate.gpus_per_replica
    found: list[Month] = []
    for month in range(growth.num_months + 1):
        rate = need * (1 + growth.per_month) ** month
        num = covers(best, need, rate)
        fleet = fleet_of(question, num, each)
        band = count_range(best.candidate, fleet.num_gpus, rate, sustained.requests_per_s)
        bill = usd_per_hour(question, fleet)
        found.append(Month(month, rate, fleet.num_gpus, fleet.num_bought, bill, band))
    return tuple(found)
