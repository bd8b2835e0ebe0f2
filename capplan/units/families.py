"""The units of each kind of quantity: the only place where 1e9 or 2**30 stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

SI = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
_MULTIPLIERS = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "B": 10**9}
_PERIODS = {"s": 1, "sec": 1, "min": 60, "h": 3600, "hour": 3600, "d": 86_400, "day": 86_400}

GB = SI["G"]
GIB = BINARY["Gi"]
MIB = BINARY["Mi"]
TERA = SI["T"]


@dataclass(frozen=True, slots=True)
class Family:
    """The units of one kind of quantity."""

    noun: str
    examples: str
    factors: Mapping[str, Fraction]  # base units in one; the unit "" where a bare number will do
    scale: tuple[str, ...]  # the units that are printed, largest first
    suggested: tuple[str, ...] = ()  # what else a hint may offer
    # Units refused for a reason: pattern, problem, hint. In the last two {n} is the number and {p}
    # the pattern's group, {P} in upper case.
    refused: tuple[tuple[str, str, str], ...] = ()
    prefix: str = ""  # what may stand before the number
    whole: bool = False  # counts things that cannot be split


def _units(prefixes: Mapping[str, int], *names: str, per: int = 1) -> dict[str, Fraction]:
    return {f"{p}{name}": Fraction(f, per) for p, f in prefixes.items() for name in names}


_BYTE_PREFIXES = {p: f for p, f in SI.items() if p != "E"} | {"K": 10**3} | BINARY
GB_SCALE = ("PB", "TB", "GB", "MB", "kB", "B")
GIB_SCALE = ("PiB", "TiB", "GiB", "MiB", "KiB", "B")

DURATION = Family(
    "a duration",
    "400ms, 0.4s or 2h",
    _units(_PERIODS, "")
    | _units({"m": 1}, "s", per=10**3)
    | _units({"u": 1, "µ": 1, "μ": 1}, "s", per=10**6)  # the micro sign and the Greek mu
    | _units({"n": 1}, "s", per=10**9),
    scale=("d", "h", "min", "s", "ms", "us", "ns"),
    refused=(
        ("", "has no unit", "write {n}ms or {n}s"),
        ("[mM]", "may mean minutes or milliseconds", "write {n}min or {n}ms"),
    ),
)
BYTES = Family(
    "a size in bytes",
    "80GB or 80GiB",
    _units(_BYTE_PREFIXES, "B") | _units({"": 1}, "byte", "bytes"),
    scale=GB_SCALE,
    suggested=GIB_SCALE,
    refused=(
        ("", "has no unit", "write {n}GB or {n}GiB"),
        ("([kKMGTP])", "may mean {p}B or {P}iB", "write {n}{p}B or {n}{P}iB"),
        ("([kKMGTP]|[KMGTP]i|)b", "may mean bits or bytes", "write {n}{p}B for bytes"),
        ("([kKMGTP]i?|)bits?", "counts bits", "write bytes, such as 80GB or 80GiB"),
    ),
    whole=True,
)
BYTES_PER_S = Family(
    "a bandwidth",
    "3.35TB/s, 450GB/s or 400Gbit/s",
    _units(_BYTE_PREFIXES, "B/s") | _units(_BYTE_PREFIXES, "bit/s", per=8),
    scale=tuple(f"{unit}/s" for unit in GB_SCALE),
    suggested=(*(f"{unit}/s" for unit in GIB_SCALE), "Mbit/s", "Gbit/s", "Tbit/s"),
    refused=(
        ("", "has no unit", "write {n}GB/s or {n}Gbit/s"),
        (
            "([kKMGTP]|[KMGTP]i|)b(?:/s|ps|)",
            "may mean bits or bytes",
            "write {n}{p}bit/s for bits or {n}{p}B/s for bytes",
        ),
    ),
)
FLOP_PER_S = Family(
    "a compute rate",
    "989.4TFLOP/s or 1978.9TOP/s",
    _units(SI, "OPs", "OPS", "OP/s", "FLOPs", "FLOPS", "FLOP/s"),
    scale=tuple(f"{p}FLOP/s" for p in reversed(SI)),
    refused=(("", "has no unit", "write {n}TFLOP/s or {n}TOP/s"),),
)
RATE = Family(
    "a rate",
    "100, 100/s, 300/min or 5M/day",
    _units(_MULTIPLIERS, "", "rps", "qps")
    | {
        f"{unit}/{period}": factor / seconds
        for period, seconds in _PERIODS.items()
        for unit, factor in _units(_MULTIPLIERS, "", "req", "requests").items()
    },
    scale=("req/s",),
)
TOKENS = Family(
    "a number of tokens",
    "1024, 8k (8,000) or 8Ki (8,192)",
    _units(_MULTIPLIERS | BINARY, "", "token", "tokens"),
    scale=("",),
    whole=True,
)
SHARE = Family("a share", "0.9 or 90%", {"": Fraction(1), "%": Fraction(1, 100)}, scale=("%",))
MONEY = Family(
    "an amount of money",
    "2.5, $2.50 or 2.50 USD",
    _units({"": 1}, "", "USD"),
    scale=("",),
    prefix="$",
)
POWER = Family(
    "a power",
    "700W or 1.2kW",
    _units({p: SI[p] for p in ("", "k", "M")}, "W"),
    scale=("MW", "kW", "W"),
    refused=(("", "has no unit", "write {n}W or {n}kW"),),
)
FREQUENCY = Family(
    "a frequency",
    "1830MHz or 1.98GHz",
    _units({p: SI[p] for p in ("", "k", "M", "G")}, "Hz"),
    scale=("GHz", "MHz", "kHz", "Hz"),
    refused=(("", "has no unit", "write {n}MHz or {n}GHz"),),
)
