"""Requests that wait for an answer: the turns of a conversation, the users of a closed loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from capplan.simulator.requests import Request, Segment
from capplan.simulator.traffic.bodies import Body, OneByOne, SharedPrompts, draw
from capplan.simulator.traffic.streams import stream
from capplan.specs.lengths import Lengths
from capplan.specs.randomness import Pauses


@dataclass(slots=True)
class _Session:
    """What a user will still say: drawn when the session begins, whatever the server does."""

    name: str
    turns: list[tuple[Body, float]]  # the next one last, with the pause before it
    num_said: int = 0


class Sessions:
    """Conversations of several turns, or of one request each."""

    def __init__(
        self,
        bodies: OneByOne,
        shared: SharedPrompts | None,
        turns: Lengths | None,
        think_time: Pauses | None,
        seed: int,
        name: str,
    ) -> None:
        self._bodies, self._shared, self._turns = bodies, shared, turns
        self._pause = pause_of(think_time) if think_time else lambda _: 0.0
        self._turn_counts = stream(seed, f"{name}turns")
        self._prefixes = stream(seed, f"{name}prefixes")
        self._pauses = stream(seed, f"{name}think times")
        self._name = name
        self._num_sessions = 0
        self._open: dict[str, _Session] = {}  # by the request that is with the server

    def begin(self, at_s: float, *, paused: bool = False) -> Request | None:
        """The first request of the next session, at once or after a pause; None at the end."""
        num_turns = draw(self._turns, 1, self._turn_counts)[0] if self._turns else 1
        turns = []
        for _ in range(num_turns):
            body = next(self._bodies, None)
            if body is None:
                break
            turns.append((body, self._pause(self._pauses)))
        if not turns:
            return None
        session = _Session(f"{self._name}{self._num_sessions}", turns[::-1])
        self._num_sessions += 1
        prefix = self._shared.draw(1, self._prefixes)[0] if self._shared else ()
        return self._say(session, at_s + (turns[0][1] if paused else 0.0), prefix)

    def follow(self, request: Request, ended_s: float, failed: bool) -> Request | None:
        """The next turn; None where there is none, or the last one got no answer."""
        session = self._open.pop(request.id, None)
        if session is None or failed:
            return None
        pause_s = session.turns[-1][1]
        return self._say(session, ended_s + pause_s, (*request.prefix, request.own_segment))

    def _say(self, session: _Session, at_s: float, prefix: tuple[Segment, ...]) -> Request:
        (own, output, limit, priority, given, reused), _ = session.turns.pop()
        chain = (*prefix, *given)
        name = session.name if self._turns is None else f"{session.name}.{session.num_said}"
        said = sum(tokens for _, tokens in prefix)
        request = Request(
            name,
            at_s,
            own + said,
            output,
            max_tokens=limit,
            priority=priority,
            prefix=chain,
            reused=reused or bool(session.turns),
        )
        session.num_said += 1
        if session.turns:
            self._open[name] = session
        return request


def pause_of(pauses: Pauses) -> Callable[[Random], float]:
    """Draws one pause in seconds."""
    if pauses.kind == "exponential":
        return lambda random: -pauses.first_s * math.log(1.0 - random.random())
    if pauses.kind == "uniform":
        width = pauses.second - pauses.first_s
        return lambda random: pauses.first_s + width * random.random()
    if pauses.kind == "lognormal":
        sigma = math.sqrt(math.log1p(pauses.second**2))
        mu = math.log(pauses.first_s) - sigma**2 / 2
        return lambda random: random.lognormvariate(mu, sigma)
    return lambda _: pauses.first_s
