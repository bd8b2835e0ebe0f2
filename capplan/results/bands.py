"""How wrong a prediction tends to be: a range around it, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ErrorBand:
    """Four of five measurements like this one lay within ``low`` to ``high`` x the prediction.

    ``num_rows`` measured rows are behind it, those of ``like``. Where nothing like it was
    measured the widest band stands, and ``is_measured`` is False.
    """

    figure: str  # "tpot", "ttft", "ttft_p99", "throughput"
    low_ratio: float
    high_ratio: float
    coverage_fraction: float
    num_rows: int
    like: str
    is_measured: bool

    def around(self, value: float) -> tuple[float, float]:
        """The band of a predicted value, in its unit."""
        return value * self.low_ratio, value * self.high_ratio

    @property
    def words(self) -> str:
        """What the band rests on, for a screen."""
        if not self.is_measured:
            return f"not measured: the widest of {self.num_rows:,} rows"
        return f"{self.num_rows:,} measured rows of {self.like}"


@dataclass(frozen=True, slots=True)
class BandedFigure:
    """A predicted figure with its band, and the cell of the table that the band is from.

    ``value``, ``low`` and ``high`` are seconds for latencies, tokens a second for throughput, and
    a number of GPUs.
    """

    figure: str  # ttft | tpot | itl | e2e | queue | output_tokens_per_s | num_gpus
    statistic: str  # mean | P50 | P99 ..
    value: float
    low: float
    high: float
    coverage_fraction: float
    rows: int
    cell: str
    is_measured: bool
    words: str

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
            band.is_measured, band.words,
        )  # fmt: skip
