"""What one replica knows between passes, and the parts of a pass that are rare or shared.

Decodes that only go on are three numbers (how many, the tokens they have computed, how many open
a block in steps of each phase) and an entry in a calendar of last steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappush
from math import inf

from capplan.simulator.config import SchedulerConfig, rejection_reason
from capplan.simulator.observers import Observers, StepObserver
from capplan.simulator.open_form import OpenForm
from capplan.simulator.prefix_cache import PrefixCache
from capplan.simulator.queues import FcfsQueue, PriorityQueue
from capplan.simulator.requests import Rejection, Request, RequestRecord
from capplan.simulator.sequence import NO_STEP, Sequence, by_admission
from capplan.simulator.step_time import StepTime
from capplan.simulator.watch import CounterWatch, Watch
from capplan.simulator.windows import WindowCounters

FOREVER = 1 << 62  # a step that is never reached


class ReplicaState(OpenForm):
    """Queues, blocks and counters of one replica; `core.Replica` adds the clock."""

    def __init__(
        self,
        config: SchedulerConfig,
        step_time: StepTime,
        on_finish: Callable[[RequestRecord], object],
        recorder: StepObserver | None = None,
        *,
        reject: bool = True,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(on_finish)
        self.config = config
        self.step_time = step_time
        self.windows = WindowCounters(step_time) if step_time.windows else None
        if recorder and self.windows:
            raise ValueError("steps are recorded for step times without attention windows only")
        self.observers: Observers | None = None
        if recorder or watch:
            self.observers = Observers(recorder, CounterWatch(watch) if watch else None)
        self.records_steps = recorder is not None
        self.reject = reject
        # Requests of fewer tokens need no closer look before they are accepted.
        self.harmless = min(config.max_model_len, config.usable_blocks * config.block_size)
        if not config.enable_chunked_prefill:
            self.harmless = min(self.harmless, config.max_num_batched_tokens)
        self.block_size, self.slots = config.block_size, config.slots
        self.cache: PrefixCache | None = None
        if config.enable_prefix_caching:
            self.cache = PrefixCache(config.block_size, config.usable_blocks)
        self.waiting: FcfsQueue | PriorityQueue
        self.waiting = FcfsQueue() if config.policy == "fcfs" else PriorityQueue()
        self.running: dict[Sequence, None] = {}  # in order of admission
        self.in_prompt: list[Sequence] = []  # running, prompt not computed; in the same order
        self.continued: dict[Sequence, None] = {}  # running decodes that others may look into
        # Decodes by the step that samples their last token, and a heap of these steps. The last
        # of them is never reached, and there may be some of which all decodes have left.
        self.ending: dict[int, list[Sequence]] = {}
        self.calendar = [FOREVER]
        self.opening = [0] * config.block_size  # decodes by the phase in which they open a block
        self.step = 0  # number of the next step
        self.num_decodes = 0
        self.computed = 0  # tokens computed by the decodes, before the step
        self.free = config.usable_blocks
        self.in_flight = False  # asynchronous: a step whose result is not taken in
        self.last_prefill = NO_STEP  # last step that carried prefill
        self.admitted_prefill = False
        self.scan_emptied = False  # the last admission scan emptied the queue
        self.num_preemptions = self.num_admissions = 0
        # Is a prompt cut short, or held back for a while?
        cuts = config.long_prefill_token_threshold or config.long_prefill_token_threshold_adaptive
        self.cuts, self.paces = bool(cuts), config.prefill_schedule_interval > 1
        # May a blocked head of the queue be taken to stay so while decodes only go on?
        self.steady_head = not (self.paces or config.long_prefill_token_threshold_adaptive) and (
            config.scheduler_reserve_full_isl or not config.enable_prefix_caching
        )
        self.last_in_prompt = 0  # for the recorder: later admissions are of this pass
        # While it pauses: whose last token is under way, when the next step begins on the GPU, and
        # whether those that wait go on waiting while decodes go on.
        self.landing: list[Sequence] = []
        self.start_s, self.blocked = 0.0, False

    # Arrivals.

    def arrivals(self, requests: Iterable[Request]) -> Iterator[Sequence]:
        """Sequences in order of arrival; what can never be served is refused."""
        config, cache, harmless = self.config, self.cache, self.harmless
        longest, last_s, index = config.max_model_len, self.last_arrival_s, self.num_arrivals
        for request in requests:
            seq = Sequence(request, index, longest)
            if seq.arrival_s < last_s:
                raise ValueError(f"request {request.id} arrives before its predecessor")
            last_s = seq.arrival_s
            if not 0 < seq.prompt < harmless - seq.asked < harmless:  # something to compute, too
                reason = rejection_reason(request, config) if self.reject else None
                if reason is not None:
                    self.rejected.append(Rejection(request.id, reason))
                    continue
            if cache is not None and (request.prefix or request.reused):
                seq.keys = cache.book.keys(request)
                cache.is_shared = True
                if len(cache.book) > cache.book.limit:
                    present = [seq, *self.present(), *self.inbox]
                    cache.book.forget(set(cache.table.found).union(*[s.keys for s in present]))
            index += 1
            yield seq

    def present(self) -> list[Sequence]:
        """Everybody in the engine."""
        return [*self.running, *self.waiting]

    @property
    def num_running(self) -> int:
        return len(self.running)

    @property
    def num_used_blocks(self) -> int:
        return self.config.usable_blocks - self.free

    def quiet_until_s(self) -> float:
        """Nobody finishes before it unless somebody comes or goes; as far as is easily known."""
        if self.is_idle or self.inbox or self.wake_s is not None:
            return self.next_s
        if self.landing:
            return self.start_s
        decodes, free = self.num_decodes, self.free
        waits = self.waiting and not self.blocked
        if not decodes or self.in_prompt or waits or decodes > self.config.max_num_batched_tokens:
            return self.now_s
        steps = self.calendar[0] + 1 - self.step
        if self.windows or (steps // self.block_size + 1) * decodes > free:
            return self.now_s
        context = self.computed + decodes
        base, slope, limit = self.step_time.line(decodes, context)
        if limit < inf:
            return self.now_s
        # The loop adds up step by step: this is the same but for rounding.
        mean_s = base + slope * (context + decodes * (steps - 1) / 2)
        return (self.start_s + steps * mean_s) * (1 - 1e-9)

    # The rare parts of a pass.

    def prompt_limits(self, population: int, step: int) -> tuple[int, bool]:
        """Tokens that one prompt may get in a step, and whether prefill is held back in it."""
        config, cut = self.config, self.config.max_model_len
        if self.cuts and population > 1:
            cut = config.long_prefill_token_threshold
            if config.long_prefill_token_threshold_adaptive:
                cut = max(cut, config.max_num_batched_tokens // population)
        if not self.paces or self.last_prefill == NO_STEP or not self.scan_emptied:
            return cut, False
        # Within `prefill_schedule_interval` steps of the last prefill, if nobody waits for it.
        soon = step - self.last_prefill < config.prefill_schedule_interval
        return cut, soon and len(self.running) > len(self.in_prompt)

    def note_prefill(self, step: int, *, went_on: bool, scanned: bool) -> None:
        """For `prompt_limits`: a pass served prompts that run, or admitted; was the queue read?"""
        if went_on or self.admitted_prefill:
            self.last_prefill = step
        self.admitted_prefill = False
        if scanned:
            self.scan_emptied = not self.waiting

    def registered(self, seq: Sequence, *, served: bool) -> int:
        """Tokens of a decode whose full blocks are registered, within the pass of `step`.

        A token in flight is not known yet: the block that it fills is registered by the next pass
        that serves the request, or when the result is taken in.
        """
        computed = self.step + seq.offset
        flying = self.in_flight and seq.starved_at != self.step - 1
        if served:
            return computed + 1 - flying
        return computed - (flying and seq.decode_since != self.step)

    def register_pass(self, chunks: list[Sequence]) -> None:
        """Register what this pass fills, in the order of the running list."""
        cache = self.cache
        assert cache is not None
        for seq in sorted([*self.continued, *chunks], key=by_admission):
            if seq.last_step == NO_STEP:
                cache.register(seq, seq.computed)
            else:
                served = not seq.landing or seq.stops
                cache.register(seq, self.registered(seq, served=served))

    def ends_in(self, step: int, seq: Sequence) -> None:
        """Put a decode into the calendar."""
        seq.last_step = step
        if step in self.ending:
            self.ending[step].append(seq)
        else:
            self.ending[step] = [seq]
            heappush(self.calendar, step)

    def remove_decode(self, seq: Sequence) -> None:
        """Take a decode out of the counters, within the pass of `step`."""
        self.num_decodes -= 1
        self.computed -= self.step + seq.offset
        if self.windows:
            self.windows.remove(seq, self.step + seq.offset)
        self.opening[seq.phase] -= 1

    def preempt(self, seq: Sequence, *, served: bool) -> None:
        """Evict a running request, within the pass of `step`; it will be computed anew."""
        if seq.last_step != NO_STEP:
            seq.outputs = seq.end - (seq.last_step - self.step + 1)
        self._take_out(seq, served=served, comes_back=True)
        seq.target = seq.prompt + seq.outputs
        seq.computed = 0
        seq.last_step = seq.phase = seq.starved_at = NO_STEP
        seq.num_preemptions += 1
        self.num_preemptions += 1
        self.waiting.put_back(seq)

    def _take_out(self, seq: Sequence, *, served: bool, comes_back: bool) -> None:
        """Off the running list and out of the counters; its blocks are free."""
        del self.running[seq]
        if seq.last_step == NO_STEP:
            computed = registered = seq.computed
            self.in_prompt.remove(seq)
        else:
            computed = self.step + seq.offset + served
            registered = self.registered(seq, served=served)
            self.continued.pop(seq, None)
            if not seq.landing:
                self.ending[seq.last_step].remove(seq)
            if not seq.landing or seq.stops:
                self.remove_decode(seq)
        if self.cache is None:
            self.free += -(-computed // self.block_size)
        else:
            self.cache.table.settle(self.free)
            self.free += self.cache.leave(seq, computed, registered, preempted=comes_back)

    def drop(self, seq: Sequence) -> None:
        """Between two passes: a running request loses its blocks, a waiting one its place."""
        if seq in self.running:
            self._take_out(seq, served=False, comes_back=False)
        else:
            self.waiting.remove(seq)
        if seq.landing:
            self.landing.remove(seq)

    def forget(self) -> None:
        """The memory is lost: nothing is found any more, and no step is under way."""
        self.in_flight = False
        if self.cache is not None:
            self.cache.table.clear(self.config.usable_blocks)
