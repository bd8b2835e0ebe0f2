"""One replica under a policy: the clock, the KV blocks, and decodes as counters.

Like `core`, a step costs what happens in it, not what is running: decodes that only go on are
three numbers and an entry in a calendar. Time is counted in decode steps: a step of prompts that
stalls the decodes does not advance the counter, so nothing of them has to be touched.
docs/schedulers.md has the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Items
from math import ceil, inf

from capplan.simulator.policies.config import LoopConfig
from capplan.simulator.policies.policy import Policy
from capplan.simulator.policies.pool import Pool
from capplan.simulator.policies.slot import Chunk, Slot
from capplan.simulator.requests import Outcome, Request, RequestRecord
from capplan.simulator.sequence import steps_with_blocks
from capplan.simulator.step_time import StepTime
from capplan.simulator.watch import Watch

NO_CHUNKS: tuple[Chunk, ...] = ()


class PolicyReplica(Pool):
    """`loop.ReplicaLoop` for every policy of this package.

    `now` is the time of the next pass, `start` the time its step begins on the GPU: the same,
    unless the pass is made while the step before runs (`async_scheduling`). Then requests that
    got their last token in that step are `landing`: they hold slot and blocks in one more pass.
    """

    def __init__(
        self,
        config: LoopConfig,
        policy: Policy,
        step_time: StepTime,
        on_finish: Callable[[RequestRecord], object],
        *,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(
            config,
            on_finish,
            step_time,
            watch,
            keeps_slots=policy.keeps_slots,
            remembers_evicted=policy.remembers_evicted,
        )
        if policy.keeps_slots and (self.paged or config.async_scheduling):
            raise ValueError(f"{policy.name} neither pages KV nor schedules ahead")
        self.policy = policy
        self.longest_prompt = policy.longest_prompt(self)
        self._no_windows = [(0, 0)] * len(step_time.windows)
        self._overlap = config.async_scheduling
        self._in_flight = False  # a step runs whose result has not been taken in
        self._num_steps = self._tokens = self._max_running = 0
        self._busy_s = 0.0
        self._stalled = False  # whoever waits can never be served
        self._reached_s = 0.0

    @property
    def next_s(self) -> float:
        """When it makes a pass next; infinite while nobody is there who can be served."""
        if self.running or self._in_flight or (self.waiting and not self._stalled):
            return self.now
        return max(self.inbox[0].arrival_s, self._reached_s) if self.inbox else inf

    def advance(self, until_s: float) -> float:
        """Make every pass before `until_s`, but stop after one in which a request finished."""
        left = self.num_left
        while self.next_s < until_s and self.num_left == left:
            self._pass(until_s)
        reached_s = min(until_s, self.now) if self.next_s < inf else until_s
        # Without a horizon it has come as far as its clock: others may still be submitted.
        bound_s = until_s if until_s < inf else self.now
        self._reached_s = max(self._reached_s, min(bound_s, max(self.now, reached_s)))
        return reached_s

    def _pass(self, until_s: float) -> None:
        """One pass and its step; where decodes only go on, the passes up to a change."""
        policy, inbox = self.policy, self.inbox
        if self._stalled or not (self.running or self.waiting or self._in_flight):
            self.now = self.start = max(self.start, self.next_s)
        if inbox and inbox[0].arrival_s <= self.now and not policy.reads_in(self):
            self._read()
        chunks: Items[Chunk] = NO_CHUNKS
        evicted = False
        if self.paged and self.num_decodes and policy.mixes:
            self.opened = self.opening[self.step % self.block_size]
            if self.opened > self.free:
                evicted = self._evict()
        if (self.waiting or self.in_prompt) and self.step >= self.wake_step:
            chunks = policy.plan(self, admitting=not evicted)
            self.wake_step = 0 if chunks or evicted else self.step + policy.hold
            if len(self.running) > self._max_running:
                self._max_running = len(self.running)
        if self.watch:
            self.watch.load(self.start, self.num_running, len(self.waiting), self.num_used_blocks)
        if chunks:
            self._compute_prompts(chunks)
        elif self.num_decodes:
            self._decode(until_s)
        elif self._in_flight:
            self.now = self.start
            self._in_flight = False
            self._take_in(())
            return
        else:
            # Whoever waits can never be served, unless his betters had just been evicted.
            self._stalled = not evicted
            return
        self._in_flight = self._overlap
        self._take_in(self.due())

    def _evict(self) -> bool:
        """Until there is a block for every decode that opens one in the next step."""
        victims: list[Slot] = []
        while self.opening[self.step % self.block_size] > self.free:
            seq = self.policy.victim(self)
            self.unseat(seq)
            self.policy.put_back(self, seq)
            victims.append(seq)
        self.opened = self.opening[self.step % self.block_size] if self.policy.mixes else 0
        if victims:
            self.wake_step = 0
            self.policy.evicted(self)
        return bool(victims)

    def _read(self) -> None:
        """Let those who have arrived wait."""
        inbox, now = self.inbox, self.now
        while inbox and inbox[0].arrival_s <= now:
            self.waiting.append(inbox.popleft())
        self.wake_step = 0
        self._stalled = False

    def _compute_prompts(self, chunks: Items[Chunk]) -> None:
        """A step with prompts; decodes take part in it or are stalled by it."""
        served = self.num_decodes if self.policy.mixes else 0
        start, pads = self.start, self.policy.pads
        sums = [(tokens, seq.computed) for seq, tokens in chunks]
        real = sum([tokens for tokens, _ in sums])
        longest = 0
        if pads:
            longest = max(sums)[0]
            sums = [(longest, 0)] * len(sums)
            self.padding_tokens += longest * len(sums) - real
        if not served:
            dt = self._step_time.mixed(0, 0, sums, self._no_windows)
        else:
            dt = (self.windows or self._step_time).mixed(served, self.computed + served, sums)
        self.start = end = start + dt
        self.now = start if self._overlap else end
        self._busy_s += dt
        self._num_steps += 1
        self._tokens += served + real
        self.useful_slots += served + len(chunks)
        self.held_slots += len(self.running)
        if served:
            if self.paged:
                self.free -= self.opened
                if self.cache:
                    self.cache.take(self.opened)
            self.step += 1
            self.computed += served
            if self.windows:
                self.windows.advance(1)
        if self.watch:
            self.watch.prompts(start, dt, served, real)
        self.opened = 0
        self.last_prefill_step = self.step
        self.begin(chunks, end, longest, together=bool(served) or not self.num_decodes)

    def _decode(self, until_s: float) -> None:
        """Decodes only: on to the next last token, arrival, lack of blocks, or question."""
        step, decodes, size = self.step, self.num_decodes, self.block_size
        self.opened = 0
        steps: float = self.calendar[0][0] + 1 - step if self.calendar else 1
        horizon = until_s
        if self.inbox:
            arrival_s = self.inbox[0].arrival_s
            if arrival_s > self.now:
                horizon = min(until_s, arrival_s)
            else:  # it has arrived and is not read yet
                steps = min(steps, self.policy.reads_in(self) or 1)
        if self.waiting:
            steps = min(steps, max(1, self.wake_step - step))
        if self.landing:
            steps = 1
        if self.windows:
            steps = min(steps, self.windows.until_full())
        if self.paged and (steps // size + 1) * decodes > self.free:
            steps = steps_with_blocks(self.opening, int(steps), step, decodes, self.free)
            if not steps:
                self._evict()
                decodes, steps = self.num_decodes, 1
                if not decodes:
                    return
        done = self._run(int(steps), horizon)
        if self.paged:
            taken = self.opened_in(step, done)
            self.free -= taken
            if self.cache:
                self.cache.take(taken)
        self.useful_slots += (decodes - self.num_ghosts) * done
        self.held_slots += len(self.running) * done
        self._num_steps += done
        self._tokens += decodes * done

    def _run(self, steps: int, horizon: float) -> int:
        """Let decode steps run, until a pass would be at the horizon; says how many."""
        decodes, overlap, watch = self.num_decodes, self._overlap, self.watch
        windows, line = self.windows, (self.windows or self._step_time).line
        before, context = self.computed, self.computed + self.num_decodes
        now, start, began, done = self.now, self.start, self.start, 0
        while done < steps and now < horizon:
            base, slope, limit = line(decodes, context)
            until = steps
            if context + (steps - done) * decodes > limit:
                until = min(steps, done + max(1, ceil((limit - context) / decodes)))
            segment_start, first = start, context
            segment = range(context, context + (until - done) * decodes, decodes)
            if overlap:
                for context in segment:
                    now = start
                    start += base + slope * context
                    if now >= horizon:
                        break
            else:
                for context in segment:
                    start += base + slope * context
                    if start >= horizon:
                        break
                now = start
            if watch:
                number = (context - first) // decodes + 1
                watch.stretch(
                    segment_start, start, number, decodes, self.num_ghosts, first, base, slope
                )
            context += decodes
            reached = (context - before) // decodes - 1
            if windows:
                windows.advance(reached - done)
            done = reached
        self.computed = before + done * decodes
        self.step += done
        self.now, self.start = now, start
        self._busy_s += start - began
        return done

    def _take_in(self, finished: Items[Slot]) -> None:
        """Requests with their last token leave: at once, or with the result of the next pass."""
        if self._overlap:
            finished, self.landing = self.landing, finished
        if finished:
            self.release(finished)

    def abort_all(self) -> tuple[Request, ...]:
        """The replica fails: all that is in it is lost, cached blocks as well."""
        lost = self.forget()
        self.now = self.start = max(self._reached_s, 0.0)
        self._in_flight = self._stalled = False
        return lost

    def close(self) -> Outcome:
        """The sums of the whole run."""
        present = sorted([*self.running, *self.waiting, *self.inbox], key=lambda s: s.index)
        still = [seq for seq in present if not seq.finished]
        spent = sum(max(0.0, self.now - seq.arrival_s) for seq in still)
        return Outcome(
            end="stalled" if self._stalled else "finished",
            end_s=self.start,
            num_steps=self._num_steps,
            num_empty_passes=0,
            scheduled_tokens=self._tokens,
            num_preemptions=self.num_preemptions,
            max_running=self._max_running,
            busy_s=self._busy_s,
            request_seconds=self.sojourn_s + spent,
            unfinished=tuple(seq.request.id for seq in still),
            rejected=tuple(self.rejected),
            records=(),
        )
