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
