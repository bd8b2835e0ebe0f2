"""The clock and the scheduling pass of one replica, with steady decodes as counters.

A step costs what happens in it, not what is running. Decodes that only go on are three numbers
(how many, the tokens they have computed, how many open a block in steps of each phase) and an
entry in a calendar of last steps. Requests are looked at one by one only where their order
matters, see `scarce`. docs/simulator.md has the rules and why this is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from collections.abc import Sequence as Items
from heapq import heappop, heappush
from math import ceil, inf
from typing import TYPE_CHECKING

from capplan.simulator.config import SchedulerConfig, rejection_reason
from capplan.simulator.prefix_cache import PrefixCache
from capplan.simulator.queues import FcfsQueue, PriorityQueue
from capplan.simulator.requests import Outcome, Rejection, Request, RequestRecord
from capplan.simulator.scarce import scarce_pass
from capplan.simulator.sequence import NO_STEP, Sequence
from capplan.simulator.step_time import ChunkSums, StepTime

if TYPE_CHECKING:
    from capplan.simulator.recorder import Recorder

NOBODY: frozenset[Sequence] = frozenset()


class Replica:
    """State between passes. `run` holds the hot part of it in local variables."""

    def __init__(
        self,
        config: SchedulerConfig,
        step_time: StepTime,
        on_finish: Callable[[RequestRecord], object],
        recorder: Recorder | None = None,
        *,
        reject: bool = True,
    ) -> None:
        self.config = config
        self.step_time = step_time
        self.on_finish = on_finish
        self.recorder = recorder
        self.reject = reject
        # Requests of fewer tokens need no closer look before they are accepted.
        self.harmless = min(config.max_model_len, config.usable_blocks * config.block_size)
        if not config.enable_chunked_prefill:
            self.harmless = min(self.harmless, config.max_num_batched_tokens)
        self.block_size, self.slots = config.block_size, config.slots
        self.watermark_blocks = config.watermark_blocks
        self.chunked_prefill = config.enable_chunked_prefill
        self.whole_prompt_must_fit = config.scheduler_reserve_full_isl
        self.cache: PrefixCache | None = None
        if config.enable_prefix_caching:
            self.cache = PrefixCache(config.block_size, config.usable_blocks)
        self.waiting: FcfsQueue | PriorityQueue
        self.waiting = FcfsQueue() if config.policy == "fcfs" else PriorityQueue()
        self.running: dict[Sequence, None] = {}  # in order of admission
        self.in_prompt: list[Sequence] = []  # running, prompt not computed; in the same order
        self.continued: dict[Sequence, None] = {}  # running decodes that others may look into
        self.landing: list[Sequence] = []  # last token sampled by the step in flight
        self.calendar: list[tuple[int, int, Sequence]] = []  # (last step, admission, decode)
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
        self.last_in_prompt = 0  # admissions up to this one have been sorted into `in_prompt`
        self.rejected: list[Rejection] = []

    # Arrivals.

    def arrivals(self, requests: Iterable[Request]) -> Iterator[Sequence]:
        """Sequences in order of arrival; what can never be served is refused."""
        config = self.config
        index, last = 0, -inf
        for request in requests:
            if request.arrival_s < last:
                raise ValueError(f"request {request.id} arrives before its predecessor")
            last = request.arrival_s
            tokens = request.prompt_tokens + request.output_tokens
            if self.reject and not 1 < tokens < self.harmless:
                reason = rejection_reason(request, config)
                if reason is not None:
                    self.rejected.append(Rejection(request.id, reason))
                    continue
            seq = Sequence(request, index, config.max_model_len)
            if self.cache is not None:
                seq.keys = self.cache.book.keys(request)
            index += 1
            yield seq

    # The rare parts of a pass.

    def prefill_is_held(self) -> bool:
        """Within `prefill_schedule_interval` steps of the last prefill, if nobody waits for it."""
        if self.last_prefill == NO_STEP or not self.scan_emptied:
            return False
        soon = self.step - self.last_prefill < self.config.prefill_schedule_interval
        return soon and len(self.running) > len(self.in_prompt)

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
        for seq in sorted([*self.continued, *chunks], key=lambda s: s.admission):
            if seq.last_step == NO_STEP:
                cache.register(seq, seq.computed)
            else:
                served = not seq.landing or seq.stops
                cache.register(seq, self.registered(seq, served=served))

    def remove_decode(self, seq: Sequence) -> None:
        """Take a decode out of the counters, within the pass of `step`."""
        self.num_decodes -= 1
        self.computed -= self.step + seq.offset
        self.opening[seq.phase] -= 1

    def preempt(self, seq: Sequence, *, served: bool) -> None:
        """Evict a running request, within the pass of `step`; it will be computed anew."""
        del self.running[seq]
        if seq.last_step == NO_STEP:
            computed = registered = seq.computed
            self.in_prompt.remove(seq)
        else:
            computed = self.step + seq.offset + served
            registered = self.registered(seq, served=served)
            self.continued.pop(seq, None)
            seq.outputs = seq.end - (seq.last_step - self.step + 1)
            if not seq.landing or seq.stops:
                self.remove_decode(seq)
        if self.cache is None:
            self.free += -(-computed // self.block_size)
        else:
            self.free += self.cache.leave(seq, computed, registered, preempted=True)
        seq.target = seq.prompt + seq.outputs
        seq.computed = 0
        seq.last_step = seq.phase = seq.starved_at = NO_STEP
        seq.num_preemptions += 1
        self.num_preemptions += 1
        self.waiting.put_back(seq)

    def release(self, finished: list[Sequence]) -> None:
        """Requests whose last token has been taken in leave, in scheduling order.

        `step` is the number of the next pass.
        """
        size, running, cache, recorder = self.block_size, self.running, self.cache, self.recorder
        if recorder:
            recorder.close(finished, self)
        for seq in finished:
            seq.finished = True
            if seq in running:
                del running[seq]
                registered = computed = seq.prompt + seq.end - 1
                if seq.stops and seq.landing:  # one more decode is on its way
                    computed = self.step + seq.offset
                    self.remove_decode(seq)
                if cache is None:
                    self.free += -(-computed // size)
                else:
                    self.continued.pop(seq, None)
                    self.free += cache.leave(seq, computed, registered, preempted=False)
            else:  # preempted with its last token on the way
                self.waiting.remove(seq)
            self.on_finish(seq.record())
        if recorder:
            recorder.released(self)

    # The clock.

    def run(self, requests: Iterable[Request]) -> Outcome:
        """Simulate until every request has left, or nothing can go on.

        `now` is the time of a pass, `start` the time its step begins on the GPU. Synchronous: the
        same. Asynchronous: the pass is made while the step before runs (`in_flight`), whose
        result is taken in after the pass; a request whose last token it holds is `landing`.

        One long function on purpose: its local variables are most of the speed.
        """
        config, cache, recorder = self.config, self.cache, self.recorder
        asynchronous, size, slots = config.async_scheduling, self.block_size, config.slots
        tokens_per_step, interval = config.max_num_batched_tokens, config.prefill_schedule_interval
        line, mixed, admit = self.step_time.line, self.step_time.mixed, self.admit
        running, waiting, calendar = self.running, self.waiting, self.calendar
        opening, in_prompt = self.opening, self.in_prompt
        cuts = config.long_prefill_token_threshold or config.long_prefill_token_threshold_adaptive
        fcfs = config.policy == "fcfs"
        # May a blocked head of the queue be taken to stay so while decodes only go on?
        steady_head = not config.long_prefill_token_threshold_adaptive and interval == 1
        if cache:
            steady_head = steady_head and config.scheduler_reserve_full_isl
        patience = 10_000 + 2 * config.max_model_len
        arrivals = self.arrivals(requests)
        coming = next(arrivals, None)
        next_arrival = coming.arrival_s if coming else inf
        now = start = idle_s = request_seconds = 0.0
        population = step = decodes = computed = tokens = max_running = fruitless = empty_passes = 0
        free, landing, blocked, end = self.free, self.landing, False, "finished"
        wasteful = False  # one of `landing` ends by a stop token: it is scheduled once more

        while True:
            while next_arrival <= now:
                assert coming is not None
                waiting.append(coming)
                request_seconds += now - next_arrival
                blocked = blocked and fcfs
                population += 1
                coming = next(arrivals, None)
                next_arrival = coming.arrival_s if coming else inf
            before, steps = now, 0

            if (
                decodes
                and not in_prompt
                and (blocked or not waiting)
                and decodes <= tokens_per_step
            ):
                # Decodes only: go on to the next last token, arrival or lack of blocks. (An entry
                # of the calendar that is no longer valid ends the stretch early; no harm.)
                steps = calendar[0][0] + 1 - step if calendar else 1
                if landing and (waiting or recorder or wasteful):
                    steps = 1  # what they free may matter to the next pass
                if (steps // size + 1) * decodes > free:
                    steps = self.steps_with_blocks(steps, step, decodes, free)
            if steps:
                first, first_start, first_computed = step, start, computed
                done = 0
                context = computed + decodes
                while done < steps and now < next_arrival:
                    base, slope, limit = line(decodes, context)
                    until = steps
                    if context + (steps - done) * decodes > limit:
                        until = done + max(1, ceil((limit - context) / decodes))
                    if asynchronous:
                        for done in range(done + 1, min(until, steps) + 1):  # noqa: B007
                            now = start
                            start += base + slope * context
                            context += decodes
                            if now >= next_arrival:
                                break
                    else:
                        for done in range(done + 1, min(until, steps) + 1):  # noqa: B007
                            start += base + slope * context
                            context += decodes
                            if start >= next_arrival:
                                break
                        now = start
                computed = context - decodes
                step += done
                tokens += done * decodes
                phase = first % size
                rest = phase + done % size
                taken = done // size * decodes + sum(opening[phase:rest])
                if rest > size:
                    taken += sum(opening[: rest - size])
                if landing and done > 1:
                    # The first of these steps is followed by their leaving.
                    request_seconds += len(landing) * (first_start - before)
                    free -= opening[phase]
                    taken -= opening[phase]
                    if cache:
                        cache.take(opening[phase])
                    population -= len(landing)
                    self.free = free
                    self.release(landing)
                    free, landing = self.free, []
                if recorder:
                    self.free = free
                    recorder.stretch(self, first, done, before, first_start, first_computed)
                free -= taken
                if cache:
                    cache.take(taken)
                if interval > 1:
                    self.scan_emptied = True  # nobody waits, see `steady_head`
                fruitless = 0
            elif population:
                # One pass. First those that run.
                cut = config.max_model_len
                if cuts and population > 1:
                    cut = config.long_prefill_token_threshold
                    if config.long_prefill_token_threshold_adaptive:
                        cut = max(cut, tokens_per_step // population)
                    cut = cut or config.max_model_len
                self.step = step
                held = interval > 1 and self.prefill_is_held()
                budget = tokens_per_step - decodes
                need = opening[step % size]
                enough, left = budget >= 0, budget
                chunks: list[tuple[Sequence, int]] = []
                sums: list[ChunkSums] = []
                preempted: Items[Sequence] = ()
                starved: Set[Sequence] = NOBODY
                if in_prompt and not held:
                    for seq in in_prompt:
                        want = seq.target - seq.computed
                        if want > cut:
                            want = cut
                        if want > left:
                            want = left
                            newest = seq.admission == self.num_admissions
                            enough = enough and (newest or seq is next(reversed(running)))
                        if want > 0:
                            need += -(-(seq.computed + want) // size) + (-seq.computed // size)
                            left -= want
                            chunks.append((seq, want))
                if enough and need <= free:
                    free -= need
                    for seq, want in chunks:
                        tokens += want
                        sums.append((want, seq.computed))
                        seq.computed += want
                    served, context, budget = decodes, computed + decodes, left
                    if cache:
                        cache.take(need)
                        if self.continued and (chunks or waiting):
                            self.register_pass([seq for seq, _ in chunks])
                        else:
                            for seq, _ in chunks:
                                if seq.keys:
                                    cache.register(seq, seq.computed)
                else:
                    self.num_decodes, self.computed, self.free = decodes, computed, free
                    scarce = scarce_pass(self, cut, held=held, budget_suffices=enough)
                    decodes, computed, free = self.num_decodes, self.computed, self.free
                    served, context, budget = scarce.decodes, scarce.context, scarce.budget
                    chunks, preempted, starved = scarce.chunks, scarce.preempted, scarce.starved
                    for seq, want in chunks:
                        tokens += want
                        sums.append((want, seq.computed - want))
                carried = len(chunks) > 0
                # Then those that wait.
                if not preempted:
                    if waiting and budget > 0 and len(running) < slots:
                        self.free = free
                        left = admit(chunks, sums, budget, cut, start, held)
                        carried = carried or self.admitted_prefill
                        tokens += budget - left
                        free = self.free
                        if len(running) > max_running:
                            max_running = len(running)
                    if interval > 1 and not held:
                        self.scan_emptied = not waiting
                if not served and not chunks:
                    # Nothing to run: take in what is in flight, or wait for an arrival.
                    fruitless += 1
                    waits = not preempted and not self.in_flight
                    if waits and coming is None:
                        end = "stalled"
                        break
                    if preempted or not asynchronous:
                        empty_passes += 1
                        if recorder:
                            self.free = free
                            recorder.empty(self, now, start, preempted)
                    if waits:
                        idle_s += next_arrival - start
                        start = next_arrival
                    now = start
                    request_seconds += population * (now - before)
                    if self.in_flight:
                        self.in_flight = False
                        self.num_decodes, self.computed, self.free = decodes, computed, free
                        self.release(landing)
                        decodes, computed, free = self.num_decodes, self.computed, self.free
                        population -= len(landing)
                        landing = self.landing = []
                    if fruitless > patience:
                        end = "livelock"
                        break
                    continue
                if chunks:
                    dt = mixed(served, context, sums)
                else:
                    base, slope, _ = line(served, context)
                    dt = base + slope * context
                if recorder:
                    self.free = free
                    recorder.executed(self, now, start, dt, chunks, starved, preempted)
                # The step runs.
                if carried:
                    self.last_prefill = step
                step += 1
                tokens += served
                computed += served
                now = start if asynchronous else start + dt
                start += dt
                fruitless = 0 if served else fruitless + 1
                if chunks:
                    newest = self.last_in_prompt
                    for seq, _ in chunks:
                        if seq.computed < seq.target:
                            if seq.admission > newest:
                                in_prompt.append(seq)
                            continue
                        # The prompt is computed, its first token sampled: it goes on by itself.
                        if seq.admission <= newest:
                            in_prompt.remove(seq)
                        fruitless = 0
                        offset = seq.offset = seq.computed - step
                        phase = seq.phase = -offset % size
                        opening[phase] += 1
                        decodes += 1
                        computed += seq.computed
                        seq.decode_since = step
                        last = seq.last_step = step - 2 + seq.end - seq.outputs
                        heappush(calendar, (last, seq.admission, seq))
                        if not seq.outputs:
                            seq.first_token_s = start
                        if cache and seq.request.reused:
                            self.continued[seq] = None
                    self.last_in_prompt = self.num_admissions
                blocked = (
                    steady_head and not chunks and not preempted and not starved
                    and not self.continued and len(waiting) > 0
                )  # fmt: skip
                if fruitless > patience:
                    end = "livelock"
                    break
            elif self.in_flight:
                # Nobody is left but a step is under way.
                now = start
                self.in_flight = False
                if recorder:
                    recorder.close([], self)
                continue
            elif coming is None:
                break
            else:
                idle_s += next_arrival - start
                now = start = next_arrival
                continue

            request_seconds += population * (now - before)
            # Who got the last token in this step?
            wasteful = False
            finished = []
            while calendar and calendar[0][0] < step:
                last, number, seq = heappop(calendar)
                if seq.last_step == last and seq.admission == number:
                    finished.append(seq)
                    seq.finish_s = start
                    blocked = False
                    if asynchronous:
                        seq.landing = True
                        if seq.stops:
                            wasteful = True
                            continue
                    decodes -= 1
                    computed -= step + seq.offset
                    opening[seq.phase] -= 1
                    seq.phase = NO_STEP
            if asynchronous:
                finished, landing = landing, finished
                self.landing = landing
            if finished:
                blocked = False
                population -= len(finished)
                self.step = step
                self.num_decodes, self.computed, self.free = decodes, computed, free
                self.release(finished)
                decodes, computed, free = self.num_decodes, self.computed, self.free
            elif recorder and (self.in_flight or not asynchronous):
                self.free = free
                recorder.close([], self)
            self.in_flight = asynchronous

        unfinished = sorted([*running, *waiting], key=lambda s: s.index)
        return Outcome(
            end=end,
            end_s=start,
            num_steps=step + empty_passes,
            num_empty_passes=empty_passes,
            scheduled_tokens=tokens,
            num_preemptions=self.num_preemptions,
            max_running=max_running,
            busy_s=start - idle_s,
            request_seconds=request_seconds,
            unfinished=tuple(seq.request.id for seq in unfinished),
            rejected=tuple(self.rejected),
            records=(),
        )

    def steps_with_blocks(self, steps: int, step: int, decodes: int, free: int) -> int:
        """How many of the next steps find the blocks that decodes open in them."""
        size, opening = self.block_size, self.opening
        cycles = free // decodes  # of `size` steps each, in which every decode opens one
        done = min(steps, cycles * size)
        free -= cycles * decodes
        while done < steps and opening[(step + done) % size] <= free:
            free -= opening[(step + done) % size]
            done += 1
        return done

    def admit(
        self,
        chunks: list[tuple[Sequence, int]],
        sums: list[ChunkSums],
        budget: int,
        cut: int,
        start: float,
        held: bool,
    ) -> int:
        """Move requests from the queue to the running list until one does not fit.

        Says what is left of the budget. `admitted_prefill`: one had more than a token to compute.
        """
        cache, waiting, running, size = self.cache, self.waiting, self.running, self.block_size
        free, slots, hit = self.free, self.slots, 0
        self.admitted_prefill = False
        while budget > 0 and waiting and len(running) < slots:
            seq = waiting[0]
            gap, spare = seq.target, free
            if cache:
                found = cache.find(seq)
                hit = 0
                if found:
                    hit = len(found) * size
                    gap -= hit
                    spare += sum([block.uses > 0 for block in found])
            want = gap
            if want > cut:
                want = cut
            if held and gap > 1:
                break
            if want > budget:
                if not self.chunked_prefill:
                    break
                want = budget
            if running:
                spare -= self.watermark_blocks
            needed = -(-(hit + want) // size)
            if needed > spare:
                break
            if want < gap and self.whole_prompt_must_fit and self.whole(seq) > spare:
                break
            waiting.popleft()
            running[seq] = None
            self.num_admissions += 1
            seq.admission = self.num_admissions
            seq.computed = hit + want
            if cache:
                if found:
                    free -= cache.table.hold(found)
                    needed -= len(found)
                cache.take(needed)
                seq.blocks = found
                if seq.keys:
                    cache.register(seq, seq.computed)
            free -= needed
            budget -= want
            if gap > 1:
                self.admitted_prefill = True
            seq.hits = (*seq.hits, hit) if seq.hits else (hit,)
            if seq.first_scheduled_s < 0:
                seq.first_scheduled_s = start
            chunks.append((seq, want))
            sums.append((want, hit))
        self.free = free
        return budget

    def whole(self, seq: Sequence) -> int:
        """Blocks of all tokens known of a request."""
        return -(-min(seq.target, self.config.max_model_len) // self.block_size)

    def outputs(self, seq: Sequence) -> int:
        """Output tokens that a request has got so far."""
        if seq.last_step == NO_STEP:
            return seq.outputs
        return min(seq.end, seq.end - (seq.last_step - self.step + 1))
