"""What a replica sustains within its limits, by simulation, and the fleet that follows."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.results.bands import BandedFigure, ErrorBand, Range


@dataclass(frozen=True, slots=True)
class Level:
    """One limit and what was simulated: the percentile with its 95 % interval, and its error band.

    ``value_s`` is None where no request has the measure; ``kind`` is a class of the traffic.
    """

    key: str  # ttft | tpot | e2e
    name: str
    percentile: float
    limit_s: float
    value_s: float | None
    low_s: float | None
    high_s: float | None
    kind: str | None
    band: Range | None = None

    @property
    def holds(self) -> bool:
        return self.value_s is None or self.value_s <= self.limit_s

    @property
    def used_fraction(self) -> float:
        """Of the limit."""
        return 0.0 if self.value_s is None else self.value_s / self.limit_s


@dataclass(frozen=True, slots=True)
class SizedPoint:
    """A rate that the search for the highest one tried, and what decided it.

    ``level`` is the limit nearest to being missed, or missed by most; ``was_longer``: its interval
    covered the limit, and a longer run then stood as it was.
    """

    requests_per_s: float  # of one replica
    num_replicas: int  # together
    num_requests: int
    was_longer: bool
    holds: bool
    level: Level


@dataclass(frozen=True, slots=True)
class Sustained:
    """The highest rate at which a group of replicas keeps all limits, and how far each is.

    ``requests_per_s`` is that of one replica, in a group of ``num_replicas`` behind the router.
    ``binding`` is the limit that fails at ``fails_at_per_s``, the next rate of the grid.
    """

    requests_per_s: float
    num_replicas: int
    binding: str
    fails_at_per_s: float
    levels: tuple[Level, ...]
    goodput_fraction: float
    num_points: int
    num_requests: int
    points: tuple[SizedPoint, ...] = ()  # in the order in which they were tried
    band: Range | None = None  # of requests_per_s


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of replica that was looked at, and the fleet of it that serves the demand.

    Counts are None where it was not simulated to the end; ``reason`` then says why: ``weights``,
    ``kv_memory``, ``ttft``, ``tpot``, ``e2e`` (no replica keeps it without any load),
    ``interconnect`` (no link joins so many, or a limit is missed for the collectives alone),
    ``load`` (nor at the lowest load), ``dominated`` (its bound already needs more than the best),
    ``unsupported``.
    """

    hardware: str
    tp: int
    pp: int
    dp: int  # copies of the attention that share the experts
    ep: int
    dtype: str
    kv_dtype: str
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    enable_prefix_caching: bool | None
    gpus_per_replica: int
    bound_requests_per_s: float | None  # of a replica: means, no queue
    collective_fraction: float | None  # of a step at the bound: what TP costs
    reason: str | None
    words: str | None
    sustained: Sustained | None
    num_replicas: int | None
    num_gpus: int | None
    num_gpus_rounded: int | None
    usd_per_hour: float | None
    peak_power_w: float | None
    e2e_s: float | None  # at the limits' percentile, at the sustained rate
    num_gpus_band: Range | None = None
    e2e_band: Range | None = None

    @property
    def simulated(self) -> bool:
        return self.sustained is not None


@dataclass(frozen=True, slots=True)
class TradeOff:
    """A fleet on the frontier of cost against latency: fewer requests a replica, sooner served."""

    hardware: str
    tp: int
    pp: int
    dp: int
    ep: int
    num_gpus: int
    usd_per_hour: float | None
    requests_per_s: float  # of a replica
    ttft_s: float
    tpot_s: float | None
    e2e_s: float
    bands: tuple[BandedFigure, ...]  # of the GPUs and the latencies


@dataclass(frozen=True, slots=True)
class ReplicaLoss:
    """What a simulation shows when one replica dies under the planned rate."""

    num_replicas: int  # before, spares included
    num_sent_again: int
    num_failed: int
    longest_ttft_s: float
    longest_ttft_band: Range
    holds: bool | None  # the limits, from the recovery on; None: too few requests to tell
    falls_behind: bool  # more comes in than goes out, though each limit still holds
    levels: tuple[Level, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """The chosen fleet simulated at the planned rate, router included, with its own random numbers.

    A rate that is held is raised to the next of the grid of rates: ``rate_per_s``, of the fleet.
    ``course`` says how the traffic came where it changes: a trace, a curve over the day.
    ``num_added`` replicas were needed beyond those that were sized. ``saturates_at_per_s`` is the
    rate of the fleet, by the closed form, beyond which queues grow without end.
    """

    holds: bool
    num_replicas: int
    num_added: int
    router: str
    course: str | None
    rate_per_s: float
    num_requests: int
    num_measured: int
    busy_fraction: float
    kv_used_fraction: float | None
    levels: tuple[Level, ...]
    goodput_fraction: float | None
    saturates_at_per_s: float
    saturates_band: Range
    loss: ReplicaLoss | None


@dataclass(frozen=True, slots=True)
class Variation:
    """How the count moves when one thing is otherwise, everything else the same.

    ``num_gpus`` are those of the replicas that carry the load; None where no number is enough.
    """

    key: str  # traffic | model | prompt | output | burstiness
    what: str
    value: str
    num_gpus: int | None
    num_gpus_rounded: int | None
    num_gpus_band: Range | None  # None where the model's error is what is varied


@dataclass(frozen=True, slots=True)
class Month:
    """The fleet that the traffic of a month needs; month 0 is today."""

    month: int
    arrival_rate_per_s: float
    num_gpus: int
    num_gpus_rounded: int
    usd_per_hour: float | None
    num_gpus_band: Range


@dataclass(frozen=True, slots=True)
class Availability:
    """The share of time in which enough replicas are up, each failing by itself."""

    gpu_mtbf_s: float
    mttr_s: float
    replica_fraction: float
    num_spares: int
    fleet_fraction: float
    target_fraction: float | None


@dataclass(frozen=True, slots=True)
class Sizing:
    """How the answer was found and what proves it."""

    objective: str
    percentile: float | None  # of every limit, where they share one
    kinds: tuple[Kind, ...]  # best first, then those that were left out
    trade_offs: tuple[TradeOff, ...]
    proof: Proof | None
    model_band: ErrorBand | None  # of what a replica carries: measured over predicted
    variations: tuple[Variation, ...]
    availability: Availability | None
    months: tuple[Month, ...]
