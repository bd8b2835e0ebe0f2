"""The doors of one replica: who arrives, who gives up, and what others may ask."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable

from capplan.simulator.policies.config import LoopConfig, refusal
from capplan.simulator.policies.seats import Seats
from capplan.simulator.policies.slot import Slot
from capplan.simulator.requests import Rejection, Request, RequestRecord
from capplan.simulator.sequence import NO_STEP
from capplan.simulator.step_time import StepTime
from capplan.simulator.watch import Watch


class Pool(Seats):
    """What a policy may look at; `loop.PolicyReplica` adds the clock."""

    def __init__(
        self,
        config: LoopConfig,
        on_finish: Callable[[RequestRecord], object],
        step_time: StepTime,
        watch: Watch | None,
        *,
        keeps_slots: bool,
        remembers_evicted: bool,
    ) -> None:
        super().__init__(
            config, on_finish, step_time, watch,
            keeps_slots=keeps_slots, remembers_evicted=remembers_evicted,
        )  # fmt: skip
        self.inbox: deque[Slot] = deque()  # not read yet, by arrival
        self.rejected: list[Rejection] = []
        self.longest_prompt: int | None = None  # where prompts are not cut
        self._index = 0

    # What others ask.

    @property
    def num_running(self) -> int:
        return len(self.running) - self.num_ghosts

    @property
    def num_waiting(self) -> int:
        return len(self.waiting) + len(self.inbox)

    @property
    def num_used_blocks(self) -> int:
        return self.config.num_blocks - self.free

    def first_token_s(self, request_id: str) -> float | None:
        seq = self.by_id.get(request_id)
        return None if seq is None or seq.first_token_s < 0 else seq.first_token_s

    # Coming and going.

    def submit(self, request: Request) -> str | None:
        """Take in a request at its `arrival_s`; the reason where it can never be served."""
        reason = refusal(request, self.config, self.longest_prompt)
        if reason is not None:
            self.rejected.append(Rejection(request.id, reason))
            return reason
        seq = Slot(request, self._index, self.config)
        self._index += 1
        if self.cache:
            seq.keys = self.cache.book.keys(request)
        self.longest_announced = max(self.longest_announced, seq.announced)
        self.by_id[request.id] = seq
        inbox = self.inbox
        if inbox and inbox[-1].arrival_s > seq.arrival_s:
            insort(inbox, seq, key=lambda s: s.arrival_s)
        else:
            inbox.append(seq)
        return None

    def abort(self, request_id: str) -> bool:
        """Drop a request whose client has gone; False where it is not here any more."""
        seq = self.by_id.get(request_id)
        if seq is None:
            return False
        del self.by_id[request_id]
        self.num_left += 1
        self.wake_step = 0
        if seq in self.running:
            if self.keeps_slots or seq.landing:
                return True  # it leaves with the others, or with the next result
            self._take_out(seq)
            seq.last_step = NO_STEP
        elif seq in self.waiting:
            self.waiting.remove(seq)
        else:
            self.inbox.remove(seq)
        seq.finished = True
        return True

    def forget(self) -> tuple[Request, ...]:
        """Empty it, cached blocks included; gives back who was there, in order of arrival."""
        lost = sorted(self.by_id.values(), key=lambda seq: seq.index)
        for seq in lost:
            seq.finished = True
        self.by_id.clear()
        self.inbox.clear()
        self.waiting.clear()
        self._empty()
        return tuple(seq.request for seq in lost)
