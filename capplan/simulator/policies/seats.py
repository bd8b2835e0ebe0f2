"""Slots, KV blocks and counters of one replica: who runs, and what that takes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from collections.abc import Sequence as Items
from heapq import heappop, heappush

from capplan.simulator.blocks import Block
from capplan.simulator.policies.config import LoopConfig
from capplan.simulator.policies.gap_watch import GapWatch
from capplan.simulator.policies.slot import Chunk, Slot
from capplan.simulator.prefix_cache import PrefixCache
from capplan.simulator.requests import RequestRecord
from capplan.simulator.sequence import NO_STEP
from capplan.simulator.step_time import StepTime
from capplan.simulator.watch import Watch
from capplan.simulator.windows import WindowCounters


class Seats:
    """Who runs. `pool.Pool` adds the doors, `loop.PolicyReplica` the clock."""

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
        self.config, self.on_finish, self._step_time = config, on_finish, step_time
        self.keeps_slots, self.remembers_evicted = keeps_slots, remembers_evicted
        self.block_size, self.slots = config.block_size, config.max_num_seqs
        self.watermark_blocks = config.watermark_blocks
        self.paged = config.kv_allocation == "paged"
        self.watch = GapWatch(watch) if watch else None
        self.now = self.start = 0.0
        self.waiting: deque[Slot] = deque()
        self.by_id: dict[str, Slot] = {}
        self.step = 0  # number of the next decode step
        self.last_prefill_step = 0  # number of the decode step after the last step with prompts
        self.num_admissions = self.num_preemptions = self.num_left = self.longest_announced = 0
        self.useful_slots = self.held_slots = self.padding_tokens = 0
        self.sojourn_s = 0.0
        self._empty()

    def _empty(self) -> None:
        """Nobody runs, every block is free and blank."""
        config = self.config
        self.running: dict[Slot, None] = {}  # in order of admission
        self.in_prompt: list[Slot] = []  # running, prompt not computed; in the same order
        self.landing: Items[Slot] = ()
        self.num_ghosts = 0  # finished, but still in the batch
        self.calendar: list[tuple[int, int, Slot]] = []  # (last step, admission, decode)
        self.opening = [0] * config.block_size  # decodes by the phase in which they open a block
        self.opened = 0  # blocks that the decodes of this pass's step take
        self.num_decodes = 0
        self.computed = 0  # tokens computed by the decodes, before the step
        self.free = config.num_blocks
        self.wake_step: float = 0  # from which decode step on the policy is asked about prompts
        self._announced_ends = 0  # of the decodes: the steps after the last announced token
        self.windows: WindowCounters | None = None
        if self._step_time.windows:
            self.windows = WindowCounters(self._step_time)
            self.windows.advance(self.step)
        self.cache: PrefixCache | None = None
        if config.enable_prefix_caching:
            self.cache = PrefixCache(config.block_size, config.num_blocks)

    @property
    def spare(self) -> int:
        """Free blocks, less those that the decodes of this step take."""
        return self.free - self.opened

    @property
    def announced_to_come(self) -> int:
        """Tokens that the decodes may still produce, by the limits they announced."""
        return self._announced_ends - self.num_decodes * self.step

    @property
    def wasted_slot_fraction(self) -> float:
        """Share of the slots held, step by step, that neither computed a prompt nor got a token:
        padding of who has finished, and decodes stalled by prompts."""
        return 1 - self.useful_slots / self.held_slots if self.held_slots else 0.0

    # Coming.

    def admission_blocks(self, seq: Slot) -> int:
        """Blocks that a request takes when it is admitted."""
        return seq.reserved or -(-seq.target // self.block_size)

    def admit(self, seq: Slot, found: list[Block]) -> None:
        """Move the head of the queue to the running requests."""
        assert seq is self.waiting[0]
        self.waiting.popleft()
        self.running[seq] = None
        self.num_admissions += 1
        seq.admission = self.num_admissions
        needed = self.admission_blocks(seq)
        hit = len(found) * self.block_size
        seq.computed = hit
        if self.cache:
            if found:
                self.free -= self.cache.table.hold(found)
                needed -= len(found)
            self.cache.take(needed)
            seq.blocks = found
        self.free -= needed
        if seq.first_scheduled_s < 0:
            seq.first_scheduled_s, seq.first_hit = self.start, hit
        else:
            seq.later_hits = (*seq.later_hits, hit)

    def begin(self, chunks: Items[Chunk], end_s: float, padded: int, *, together: bool) -> None:
        """Account for computed chunks; prompts that are done become decodes."""
        step, size = self.step, self.block_size
        begun: list[Slot] = []
        for seq, tokens in chunks:
            seq.computed += tokens
            if self.cache and seq.keys:
                self.cache.register(seq, seq.computed)
            if seq.computed < seq.target:
                if not seq.in_prompt:
                    seq.in_prompt = True
                    self.in_prompt.append(seq)
                continue
            if seq.in_prompt:
                seq.in_prompt = False
                self.in_prompt.remove(seq)
            context = padded or seq.computed
            seq.offset = context - step
            seq.phase = -seq.offset % size
            self.opening[seq.phase] += 1
            self.num_decodes += 1
            self.computed += context
            if self.windows:
                self.windows.add(seq, context)
            last = seq.last_step = step - 2 + seq.end - seq.outputs
            heappush(self.calendar, (last, seq.admission, seq))
            self._announced_ends += last + 1 + seq.announced - seq.end
            if last >= step:  # else this was its last token, too
                begun.append(seq)
            if not seq.outputs:
                seq.first_token_s = end_s
            elif self.watch:
                self.watch.resumed(end_s - seq.evicted_s)
        if self.watch:
            self.watch.began(end_s, begun, together=together)

    # Going.

    def due(self) -> list[Slot]:
        """Who got the last token; they count as decodes no more, unless they stay in the batch."""
        calendar, step = self.calendar, self.step
        finished: list[Slot] = []
        while calendar and calendar[0][0] < step:
            last, admission, seq = heappop(calendar)
            if seq.last_step != last or seq.admission != admission:
                continue  # it was evicted since
            finished.append(seq)
            seq.finish_s = self.start
            if self.keeps_slots:
                self.num_ghosts += 1
            else:
                self._leave_batch(seq)
                seq.landing = self.config.async_scheduling
        return finished

    def _leave_batch(self, seq: Slot) -> None:
        self.num_decodes -= 1
        self._announced_ends -= seq.last_step + 1 + seq.announced - seq.end
        self.computed -= self.step + seq.offset
        if self.windows:
            self.windows.remove(seq, self.step + seq.offset)
        self.opening[seq.phase] -= 1
        seq.phase = NO_STEP

    def release(self, finished: Items[Slot]) -> None:
        """Requests leave with their last token."""
        ghosts = self.keeps_slots
        self.wake_step = 0
        for seq in finished:
            seq.finished = True
            self.num_left += 1
            if not ghosts:
                del self.running[seq]
                tokens = seq.prompt + seq.end - 1
                self._give_back(seq, tokens, tokens)
            if self.by_id.pop(seq.request.id, None) is None:
                continue  # aborted, but it had to stay in the batch
            self.sojourn_s += seq.finish_s - seq.arrival_s
            self.on_finish(seq.record())
        if ghosts and self.num_ghosts == len(self.running):
            self._end_batch()

    def _end_batch(self) -> None:
        """Everybody in the batch has finished."""
        for seq in self.running:
            self._leave_batch(seq)
            tokens = seq.prompt + seq.end - 1
            self._give_back(seq, tokens, tokens)
        self.running.clear()
        self.num_ghosts = 0

    def _give_back(self, seq: Slot, held: int, known: int, *, findable: bool = False) -> None:
        """Blocks for `held` tokens are free again; those full with `known` tokens can be found,
        by `seq` itself only if `findable` and its tokens are nobody else's."""
        size = self.block_size
        held = seq.reserved * size or held
        if self.cache is None:
            self.free += -(-held // size)
        else:
            self.free += self.cache.leave(seq, held, known, preempted=findable)

    def unseat(self, seq: Slot) -> None:
        """A running request loses its blocks; it will be computed anew, its output included."""
        self._take_out(seq)
        seq.target = seq.prompt + seq.outputs
        seq.computed = 0
        seq.last_step = NO_STEP
        seq.num_preemptions += 1
        self.num_preemptions += 1

    def _take_out(self, seq: Slot) -> None:
        """Out of the running requests before its end."""
        del self.running[seq]
        if seq.last_step == NO_STEP:
            held, computed = seq.target, seq.computed  # blocks of the whole prompt are its own
            if seq.in_prompt:
                seq.in_prompt = False
                self.in_prompt.remove(seq)
        else:
            held = computed = self.step + seq.offset
            seq.outputs = seq.outputs_before(self.step)
            self._leave_batch(seq)
            if self.watch:
                seq.evicted_s = self.watch.left(seq)
        known, findable = len(seq.blocks) * self.block_size if self.cache else 0, False
        if self.remembers_evicted:
            known, findable = max(known, min(computed, seq.prompt)), True
        self._give_back(seq, held, known, findable=findable)

    # Blocks that decodes open.

    def opened_in(self, first: int, steps: int) -> int:
        """Blocks that the decodes open in these steps."""
        size, opening = self.block_size, self.opening
        phase = first % size
        rest = phase + steps % size
        taken = steps // size * self.num_decodes + sum(opening[phase:rest])
        return taken + sum(opening[: rest - size]) if rest > size else taken
