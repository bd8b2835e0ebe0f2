"""What requests carry: lengths, limits, priority and shared prefixes, in batches of columns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, repeat
from random import Random
from typing import Protocol

from capplan.simulator.requests import Segment
from capplan.simulator.traffic.arrivals import BATCH
from capplan.simulator.traffic.streams import stream
from capplan.specs.lengths import Lengths

# (prompt_tokens, output_tokens, max_tokens, priority, prefix, reused), as a Request has them.
Body = tuple[int, int, int | None, int, tuple[Segment, ...], bool]


class Bodies(Protocol):
    """Requests without a name and a time."""

    def take(self, count: int) -> Sequence[Body]:
        """The next ones; fewer only at the end."""
        ...


class SharedPrompts:
    """System prompts of fixed lengths, drawn by popularity."""

    def __init__(
        self, lengths: Lengths, count: int, exponent: float, share: float, seed: int, name: str
    ) -> None:
        sizes = draw(lengths, count, stream(seed, f"{name}system prompt lengths"))
        weights = [(rank + 1) ** -exponent for rank in range(count)]
        ends = list(accumulate(weights))
        self._ends = [end / ends[-1] * share for end in ends]  # beyond the last: none
        self._segments = [(f"system {name}{i}", tokens) for i, tokens in enumerate(sizes)]
        self.mean_tokens = (
            sum(w * size for w, size in zip(weights, sizes, strict=True)) / ends[-1] * share
        )

    def draw(self, count: int, random: Random) -> list[tuple[Segment, ...]]:
        ends, chains = self._ends, [*((segment,) for segment in self._segments), ()]
        return [chains[bisect_right(ends, random.random())] for _ in range(count)]


class DrawnBodies:
    """Bodies by distributions, each column from a random stream of its own."""

    def __init__(
        self,
        prompt: Lengths,
        output: Lengths,
        shared: SharedPrompts | None,
        seed: int,
        name: str,
        max_tokens: int | None = None,
        priority: int = 0,
    ) -> None:
        self._prompt, self._output, self._shared = prompt, output, shared
        self._prompts = stream(seed, f"{name}prompt lengths")
        self._outputs = stream(seed, f"{name}output lengths")
        self._prefixes = stream(seed, f"{name}prefixes")
        self._max_tokens, self._priority = max_tokens, priority

    def take(self, count: int) -> Sequence[Body]:
        prompts = draw(self._prompt, count, self._prompts)
        outputs = draw(self._output, count, self._outputs)
        if self._max_tokens is not None:
            outputs = [min(tokens, self._max_tokens) for tokens in outputs]
        limit, priority = repeat(self._max_tokens), repeat(self._priority)
        if self._shared is None:
            return list(zip(prompts, outputs, limit, priority, repeat(()), repeat(False)))
        prefixes = self._shared.draw(count, self._prefixes)
        for index, prefix in enumerate(prefixes):
            if prefix:
                prompts[index] += prefix[0][1]
        return list(zip(prompts, outputs, limit, priority, prefixes, repeat(False)))


class OneByOne:
    """An iterator over bodies that draws them in batches."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._ready: list[Body] = []

    def __iter__(self) -> Iterator[Body]:
        return self

    def __next__(self) -> Body:
        if not self._ready:
            self._ready = list(self._bodies.take(BATCH))[::-1]
            if not self._ready:
                raise StopIteration
        return self._ready.pop()


def draw(lengths: Lengths, count: int, random: Random) -> list[int]:
    """So many lengths: the quantiles of uniform numbers, one each."""
    uniform = random.random
    return lengths.quantiles([uniform() for _ in range(count)])
