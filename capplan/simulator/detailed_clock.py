"""The clock of the request-by-request path: one step after the other, or two in flight."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import Any

from capplan.simulator.config import SchedulerConfig, rejection_reason
from capplan.simulator.detailed import DetailedScheduler
from capplan.simulator.detailed_pass import DetailedSequence, Pass
from capplan.simulator.open_form import OpenForm
from capplan.simulator.queues import FcfsQueue, PriorityQueue
from capplan.simulator.requests import Outcome, Rejection, Request, RequestRecord
from capplan.simulator.sequence import Sequence
from capplan.simulator.step_time import ChunkSums, StepTime
from capplan.simulator.watch import Watch
from capplan.simulator.windows import window_sums


class DetailedReplica(OpenForm):
    """The same doors as `core.Replica`, for what the counters do not cover."""

    def __init__(
        self,
        config: SchedulerConfig,
        step_time: StepTime,
        on_finish: Callable[[RequestRecord], object],
        *,
        cpu_s: float = 0.0,
        record_steps: bool = False,
        reject: bool = True,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(on_finish)
        self.config, self.watch = config, watch
        self.last_token_s: dict[DetailedSequence, float] = {}  # for the watch
        self.cpu_s = cpu_s
        self.step_time = step_time
        self.scheduler = DetailedScheduler(config)
        self.record_steps, self.reject = record_steps, reject
        self.steps: list[dict[str, Any]] = []
        self.num_steps = self.num_empty = self.tokens = self.max_running = 0
        self.num_stale = self.num_wasted = self.num_drafts = self.num_accepted = 0
        self.busy_s = 0.0
        # Passes whose result is not taken in: (pass, its record, when it ends).
        self.flying: deque[tuple[Pass, dict[str, Any], float]] = deque()

    @property
    def waiting(self) -> FcfsQueue | PriorityQueue:
        return self.scheduler.waiting

    @property
    def num_running(self) -> int:
        return len(self.scheduler.running)

    @property
    def num_used_blocks(self) -> int:
        return self.config.usable_blocks - len(self.scheduler.manager.pool.free)

    def present(self) -> list[Sequence]:
        """Everybody in the engine."""
        return self.scheduler.present()

    def drop(self, seq: DetailedSequence) -> None:
        """Between two passes: a running request loses its blocks, a waiting one its place."""
        self.scheduler.drop(seq)

    def forget(self) -> None:
        """The memory is lost: nothing is found any more, and no step is under way."""
        self.flying.clear()
        self.scheduler.manager.pool.clear()

    def _passes(self, take: Callable[[], DetailedSequence | None]) -> Iterator[Outcome | None]:
        """The loop, as in `core`: a generator that pauses in the open form only."""
        scheduler, asynchronous, flying = self.scheduler, self.config.async_scheduling, self.flying
        is_open = pause = self.is_open
        coming = None if is_open else take()
        next_arrival = coming.arrival_s if coming else inf
        now = gpu_free = request_seconds = 0.0
        end, fruitless = "finished", 0
        patience = 10_000 + 2 * self.config.max_model_len
        while True:
            present = len(scheduler.running) + len(scheduler.waiting)
            if pause or (coming is None and next_arrival <= now):
                self.now_s, pause = now, False
                self.hold_back(coming)
                yield None
                if self.is_closing:
                    end = self.end_of(present)
                    break
                coming = take()
                next_arrival = coming.arrival_s if coming else self.horizon_s
                if self.wake_s is not None:  # nothing went on until then, or all is lost
                    request_seconds += present * (self.wake_s - now)
                    now, gpu_free = self.wake_s, min(gpu_free, self.wake_s)
                self.wake_s, self.num_dropped = None, 0
                continue
            if coming is not None and next_arrival <= now:
                request_seconds += now - next_arrival
                scheduler.arrive(coming)
                coming = take()
                next_arrival = coming.arrival_s if coming else self.horizon_s
                continue
            before = now
            if not present and not flying:
                if coming is None:
                    if not is_open:
                        break
                    self.is_idle = pause = True
                    continue
                if self.watch:
                    self.watch.load(now, 0, 0, 0)
                now = next_arrival
                continue
            start = max(now, gpu_free)
            this = scheduler.schedule(start) if present else Pass()
            self.max_running = max(self.max_running, len(scheduler.running))
            fruitless = 0 if any(item.samples for item in this.items.values()) else fruitless + 1
            if fruitless > patience:
                end = "livelock"
                break
            if this.items:
                dt = self._duration(this)
                if self.watch:
                    self._tell(self.watch, this, start, dt)
                gpu_free = start + dt
                flying.append((this, self._record(this, now, start, dt), gpu_free))
                if asynchronous and len(flying) < 2:
                    continue
            elif this.preempted:
                self._record(this, now, start, 0.0)
                self.num_empty += 1
            if flying:
                step, record, finish = flying.popleft()
                now = max(now, finish)
                request_seconds += present * (now - before)
                pause = self._take_in(step, record, finish) and is_open
            elif not this.preempted:
                if coming is None:
                    if not is_open:
                        end = "stalled"
                        break
                    fruitless -= 1  # this pass is made once more when somebody comes
                    self.is_idle = pause = True
                    continue
                if not asynchronous:
                    self._record(this, now, start, 0.0)
                    self.num_empty += 1
                now = next_arrival
                request_seconds += present * (now - before)
        self.num_preemptions = scheduler.num_preemptions
        yield self.outcome_of(
            end=end,
            end_s=now,
            num_steps=self.num_steps,
            num_empty_passes=self.num_empty,
            scheduled_tokens=self.tokens,
            max_running=self.max_running,
            busy_s=self.busy_s,
            request_seconds=request_seconds,
        )

    def arrivals(self, requests: Iterable[Request]) -> Iterator[DetailedSequence]:
        """Sequences in order of arrival; what can never be served is refused."""
        last_s, index = self.last_arrival_s, self.num_arrivals
        manager, books = self.scheduler.manager, self.scheduler.books
        for request in requests:
            if request.arrival_s < last_s:
                raise ValueError(f"request {request.id} arrives before its predecessor")
            last_s = request.arrival_s
            reason = rejection_reason(request, self.config) if self.reject else None
            if reason is not None:
                self.rejected.append(Rejection(request.id, reason))
                continue
            yield DetailedSequence(request, index, self.config.max_model_len, manager, books)
            index += 1

    def _duration(self, this: Pass) -> float:
        contexts: list[int] = []  # of the decodes
        chunks: list[ChunkSums] = []
        for item in this.items.values():
            self.tokens += item.tokens
            if item.decode:
                contexts.append(item.context)
            else:
                chunks.append((item.tokens, item.context - item.tokens))
        total = sum(contexts)
        windows = window_sums(self.step_time.windows, contexts)
        if chunks:
            dt = self.step_time.mixed(len(contexts), total, chunks, windows)
        else:
            base, slope, _ = self.step_time.line(len(contexts), total, windows)
            dt = base + slope * total
        dt = max(dt, self.cpu_s) if self.config.async_scheduling else dt + self.cpu_s
        self.busy_s += dt
        return dt

    def _tell(self, watch: Watch, this: Pass, start: float, dt: float) -> None:
        items, scheduler = this.items.values(), self.scheduler
        prefill = sum(item.tokens for item in items if not item.decode)
        watch.step(start, dt, sum(item.decode for item in items), prefill)
        watch.load(start, self.num_running, len(scheduler.waiting), self.num_used_blocks)

    def _tell_gaps(self, seq: DetailedSequence, delivered: int, end_s: float) -> None:
        """Tokens of one verification come together."""
        if self.watch is None or not delivered:
            return
        before = self.last_token_s.pop(seq, None)
        if before is not None:
            self.watch.gaps(end_s - before, 1)
        if delivered > 1:
            self.watch.gaps(0.0, delivered - 1)
        if not seq.finished:
            self.last_token_s[seq] = end_s

    def _record(self, this: Pass, now: float, start: float, dt: float) -> dict[str, Any]:
        """A step record; the result's part is filled when it is taken in."""
        self.num_steps += 1
        if not self.record_steps:
            return {}
        scheduler, config = self.scheduler, self.config
        items = this.items.values()
        free = len(scheduler.manager.pool.free)
        record: dict[str, Any] = {
            "ts": now,
            "t": start,
            "dt": dt,
            "sched": {item.seq.request.id: item.tokens for item in items},
            "drafts": {item.seq.request.id: item.drafts for item in items if item.drafts},
            "admit": dict(this.admitted),
            "pre": [seq.request.id for seq in this.preempted],
            "out": {} if config.num_speculative_tokens else [],
            "verify": {},
            "stale": [],
            "waste": [],
            "fin": [],
            "run": len(scheduler.running),
            "wait": len(scheduler.waiting),
            "free": free,
            "free_end": free,
            "held": {seq.request.id: seq.own.held() for seq in scheduler.running},
        }
        self.steps.append(record)
        return record

    def _take_in(self, step: Pass, record: dict[str, Any], end_s: float) -> bool:
        """Results; says whether a request finished."""
        out: dict[str, int] = {}
        verify: dict[str, list[int]] = {}
        stale: list[str] = []
        waste: list[str] = []
        fin: list[str] = []
        for seq, item in step.items.items():
            name = seq.request.id
            if seq.finished:
                waste.append(name)
                self.num_wasted += item.tokens
                continue
            if item.life != seq.num_preemptions:
                stale.append(name)
            delivered, accepted = self.scheduler.take_in(item, end_s)
            self._tell_gaps(seq, delivered, end_s)
            if delivered:
                out[name] = delivered
            if item.drafts and item.samples:
                verify[name] = [item.drafts, accepted]
                self.num_drafts += item.drafts
                self.num_accepted += accepted
            if seq.finished:
                fin.append(name)
                self.on_finish(seq.record())
        self.num_stale += len(stale)
        if self.record_steps:
            spec = self.config.num_speculative_tokens
            record["out"] = out if spec else list(out)
            record |= {"verify": verify, "stale": stale, "waste": waste, "fin": fin}
            record["free_end"] = len(self.scheduler.manager.pool.free)
        return bool(fin)
