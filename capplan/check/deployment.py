"""A deployment of an LLM as its files state it: nothing guessed, everything with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from capplan.check.flags import Flag
from capplan.check.source import Source
from capplan.check.values import Value, Variable
from capplan.errors import Location

PLAN = "plan"  # the shape of our own plan.yaml


@dataclass(frozen=True, slots=True)
class Stated:
    """A number that a file states; ``number`` is None where it is filled in elsewhere."""

    value: Value
    number: float | None

    @property
    def count(self) -> int | None:
        if self.number is None or self.number != int(self.number):
            return None
        return int(self.number)


@dataclass(frozen=True, slots=True)
class Shm:
    """What /dev/shm holds: ``bytes`` None is without a limit of its own (host, or memory)."""

    bytes: float | None
    value: Value | None


@dataclass(frozen=True, slots=True)
class Probe:
    """Seconds as Kubernetes counts them; None where it is filled in elsewhere."""

    kind: str  # liveness | readiness | startup
    value: Value
    initial_delay_s: float
    period_s: float
    failure_threshold: float
    timeout_s: float

    @property
    def patience_s(self) -> float:
        """How long a server may fail it from the container's start."""
        return self.initial_delay_s + self.period_s * self.failure_threshold


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """What replicas follow: the metrics by name, and their place."""

    value: Value
    kind: str
    metrics: tuple[Value, ...]
    min_replicas: Stated | None
    max_replicas: Stated | None


@dataclass(frozen=True)
class Deployment:
    """One server, or a group of processes that make one, times ``replicas``."""

    source: Source
    shape: str
    name: str
    place: Value
    engine: str
    flags: tuple[Flag, ...]
    hidden: tuple[Value, ...] = ()  # words that may hold further options
    image: Value | None = None
    version: str | None = None
    model: Value | None = None
    model_hints: tuple[Value, ...] = ()  # repositories named near, for a model at a local path
    served_name: Value | None = None
    gpus_per_pod: Stated | None = None
    pods: Stated | None = None  # of one replica
    other_gpus: Stated | None = None  # of further pods of the replica, where they differ
    gpu_hints: tuple[Value, ...] = ()
    resource: str | None = None  # the name that GPUs are asked for under
    replicas: Stated | None = None
    autoscaler: Autoscaler | None = None
    shm: Shm | None = None
    memory_limit: Stated | None = None
    probes: Mapping[str, Probe] = field(default_factory=dict)
    environment: Mapping[str, Variable] = field(default_factory=dict)
    role: str | None = None  # prefill | decode
    partial: bool = False  # a patch or a template: what is absent may stand elsewhere
    kubernetes: bool = False
    ray: bool = False
    unresolved: tuple[str, ...] = ()

    @property
    def location(self) -> Location:
        return self.place.location

    def flag(self, meaning: str) -> Flag | None:
        """The last option of a meaning, as the engine takes it."""
        found = [flag for flag in self.flags if flag.meaning == meaning]
        return found[-1] if found else None

    def named(self, name: str) -> Flag | None:
        """The last option of the engine's own name."""
        found = [flag for flag in self.flags if flag.name == name]
        return found[-1] if found else None

    def number(self, meaning: str) -> float | None:
        """The number of an option that is certainly set, or None."""
        flag = self.flag(meaning)
        return None if flag is None or not flag.certain else parse_number(flag.text)

    def count(self, meaning: str) -> int | None:
        number = self.number(meaning)
        return int(number) if number is not None and number == int(number) else None

    def open(self, meaning: str) -> bool:
        """Whether an option may be set to what we do not know."""
        flag = self.flag(meaning)
        if flag is None:
            return bool(self.hidden) or self.partial
        return not flag.certain or (flag.value is not None and flag.text is None)


def parse_number(text: str | None) -> float | None:
    """A number as engines take it: `1k` is 1,000 and `1K` 1,024 tokens in vLLM.

    >>> parse_number("0.9"), parse_number("8k"), parse_number("1K"), parse_number("x")
    (0.9, 8000.0, 1024.0, None)
    """
    if text is None or len(text) > 24:
        return None
    stripped = text.strip().replace("_", "")
    scale = {"k": 1e3, "m": 1e6, "g": 1e9, "K": 1024.0, "M": 1024.0**2, "G": 1024.0**3}
    factor = scale.get(stripped[-1:], 1.0)
    digits = stripped[:-1] if stripped[-1:] in scale else stripped
    try:
        number = float(digits)
    except ValueError:
        return None
    number *= factor
    return number if number == number and abs(number) < 1e18 else None
