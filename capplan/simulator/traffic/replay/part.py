"""A class of requests that were recorded: at their own times, or at others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from capplan.errors import CapplanError, Location
from capplan.results.assumptions import Assumption
from capplan.simulator.requests import Request
from capplan.simulator.traffic.bodies import OneByOne
from capplan.simulator.traffic.conversations import Sessions
from capplan.simulator.traffic.drawn import resolved
from capplan.simulator.traffic.open_class import independent
from capplan.simulator.traffic.replay.bodies import BodyMaker, RowBodies
from capplan.simulator.traffic.replay.hash_ids import PrefixTree
from capplan.simulator.traffic.replay.order import timed_rows
from capplan.simulator.traffic.replay.rows import Row, checked
from capplan.simulator.traffic.replay.trace_file import TraceFile
from capplan.simulator.traffic.replay.words import of_trace
from capplan.simulator.traffic.streams import stream
from capplan.simulator.traffic.timing import Timing
from capplan.simulator.traffic.traffic import Limits, Started
from capplan.specs.randomness import Pauses
from capplan.specs.traffic import Trace, TrafficClass
from capplan.units import format_duration

_OF_TIMES = ("start", "end", "speed", "sort", "spread", "time_unit")  # fields of a trace
_new: Any = tuple.__new__


@dataclass(frozen=True, slots=True)
class _Sums:
    """What one pass over the file adds up to."""

    num_requests: int
    prompt_tokens: int
    output_tokens: int
    span_s: float
    skipped: Counter[str]


class ReplayPart:
    """Rows of a trace, each the body of a request."""

    def __init__(
        self, spec: TrafficClass, trace: Trace, name: str, seed: int, folder: Path,
        think_time: Pauses | None, limits: Limits, from_s: float = 0.0,
    ) -> None:  # fmt: skip
        """Raises CapplanError where the file cannot be such a trace, or lacks what is needed."""
        self.name, self._spec, self.trace, self._seed = name, spec, trace, seed
        self._think_time, self._limits = think_time, limits
        self.file = TraceFile(trace, folder)
        self._prompt = resolved(spec.prompt, 1, folder) if spec.prompt else None
        self._output = resolved(spec.output, 1, folder) if spec.output else None
        if self._output is None:
            self.file.need_outputs()
        self._timing = Timing(spec, seed, name, folder, from_s)
        self.skipped: Counter[str] = Counter()
        waits = think_time is not None
        self.has_own_times = not (waits or spec.rate or spec.arrivals.kind == "burst")
        place = Location(str(self.file.path), 1)
        if self.has_own_times and self.file.time_field is None:
            hint = "say how its requests arrive: `rate: 5/s` (--qps), or a closed loop"
            raise CapplanError("the file has no arrival times", location=place, hint=hint)
        given = [name for name in _OF_TIMES if name in trace.model_fields_set]
        if given and not self.has_own_times:
            hint = "leave it out, or leave out what gives other times (`rate`, a closed loop)"
            problem = f"`trace.{given[0]}` says nothing where recorded times are not used"
            raise CapplanError(problem, location=place, hint=hint)

    @property
    def has_follow_ups(self) -> bool:
        return self._think_time is not None

    @property
    def rate_per_s(self) -> float | None:
        """Of the part that is replayed; reads it once."""
        if self.has_own_times:
            sums = self._sums
            return (sums.num_requests - 1) / sums.span_s if sums.span_s else None
        if self.has_follow_ups:
            return None
        return self._timing.mean_per_s(self._limits.num_requests, self._limits.duration_s)

    @property
    def mean_prompt_tokens(self) -> float:
        return self._sums.prompt_tokens / self._sums.num_requests

    @property
    def mean_output_tokens(self) -> float:
        return self._sums.output_tokens / self._sums.num_requests

    def describe(self) -> list[Assumption]:
        """How the file was understood, and what was left out of it."""
        return of_trace(self.trace, self.file, self.has_own_times, self._sums.skipped)

    def start(self) -> Started:
        self.skipped.clear()
        if self.has_own_times:
            return Started(self._recorded(self.skipped), None)
        bodies = RowBodies(self._endless(), self._maker())
        if self._think_time is None:
            return Started(independent(self._timing.batches(), bodies, self.name), None)
        sessions = Sessions(OneByOne(bodies), None, None, self._think_time, self._seed, self.name)
        return Started(iter(()), sessions)

    def _recorded(self, skipped: Counter[str]) -> Iterator[Request]:
        rows = self._rows(skipped)
        random, file = stream(self._seed, f"{self.name}spread"), str(self.file.path)
        maker, number = self._maker(), 0
        for at_s, row in timed_rows(rows, self.trace, random, file, skipped):
            yield _new(Request, (f"{self.name}{number}", at_s, *maker.body(row), ()))
            number += 1
        if not number:
            start = format_duration(self.trace.start)
            problem = f"no request of the file lies in the window that starts at {start}"
            raise CapplanError(
                problem, location=Location(file), hint="start earlier, or leave `start` out"
            )

    def _endless(self) -> Iterator[Row]:
        """Rows without regard to their times; from the beginning again while more are wanted."""
        yield from self._rows(self.skipped)
        while self._limits.num_requests is not None or self._limits.duration_s is not None:
            yield from self._rows(Counter())

    def _rows(self, skipped: Counter[str]) -> Iterator[Row]:
        file, skip = str(self.file.path), self.trace.skip_bad_rows
        return checked(self.file.rows(self._output is None), file, skip, skipped)

    def _maker(self) -> BodyMaker:
        spec = self._spec
        return BodyMaker(
            self._prompt,
            self._output,
            self._tree,
            self.trace.sessions,
            spec.max_tokens,
            spec.priority,
            self._seed,
            self.name,
        )

    @cached_property
    def _tree(self) -> PrefixTree:
        """Of all rows that a run may read: one pass over the file, where it has block hashes."""
        chains: Iterator[tuple[int | str, ...]] = iter(())
        if self.file.has_hash_ids:
            from_start = not (self.trace.start or self.trace.sort)
            most = self._limits.num_requests if from_start else None
            chains = (row.hash_ids for row in islice(self._rows(Counter()), most))
        return PrefixTree(chains, self.trace.block_tokens, f"block {self.name}")

    @cached_property
    def _sums(self) -> _Sums:
        """One pass over what a run would read, without keeping it."""
        end_s, most = self._limits.duration_s, self._limits.num_requests
        num = prompts = outputs = 0
        last_s = 0.0
        skipped: Counter[str] = Counter()
        for request in self._sample(most, skipped):
            if end_s is not None and request.arrival_s >= end_s:
                break
            last_s = request.arrival_s
            num += 1
            prompts += request.prompt_tokens
            outputs += request.output_tokens
        return _Sums(num, prompts, outputs, last_s, skipped)

    def _sample(self, most: int | None, skipped: Counter[str]) -> Iterator[Request]:
        if self.has_own_times:
            return islice(self._recorded(skipped), most)
        maker = self._maker()
        rows = islice(self._rows(skipped), most)
        return (_new(Request, ("", 0.0, *maker.body(row), ())) for row in rows)
