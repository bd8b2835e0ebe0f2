"""How wrong a prediction tends to be: a range around it, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ErrorBand:
    """Four of five measurements like this one lay within ``low`` to ``high`` x the prediction.

    ``num_rows`` measured rows are behind it, those of ``like``. Where nothing like it was
    measured the widest band stands, and ``is_measured`` is False. Of a calibration the errors of
    ``num_own_runs`` left-out runs have a share of ``own_fraction`` in it; where those are of other
    servers (``own_unlike``: of which), they only widen it.
    """

    figure: str  # "tpot", "ttft", "ttft_p99", "throughput"
    low_ratio: float
    high_ratio: float
    coverage_fraction: float
    num_rows: int
    like: str
    is_measured: bool
    num_own_runs: int = 0
    own_fraction: float = 0.0
    own_unlike: str | None = None

    def around(self, value: float) -> tuple[float, float]:
        """The band of a predicted value, in its unit."""
        return value * self.low_ratio, value * self.high_ratio

    @property
    def words(self) -> str:
        """What the band rests on, for a screen."""
        table = f"{self.num_rows:,} measured rows of {self.like}"
        if not self.is_measured:
            table = f"not measured: the widest of {self.num_rows:,} rows"
        if not self.num_own_runs:
            return table
        runs = f"{self.num_own_runs:,} of your runs"
        if self.own_unlike is not None:
            return f"{table}; {runs}, of {self.own_unlike}, do not narrow it"
        return f"{runs} ({self.own_fraction:.0%}) and {table} ({1 - self.own_fraction:.0%})"


@dataclass(frozen=True, slots=True)
class Range:
    """The ends of an error band, in the unit of the figure that it stands beside."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class BandedFigure:
    """A predicted figure with its band, and the cell of the table that the band is from.

    ``value``, ``low`` and ``high`` are seconds for latencies, tokens or requests a second for
    throughput, and a number of GPUs.
    """

    # ttft | tpot | itl | e2e | queue | step | output_tokens_per_s | requests_per_s |
    # goodput_per_s | num_gpus | num_gpus_rounded
    figure: str
    statistic: str  # mean | P50 | P99 | max | P99 of chat ..
    value: float
    low: float
    high: float
    coverage_fraction: float
    rows: int
    cell: str
    is_measured: bool
    words: str
    own_runs: int = 0  # of a calibration

    @classmethod
    def of(cls, figure: str, statistic: str, value: float, band: ErrorBand) -> BandedFigure:
        """A figure whose band is simply that of the table."""
        return cls.between(figure, statistic, value, band.around(value), band)

    @classmethod
    def between(
        cls,
        figure: str,
        statistic: str,
        value: float,
        limits: tuple[float, float],
        band: ErrorBand,
    ) -> BandedFigure:
        """A figure made of several, or held by something else; ``band`` is the main one."""
        return cls(
            figure, statistic, value, *limits, band.coverage_fraction, band.num_rows, band.like,
            band.is_measured, band.words, band.num_own_runs,
        )  # fmt: skip


def statistic_name(percentile: float | None, kind: str | None = None) -> str:
    """What the bands of a percentile are called: `P99`, `P99 of chat`, `mean` without one."""
    name = "mean" if percentile is None else f"P{percentile:g}"
    return f"{name} of {kind}" if kind else name
