"""The client of a benchmark: sends requests to one replica and notes when tokens come back."""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass
from math import inf

from capplan.errors import UnsupportedError
from capplan.simulator.intake import Intake
from capplan.simulator.loop import ReplicaLoop
from capplan.simulator.requests import Request, RequestRecord


@dataclass(frozen=True)
class Timings:
    """Of each request, on the client's clock; by sending."""

    sent_s: list[float]
    first_s: list[float]
    finish_s: list[float]

    @property
    def elapsed_s(self) -> float:
        """From the first request to the last answer."""
        return max(self.finish_s) - min(self.sent_s)


class Client:
    """One run. ``finished`` takes the records of the loop.

    A request alone reaches the engine ``front_end_s`` after it was sent; for ``intake_s`` of
    these it has a process to itself that others wait for.
    """

    def __init__(
        self, lengths: Items[tuple[int, int]], front_end_s: float, intake_s: float = 0.0
    ) -> None:
        self.lengths = lengths
        self.front_end_s = front_end_s
        self._intake = Intake(intake_s)
        total = len(lengths)
        self.sent = [0.0] * total
        self.first = [0.0] * total
        self.finish = [0.0] * total
        self._done: list[RequestRecord] = []
        self._num_done = 0
        self.names_prompts = False  # so that a second request with a prompt can find its blocks

    def warm_up(self, loop: ReplicaLoop) -> float:
        """All requests once, unmeasured, so that their prompts are cached; when the last ends."""
        self.names_prompts = True
        for index in range(len(self.lengths)):
            self._submit(loop, index, 0.0)
        ended: list[RequestRecord] = []
        while len(ended) < len(self.lengths):
            ended += self._answers(loop)
        return max(record.finish_s for record in ended)

    def finished(self, record: RequestRecord) -> None:
        self._done.append(record)

    def run_open(self, loop: ReplicaLoop, arrivals: Items[float]) -> Timings:
        """Requests at their times, whatever becomes of those before."""
        self._send(loop, 0, arrivals)
        while self._num_done < len(self.lengths):
            self._advance(loop)
        return Timings(self.sent, self.first, self.finish)

    def run_closed(self, loop: ReplicaLoop, concurrency: int) -> Timings:
        """A fixed number of clients, each of which sends when it has its last answer."""
        total = len(self.lengths)
        unsent = min(concurrency, total)
        self._send(loop, 0, [0.0] * unsent)
        while self._num_done < total:
            answered = sorted(record.finish_s for record in self._advance(loop))
            again = answered[: total - unsent]
            self._send(loop, unsent, again)
            unsent += len(again)
        return Timings(self.sent, self.first, self.finish)

    def _send(self, loop: ReplicaLoop, first: int, times: Items[float]) -> None:
        """Requests from this number on, at these times in order."""
        beside = self.front_end_s - self._intake.request_s
        for index, (when, through) in enumerate(
            zip(times, self._intake.passed_on(times), strict=True), first
        ):
            self.sent[index] = when
            self._submit(loop, index, through + beside)

    def _submit(self, loop: ReplicaLoop, index: int, when: float) -> None:
        prompt, output = self.lengths[index]
        name = str(index)
        prefix = ((name, prompt),) if self.names_prompts else ()
        reason = loop.submit(Request(name, when, prompt, output, prefix=prefix))
        if reason is not None:
            raise UnsupportedError(f"a request would be refused: {reason}")

    def _advance(self, loop: ReplicaLoop) -> list[RequestRecord]:
        """Up to the next answers, whose times are noted."""
        done = self._answers(loop)
        for record in done:
            index = int(record.id)
            self.first[index] = record.first_token_s
            self.finish[index] = record.finish_s
        self._num_done += len(done)
        return done

    def _answers(self, loop: ReplicaLoop) -> list[RequestRecord]:
        loop.advance(inf)
        done, self._done = self._done, []
        if not done and loop.next_s == inf:
            raise UnsupportedError("the engine stalls: its memory does not hold the requests")
        return done
