"""A class of requests whose lengths and times are drawn from distributions."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from capplan.results.assumptions import Assumption
from capplan.simulator.traffic.bodies import DrawnBodies, OneByOne, SharedPrompts
from capplan.simulator.traffic.conversations import Sessions
from capplan.simulator.traffic.open_class import first_turns, independent
from capplan.simulator.traffic.timing import Timing
from capplan.simulator.traffic.traffic import Limits, Started
from capplan.specs.length_files import LengthFile, read_length_file
from capplan.specs.lengths import Lengths, parse_lengths
from capplan.specs.randomness import Pauses
from capplan.specs.traffic import (
    DEFAULT_OUTPUT_TOKENS,
    DEFAULT_PROMPT_TOKENS,
    MAX_TURNS,
    TrafficClass,
)

_SHARES = [(i + 0.5) / 1000 for i in range(1000)]


class DrawnPart:
    """Open or, with the `think_time` of a closed loop, waiting for answers."""

    skipped: Counter[str] = Counter()  # noqa: RUF012 (drawn requests are never bad)

    def __init__(
        self, spec: TrafficClass, name: str, seed: int, folder: Path, think_time: Pauses | None,
        limits: Limits, from_s: float = 0.0,
    ) -> None:  # fmt: skip
        self.name, self._spec, self._seed, self._limits = name, spec, seed, limits
        self._think_time = spec.chat.think_time if spec.chat else think_time
        self._prompt = resolved(spec.prompt, DEFAULT_PROMPT_TOKENS, folder)
        self._output = resolved(spec.output, DEFAULT_OUTPUT_TOKENS, folder)
        self._turns = None
        if spec.chat is not None:
            turns = resolved(spec.chat.turns, 1, folder)
            self._turns = replace(turns, most=min(turns.most, MAX_TURNS))
        self._shared = None
        if (prompts := spec.system_prompts) is not None:
            lengths = resolved(prompts.tokens, DEFAULT_PROMPT_TOKENS, folder)
            self._shared = SharedPrompts(
                lengths, prompts.count, prompts.exponent, prompts.share, seed, name
            )
        self._timing = Timing(spec, seed, name, folder, from_s)

    @property
    def has_follow_ups(self) -> bool:
        return self._think_time is not None

    @property
    def rate_per_s(self) -> float | None:
        """Requests, each turn of a conversation being one."""
        if self.has_follow_ups and self._turns is None:
            return None
        turns = self._turns.mean_tokens if self._turns else 1.0
        limits = self._limits
        sessions = limits.num_requests / turns if limits.num_requests else None
        per_s = self._timing.mean_per_s(sessions, limits.duration_s)
        return per_s * turns if per_s is not None else None

    @property
    def mean_output_tokens(self) -> float:
        if self._spec.max_tokens is not None:
            return self._output.limited_mean(self._spec.max_tokens)
        return self._output.mean_tokens

    @property
    def mean_prompt_tokens(self) -> float:
        """With system prompts and, over all turns, with the history that each repeats."""
        own, system = self._prompt.mean_tokens, self._shared.mean_tokens if self._shared else 0.0
        if self._turns is None:
            return system + own
        counts = self._turns.quantiles(_SHARES)
        before = sum(n * (n - 1) / 2 for n in counts) / sum(counts)  # turns before a turn
        return system + own * (1 + before) + self.mean_output_tokens * before

    def describe(self) -> list[Assumption]:
        """Nothing beyond what the plan leaves unsaid."""
        return []

    def start(self) -> Started:
        if not self.has_follow_ups:
            drawn = self._bodies(self._shared)
            return Started(independent(self._timing.batches(), drawn, self.name), None)
        bodies = OneByOne(self._bodies(None))
        pauses, seed = self._think_time, self._seed
        sessions = Sessions(bodies, self._shared, self._turns, pauses, seed, self.name)
        return Started(first_turns(self._timing.batches(), sessions), sessions)

    def _bodies(self, shared: SharedPrompts | None) -> DrawnBodies:
        limit, priority = self._spec.max_tokens, self._spec.priority
        return DrawnBodies(
            self._prompt, self._output, shared, self._seed, self.name, limit, priority
        )


def resolved(lengths: Lengths | LengthFile | None, default: int, folder: Path) -> Lengths:
    """The distribution itself; files are read here. Raises CapplanError."""
    if isinstance(lengths, LengthFile):
        return read_length_file(lengths, folder)
    return lengths if lengths is not None else parse_lengths(str(default))
