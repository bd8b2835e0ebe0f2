"""The traffic that a fleet is sized for: its shape, at any rate and of any length."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from capplan.errors import UnsupportedError
from capplan.planner.sizing.course import Course, Recorded, busiest_moment, curve_of_class, curved
from capplan.results.assumptions import Assumption
from capplan.simulator.traffic.build import requests_of
from capplan.simulator.traffic.drawn import resolved
from capplan.simulator.traffic.traffic import Traffic
from capplan.specs.length_files import LengthFile
from capplan.specs.lengths import scaled
from capplan.specs.randomness import Arrivals
from capplan.specs.rates import ConstantRate, ServegenRates
from capplan.specs.traffic import (
    DEFAULT_OUTPUT_TOKENS,
    DEFAULT_PROMPT_TOKENS,
    TrafficClass,
    TrafficSpec,
)

_LEAST_BURSTS = 10  # of each class: from one burst nothing follows for the next


@dataclass(frozen=True)
class Demand:
    """Requests as a section `traffic:` describes them; what counts is their highest rate.

    A curve over the day is sized at its peak, held: a peak hour is much longer than a request.
    ``recorded`` is the trace with its own times, where ``spec`` has only its lengths and the rate
    of its busiest minutes. Raises UnsupportedError for traffic whose pace the answers set.
    """

    spec: TrafficSpec
    folder: Path = Path()
    recorded: Recorded | None = None

    def __post_init__(self) -> None:
        if self.spec.closed_loop is not None:
            raise UnsupportedError(
                "users in a closed loop have no rate to be sized for",
                hint="give traffic.rate; `capplan simulate` and `pareto` take closed loops",
            )
        for part in self.parts:
            self._check(part)

    def _check(self, part: TrafficClass) -> None:
        if isinstance(part.rate, ServegenRates):
            raise UnsupportedError(
                "rates of many clients by time window are not searched for the highest",
                hint="give a rate, a curve or a trace in their place; `capplan simulate` runs them",
            )
        if part.trace is not None and part.rate is None:
            raise UnsupportedError(
                "the recorded times of a class among others are not searched",
                hint="give the class a rate beside its trace: its lengths are then used at it",
            )
        if part.arrivals.kind == "burst" and part.arrivals.size is None:
            raise UnsupportedError(
                "requests that all come at once have no rate", hint="write `burst:40` and a rate"
            )

    @property
    def parts(self) -> tuple[TrafficClass, ...]:
        return self.spec.parts

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the classes; one without a name where there is but one."""
        return tuple(part.name or "" for part in self.parts)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.kinds)}

    def kind_of(self, request_id: str) -> int:
        """The number of a request's class, counted from 0."""
        return self._numbers.get(request_id.rpartition("/")[0], 0)

    @cached_property
    def peaks_per_s(self) -> tuple[float, ...]:
        """Of each class: sessions where it has conversations."""
        return tuple(curve_of_class(part).peak_per_s for part in self.parts)

    @cached_property
    def peak_per_s(self) -> float:
        """Requests a second when most come, every turn of a conversation being one."""
        found = self.traffic(1.0, 1000, 0).rate_per_s
        assert found is not None
        return found

    @cached_property
    def least_requests(self) -> int:
        """So many that each class that comes in bursts shows several of them."""
        return max(
            (
                math.ceil(_LEAST_BURSTS * (part.arrivals.size or 0) * self.peak_per_s / own_per_s)
                for part, own_per_s in zip(self.parts, self.peaks_per_s, strict=True)
            ),
            default=0,
        )

    @cached_property
    def own_prompt_tokens(self) -> float | None:
        """Mean prompt tokens that no other request has: those that a prefix cache cannot save.

        None where every token is its own; a trace that names shared tokens may share all but one.
        """
        if self.recorded is not None:
            return self.recorded.own_prompt_tokens
        if not any(p.chat or p.system_prompts or _shares(p) for p in self.parts):
            return None
        means = [
            1.0
            if _shares(part)
            else resolved(part.prompt, DEFAULT_PROMPT_TOKENS, self.folder).mean_tokens
            for part in self.parts
        ]
        weighted = sum(m * peak for m, peak in zip(means, self.peaks_per_s, strict=True))
        return weighted / sum(self.peaks_per_s)

    def at(self, factor: float, num_requests: int) -> TrafficSpec:
        """The same requests at a multiple of the peak: common random numbers."""
        parts = [
            part.model_copy(
                update={
                    "rate": ConstantRate.model_construct(kind="constant", rate=peak * factor),
                    "peak_factor": 1.0,
                }
            )
            for part, peak in zip(self.parts, self.peaks_per_s, strict=True)
        ]
        whole = {"requests": num_requests, "duration": None}
        if self.spec.classes:
            return self.spec.model_copy(update={"classes": tuple(parts), **whole})
        part = parts[0]
        return self.spec.model_copy(update={"rate": part.rate, "peak_factor": 1.0, **whole})

    def with_lengths(self, *, prompt: float = 1.0, output: float = 1.0) -> Demand:
        """The same requests with every prompt and every answer longer by a factor."""
        if self.recorded is not None:
            return replace(self, recorded=replace(self.recorded, lengths=(prompt, output)))
        return self._changed(
            lambda part: {
                "prompt": scaled(resolved(part.prompt, DEFAULT_PROMPT_TOKENS, self.folder), prompt),
                "output": scaled(resolved(part.output, DEFAULT_OUTPUT_TOKENS, self.folder), output),
            }
        )

    def with_arrivals(self, arrivals: Arrivals) -> Demand:
        return self._changed(lambda _: {"arrivals": arrivals})

    def _changed(self, change: Callable[[TrafficClass], dict[str, Any]]) -> Demand:
        parts = tuple(part.model_copy(update=change(part)) for part in self.parts)
        if self.spec.classes:
            return replace(self, spec=self.spec.model_copy(update={"classes": parts}))
        return replace(self, spec=self.spec.model_copy(update=change(self.spec)))

    def traffic(self, factor: float, num_requests: int, seed: int) -> Traffic:
        spec = self.at(factor, num_requests)
        if self.recorded is not None:
            return self.recorded.at(spec, num_requests, seed)
        return requests_of(spec, seed, self.folder)

    def describe(self) -> tuple[Assumption, ...]:
        """What was taken where nothing was said; a trace is read once for it."""
        if self.recorded is not None:
            return self.recorded.whole.describe()
        return self.traffic(1.0, 1000, 0).describe()

    @property
    def arrivals_text(self) -> str:
        kinds = {part.arrivals.text for part in self.parts}
        return kinds.pop() if len(kinds) == 1 else "by class"

    @property
    def peaks_apart(self) -> bool:
        """Whether the rates of the classes are highest at different times."""
        _, together_per_s = busiest_moment([curve_of_class(part) for part in self.parts])
        return together_per_s is not None and together_per_s < sum(self.peaks_per_s) * (1 - 1e-6)

    def course(self, num_needed: int, warmup_s: float) -> Course | None:
        """How it comes when most do, for so many requests after a warm-up; None: as `traffic`."""
        if self.recorded is not None:
            return self.recorded.course(self.peak_per_s, num_needed, warmup_s)
        return curved(self.spec, self.folder, num_needed, warmup_s)

    @cached_property
    def identity(self) -> str:
        """Whatever the requests depend on, but for their rate."""
        lengths = self.recorded.lengths if self.recorded is not None else ""
        files = [_file_identity(f) for f in self._files]
        return f"{self.at(1 / self.peak_per_s, 1)!r} {lengths} {files}"

    @property
    def _files(self) -> list[Path]:
        lengths = [text for part in self.parts for text in (part.prompt, part.output)]
        names = [each.name for each in lengths if isinstance(each, LengthFile)]
        names += [part.trace.file for part in self.parts if part.trace is not None]
        return [self.folder / name for name in names]


def _shares(part: TrafficClass) -> bool:
    trace = part.trace
    return trace is not None and (trace.sessions or trace.format in ("auto", "mooncake"))


def _file_identity(file: Path) -> tuple[str, int, int]:
    """What changes when a file does, without reading it."""
    found = file.stat()
    return str(file.resolve()), found.st_size, found.st_mtime_ns
