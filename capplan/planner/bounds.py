"""The bounds of one tensor-parallel degree: what each limit asks for, and which one binds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from capplan.formulas import capacity
from capplan.formulas.queueing import concurrency, e2e_s
from capplan.planner.question import Question
from capplan.planner.replica import MeanStep, Replica
from capplan.results.bands import BandedFigure, ErrorBand, Range
from capplan.results.gpus import Bounds


@dataclass(frozen=True, slots=True)
class Sizing:
    """One TP degree: its bounds, or the limit that no number of GPUs would meet."""

    replica: Replica
    bounds: Bounds | None
    best_step: MeanStep | None
    fault: str | None

    @property
    def tp(self) -> int:
        return self.replica.tp


def size(replica: Replica) -> Sizing:
    """The bounds of a replica's degree, or the limit that stands in the way."""
    fault = replica.fault()
    best = replica.best_mean_step() if fault is None else None
    if best is None:
        return Sizing(replica, None, None, fault or "kv_memory")
    return Sizing(replica, _bounds(replica, best), best, None)


def with_bands(bounds: Bounds, replica: Replica, band: ErrorBand, gpus: BandedFigure) -> Bounds:
    """``band`` of throughput, ``gpus`` that of all limits together."""
    slow, quick = band.low_ratio, band.high_ratio
    rate, per_s = replica.question.workload.arrival_rate_per_s, replica.prefill_requests_per_s

    def ends(replicas: Callable[[float], int]) -> Range:
        return Range(replicas(quick) * replica.tp, replicas(slow) * replica.tp)

    return replace(
        bounds,
        num_gpus_decode_band=ends(lambda times: _decode_replicas(replica, times)),
        num_gpus_prefill_band=ends(lambda times: capacity.units_needed(rate, per_s * times)),
        num_gpus_combined_band=Range(gpus.low, gpus.high),
    )


def counted_as_given(bounds: Bounds, replica: Replica, band: ErrorBand) -> BandedFigure:
    """Where the user has measured what a replica makes, only its prefill is a prediction."""
    rate, per_s = replica.question.workload.arrival_rate_per_s, replica.prefill_requests_per_s
    least = max(_memory_replicas(replica), _decode_replicas(replica))

    def count(times_as_quick: float) -> int:
        return max(least, capacity.units_needed(rate, per_s * times_as_quick)) * replica.tp

    limits = (count(band.high_ratio), count(band.low_ratio))
    return BandedFigure.between("num_gpus", "mean", bounds.num_gpus_combined, limits, band)


def _bounds(replica: Replica, best: MeanStep) -> Bounds:
    question, tp = replica.question, replica.tp
    rate = question.workload.arrival_rate_per_s
    at_limits = _memory_replicas(replica)
    prefill = capacity.units_needed(rate, replica.prefill_requests_per_s)
    decode = _decode_replicas(replica)
    if question.fleet.replica_output_tokens_per_s is not None:
        combined = max(at_limits, decode, prefill)
    else:
        # The steady state minds the pool itself. Requests that finish sooner than the limits
        # allow hold memory for less time, so Little's law at the limits may ask for more.
        combined = max(decode, prefill, capacity.units_needed(rate, best.requests_per_s))
    memory = min(at_limits, combined)
    return Bounds(memory * tp, decode * tp, prefill * tp, combined * tp)


def _memory_replicas(replica: Replica) -> int:
    """Replicas whose pools hold everything in flight when each request takes its limits."""
    demand = concurrency_at_limits(replica.question) * replica.sequence_bytes_per_gpu
    pool = replica.pool
    if pool.keeps_nothing:
        return 1
    return capacity.units_needed(demand, pool.usable_blocks * pool.bytes_per_block)


def _decode_replicas(replica: Replica, times_as_quick: float = 1.0) -> int:
    question = replica.question
    workload = question.workload
    measured = question.fleet.replica_output_tokens_per_s
    if measured is not None:
        demand = workload.arrival_rate_per_s * workload.output_tokens
        return capacity.units_needed(demand, measured)
    # The first token comes out of the prefill.
    demand = workload.arrival_rate_per_s * (workload.output_tokens - 1)
    made = decode_tokens_per_s(replica) * times_as_quick
    return capacity.units_needed(demand, made) if demand else 1


def decode_tokens_per_s(replica: Replica) -> float:
    """Output tokens a second of pure decode at the largest batch within TPOT and the pool."""
    # At least 1: `Replica.fault` has made sure that one decode meets the limit.
    batch = max(1, replica.max_decode_batch)
    return batch / replica.decode_step_s(batch)


def concurrency_at_limits(question: Question) -> float:
    """Requests in flight when each takes exactly its limits (Little's law)."""
    limits = question.limits
    sojourn = e2e_s(limits.slo_ttft_s, limits.slo_tpot_s, question.workload.output_tokens)
    return concurrency(question.workload.arrival_rate_per_s, sojourn)


def most_requests_per_s(question: Question, best: MeanStep) -> float:
    """What one replica carries: as the user measured it, else the steady state's rate."""
    measured = question.fleet.replica_output_tokens_per_s
    if measured is None:
        return best.requests_per_s
    return measured / question.workload.output_tokens


def binding_of(replica: Replica, bounds: Bounds, best: MeanStep) -> tuple[str, str]:
    """The single bound that asks for the most GPUs, or the combination that asks for more."""
    singles = {"decode": bounds.num_gpus_decode, "prefill": bounds.num_gpus_prefill}
    if _memory_replicas(replica) * replica.tp <= bounds.num_gpus_combined:
        singles["memory"] = bounds.num_gpus_memory
    most = max(singles, key=lambda name: singles[name])
    if bounds.num_gpus_combined == singles[most]:
        limit = {"memory": "kv_memory", "decode": "tpot", "prefill": "compute"}[most]
        if most == "decode" and replica.question.fleet.replica_output_tokens_per_s:
            limit = "given_throughput"
        elif most == "decode" and replica.max_decode_batch == replica.max_sequences:
            limit = "kv_memory"
        return most, limit
    return "combined", replica.limit_beyond(best)
