"""What the requests of a trace carry: recorded lengths, and the prefixes that they share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import islice

from capplan.simulator.requests import Segment
from capplan.simulator.traffic.bodies import Body, draw
from capplan.simulator.traffic.replay.hash_ids import PrefixTree
from capplan.simulator.traffic.replay.rows import Row
from capplan.simulator.traffic.streams import stream
from capplan.specs.lengths import Lengths
from capplan.specs.traffic import MAX_TURNS

MAX_SESSIONS = 100_000  # remembered at a time


class BodyMaker:
    """Turns rows into bodies, in their order; one for each run."""

    def __init__(
        self,
        prompt: Lengths | None,
        output: Lengths | None,
        tree: PrefixTree,
        sessions: bool,
        max_tokens: int | None,
        priority: int,
        seed: int,
        name: str,
    ) -> None:
        """`prompt` and `output` stand in for the file's lengths."""
        self._prompt, self._output = prompt, output
        self._tree, self._sessions = tree, sessions
        self._max_tokens, self._priority = max_tokens, priority
        self._prompts = stream(seed, f"{name}prompt lengths")
        self._outputs = stream(seed, f"{name}output lengths")
        self._said: OrderedDict[str, tuple[Segment, ...]] = OrderedDict()
        self._name, self._number = name, 0

    def body(self, row: Row) -> Body:
        prompt, output = row.prompt_tokens, row.output_tokens
        if self._prompt is not None:
            prompt = draw(self._prompt, 1, self._prompts)[0]
        if self._output is not None:
            output = draw(self._output, 1, self._outputs)[0]
        if self._max_tokens is not None:
            output = min(output, self._max_tokens)
        number, self._number = self._number, self._number + 1
        prefix: tuple[Segment, ...] = ()
        talks = self._sessions and row.session is not None
        if row.hash_ids:
            prefix = self._tree.prefix(row.hash_ids, prompt)
        elif talks:
            prefix = self._history(str(row.session), f"{self._name}{number}", prompt, output)
        return prompt, output, self._max_tokens, self._priority, prefix, talks

    def _history(self, session: str, name: str, prompt: int, output: int) -> tuple[Segment, ...]:
        """What was said before, as far as the prompt reaches; and this turn is remembered."""
        left, chain = prompt, []
        for stream_name, tokens in self._said.pop(session, ()):
            if left:
                chain.append((stream_name, min(tokens, left)))
                left -= chain[-1][1]
        # As `Request.own_segment` names it.
        if len(chain) < MAX_TURNS:  # a longer conversation begins anew
            self._said[session] = (*chain, (f"of {name}", left + output))
        if len(self._said) > MAX_SESSIONS:
            self._said.popitem(last=False)
        return tuple(chain)


class RowBodies:
    """Bodies of rows, for requests that come at other times than the recorded ones."""

    def __init__(self, rows: Iterator[Row], maker: BodyMaker) -> None:
        self._rows, self._maker = rows, maker

    def take(self, count: int) -> Sequence[Body]:
        return [self._maker.body(row) for row in islice(self._rows, count)]
