"""The randomness of arrivals and of pauses, as people write it: `gamma:2.5`, `exponential:10s`."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.errors import QuantityError, did_you_mean
from capplan.specs.lengths import parse_variation
from capplan.units import parse_duration, parse_tokens

ARRIVALS = ("poisson", "constant", "gamma", "burst")
MAX_PAUSE_S = 1000 * 86_400.0
PAUSES = ("fixed", "exponential", "uniform", "lognormal")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How requests scatter around their rate.

    `cv` is the coefficient of variation of the gaps of `gamma`, `size` the requests that arrive
    together in a `burst` (None: all of them, at time 0).
    """

    kind: str = "poisson"  # one of ARRIVALS
    cv: float = 1.0
    size: int | None = None

    @property
    def text(self) -> str:
        """For people."""
        if self.kind == "gamma":
            return f"gamma:{self.cv:g}"
        if self.kind == "poisson":
            return "Poisson"
        return f"burst:{self.size}" if self.size else self.kind


def parse_arrivals(text: str) -> Arrivals:
    """``poisson``, ``constant``, ``gamma:2.5`` (with the CV of the gaps), ``burst`` (all at once)
    or ``burst:40`` (forty at a time). Raises QuantityError.

    >>> parse_arrivals("gamma:2.5").cv, parse_arrivals("burst:40").size
    (2.5, 40)
    """
    name, colon, rest = (part.strip() for part in text.partition(":"))
    if name in ("poisson", "constant") and not colon:
        return Arrivals(name)
    if name == "gamma":
        if not colon:
            raise QuantityError(
                "`gamma` needs a coefficient of variation", hint="write `gamma:2.5`"
            )
        return Arrivals("gamma", cv=parse_variation(rest))
    if name == "burst":
        return Arrivals("burst", size=parse_tokens(rest, positive=True) if colon else None)
    known = "poisson, constant, gamma:2.5, burst or burst:40"
    raise QuantityError(
        f"`{text[:40]}` is not a pattern of arrivals",
        hint=did_you_mean(name[:40], ARRIVALS) if not colon else f"write {known}",
    )


@dataclass(frozen=True, slots=True)
class Pauses:
    """Think times. `second` is the CV of a lognormal one, or the end of a uniform one."""

    text: str
    kind: str  # one of PAUSES
    first_s: float
    second: float = 0.0

    @property
    def mean_s(self) -> float:
        return (self.first_s + self.second) / 2 if self.kind == "uniform" else self.first_s


def parse_pauses(text: str) -> Pauses:
    """``2s``, ``fixed:2s``, ``exponential:2s``, ``uniform:1s-5s`` or ``lognormal:2s,1.5`` (mean and
    CV). Raises QuantityError.

    >>> parse_pauses("uniform:1s-5s").mean_s
    3.0
    """
    text = text.strip()
    name, colon, rest = text.partition(":")
    name = name.strip()
    if not colon:
        return Pauses(text, "fixed", _pause(text))
    if name == "fixed":
        return Pauses(text, name, _pause(rest))
    if name == "exponential":
        return Pauses(text, name, _pause(rest, positive=True))
    if name not in PAUSES:
        raise QuantityError(
            f"`{name[:40]}` is not a distribution of pauses",
            hint=did_you_mean(name[:40], PAUSES) or f"one of: {', '.join(PAUSES)}",
        )
    first, found, second = rest.partition("-" if name == "uniform" else ",")
    if not found:
        example = "uniform:1s-5s" if name == "uniform" else "lognormal:2s,1.5"
        raise QuantityError(f"`{text[:40]}` needs two numbers", hint=f"write it like `{example}`")
    if name == "lognormal":
        mean_s = _pause(first, positive=True)
        return Pauses(text, "lognormal", mean_s, parse_variation(second))
    low, high = _pause(first), _pause(second, positive=True)
    if high < low:
        raise QuantityError(f"`{text[:40]}` runs backwards", hint="the shorter pause stands first")
    return Pauses(text, "uniform", low, high)


def _pause(text: str, *, positive: bool = False) -> float:
    found = parse_duration(text, positive=positive)
    if found > MAX_PAUSE_S:
        raise QuantityError(f"a pause of `{text[:40]}` is out of range", hint="1000 d at most")
    return found
