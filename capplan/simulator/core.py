"""The clock and the scheduling pass of one replica, with steady decodes as counters.

A step costs what happens in it, not what is running. Requests are looked at one by one only
where their order matters, see `scarce`. docs/simulator.md has the rules and why this is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from collections.abc import Sequence as Items
from heapq import heappop
from math import ceil, inf

from capplan.simulator.requests import Outcome
from capplan.simulator.scarce import scarce_pass
from capplan.simulator.sequence import NO_STEP, Sequence, by_admission, steps_with_blocks
from capplan.simulator.state import ReplicaState
from capplan.simulator.step_time import ChunkSums
from capplan.simulator.turnover import admission, departure, transition

NOBODY: frozenset[Sequence] = frozenset()


class Replica(ReplicaState):
    """One replica of the engine under the rules of one full-attention KV group."""

    def _passes(self, take: Callable[[], Sequence | None]) -> Iterator[Outcome | None]:
        """Make passes; yields None where it waits for others, and the outcome at the end.

        `now` is the time of a pass, `start` the time its step begins on the GPU. Synchronous: the
        same. Asynchronous: the pass is made while the step before runs (`in_flight`), whose
        result is taken in after the pass; a request whose last token it holds is `landing`.

        One long function on purpose: its local variables are most of the speed. They stay alive
        while it waits, so that the closed and the open form of a run are the same code.
        """
        config, cache, observers, is_open = self.config, self.cache, self.observers, self.is_open
        asynchronous, size, slots = config.async_scheduling, self.block_size, config.slots
        budget, longest = config.max_num_batched_tokens, config.max_model_len
        windows, begin_decode = self.windows, transition(self)
        admit, release = admission(self), departure(self)
        line, mixed = (windows or self.step_time).line, (windows or self.step_time).mixed
        running, waiting, in_prompt = self.running, self.waiting, self.in_prompt
        calendar, ending, opening = self.calendar, self.ending, self.opening
        paces, limits_prompts = self.paces, self.cuts or self.paces
        steady_head, fcfs = self.steady_head, config.policy == "fcfs"
        stops, patience = is_open and self.stops_at_finish, 10_000 + 2 * config.max_model_len
        told_at_once = stops or self.records_steps
        # The next request to come, and when: without one the horizon, to pause at once -inf.
        coming = None if is_open else take()
        next_arrival = coming.arrival_s if coming else -inf if is_open else inf
        now = start = idle_s = 0.0
        request_seconds = counted_s = 0.0  # of `population`, up to `counted_s`
        population = step = decodes = computed = tokens = max_running = fruitless = empty_passes = 0
        free, blocked, end = self.free, False, "finished"
        sorted_in = 0  # admissions up to this one have been sorted into `in_prompt`
        next_last = calendar[0]  # the next last step
        in_flight = False  # asynchronous: a step whose result is not taken in
        landing: list[Sequence] = []
        wasteful = False  # one of `landing` ends by a stop token: it is scheduled once more

        while True:
            if next_arrival <= now:
                if coming is None or next_arrival == -inf:
                    # Up to the horizon all is done, or others are to see what has happened.
                    self.step, self.landing, self.now_s = step, landing, now
                    self.num_decodes, self.computed, self.free = decodes, computed, free
                    self.in_flight, self.start_s, self.blocked = in_flight, start, blocked
                    self.hold_back(coming)
                    yield None
                    if self.is_closing:
                        end = self.end_of(population)
                        break
                    decodes, computed, free = self.num_decodes, self.computed, self.free
                    in_flight = self.in_flight
                    coming = take()
                    next_arrival = coming.arrival_s if coming else self.horizon_s
                    if self.wake_s is not None:  # nothing went on until then, or all is lost
                        idle_s += max(0.0, self.wake_s - start)
                        now = start = self.wake_s
                    if self.num_dropped:
                        request_seconds += population * (now - counted_s)
                        counted_s, blocked = now, False
                        population -= self.num_dropped
                    self.wake_s, self.num_dropped = None, 0
                    continue
                waiting.append(coming)
                request_seconds += population * (now - counted_s) + (now - next_arrival)
                counted_s = now
                blocked = blocked and fcfs
                population += 1
                coming = take()
                next_arrival = coming.arrival_s if coming else self.horizon_s
                continue
            steps = 0
            if decodes and not in_prompt and (blocked or not waiting) and decodes <= budget:
                # Decodes only: go on to the next last token, arrival or lack of blocks. (An entry
                # of the calendar that is no longer valid ends the stretch early; no harm.)
                steps = next_last + 1 - step
                if landing and (told_at_once or waiting or wasteful):
                    steps = 1  # what they free, or who they are, may matter to the next pass
                if windows:
                    steps = min(steps, windows.until_full())
                if steps * decodes > free and (steps // size + 1) * decodes > free:
                    steps = steps_with_blocks(opening, steps, step, decodes, free)
            if steps:
                before, first_start = now, start
                done, context = 0, computed + decodes
                while True:
                    base, slope, limit = line(decodes, context)
                    segment = steps - done
                    if limit < inf and context + segment * decodes > limit:
                        segment = min(segment, max(1, ceil((limit - context) / decodes)))
                    begin = start
                    # Whole numbers as floats: these multiply faster, and are exact up to 2^53.
                    reads, more = context + 0.0, decodes + 0.0
                    for number in range(1, segment):  # noqa: B007
                        if start >= next_arrival:
                            break
                        start += base + slope * reads
                        reads += more
                    else:
                        number = segment
                    # The last one. Asynchronous: its pass is made when the one before begins.
                    if asynchronous:
                        now = start
                        start += base + slope * reads
                    else:
                        if start < next_arrival:
                            start += base + slope * reads
                        else:
                            number -= 1
                        now = start
                    done += number
                    if windows:
                        windows.advance(number)
                    if observers:
                        observers.line(begin, number, decodes, context, base, slope, landing)
                    if done == steps or now >= next_arrival:
                        break
                    context = computed + (done + 1) * decodes
                phase = step % size
                rest = phase + done % size
                taken = done // size * decodes + sum(opening[phase:rest])
                if rest > size:
                    taken += sum(opening[: rest - size])
                step += done
                computed += done * decodes
                tokens += done * decodes
                if landing and steps > 1:
                    # The first of these steps is followed by their leaving.
                    request_seconds += population * (first_start - counted_s)
                    counted_s = first_start
                    free -= opening[phase]
                    taken -= opening[phase]
                    population -= len(landing)
                    free = release(landing, step, free)
                    landing = []
                free -= taken
                if observers:
                    self.free, times = free, (before, first_start, start)
                    context = computed - done * decodes
                    observers.stretch(self, (step - done, done), times, context, free + taken)
                if paces:
                    self.scan_emptied = True  # nobody waits, see `steady_head`
                fruitless = 0
            elif population:
                # One pass. First those that run.
                cut, held = longest, False
                if limits_prompts:
                    cut, held = self.prompt_limits(population, step)
                left = budget - decodes
                need = opening[step % size]
                enough = left >= 0
                prompts: list[Sequence] = []  # that get tokens in this step, and
                sums: list[ChunkSums] = []  # how many, after how many
                preempted: Items[Sequence] = ()
                starved: Set[Sequence] = NOBODY
                if in_prompt and not held:
                    for seq in in_prompt:
                        have = seq.computed
                        want = seq.target - have
                        if want > cut:
                            want = cut
                        if want > left:
                            want = left
                            is_last = seq.admission == self.num_admissions
                            enough = enough and (is_last or seq is next(reversed(running)))
                        if want > 0:
                            need += -(-(have + want) // size) + (-have // size)
                            left -= want
                            seq.computed = have + want
                            prompts.append(seq)
                            sums.append((want, have))
                if enough and need <= free:
                    free -= need
                    served, context = decodes, computed + decodes
                    if cache and cache.is_shared:
                        if self.continued and (prompts or waiting):
                            self.step, self.in_flight = step, in_flight
                            self.register_pass(prompts)
                        else:
                            for seq in prompts:
                                if seq.keys:
                                    cache.register(seq, seq.computed)
                else:
                    for seq, (_, have) in zip(prompts, sums, strict=True):
                        seq.computed = have
                    self.step, self.in_flight = step, in_flight
                    self.num_decodes, self.computed, self.free = decodes, computed, free
                    scarce = scarce_pass(self, cut, held=held, budget_suffices=enough)
                    decodes, computed, free = self.num_decodes, self.computed, self.free
                    served, context, left = scarce.decodes, scarce.context, scarce.budget
                    prompts, sums = scarce.prompts, scarce.sums
                    preempted, starved = scarce.preempted, scarce.starved
                # Then those that wait.
                if waiting and left > 0 and not preempted and len(running) < slots:
                    left, free = admit(prompts, sums, left, cut, start, held, free)
                    if len(running) > max_running:
                        max_running = len(running)
                if paces:
                    went_on = bool(prompts) and prompts[0].admission <= sorted_in
                    self.note_prefill(step, went_on=went_on, scanned=not (held or preempted))
                if prompts:
                    dt = mixed(served, context, sums)
                elif served:
                    base, slope, _ = line(served, context)
                    dt = base + slope * context
                else:
                    # Nothing to run: take in what is in flight, or wait for an arrival.
                    waits = not preempted and not in_flight
                    if waits and coming is None:
                        if not is_open:
                            end = "stalled"
                            break
                        # This pass is made once more when somebody comes.
                        self.is_idle, next_arrival = True, -inf
                        continue
                    fruitless += 1
                    if preempted or not asynchronous:
                        empty_passes += 1
                    if observers:
                        self.free = free
                        counts = bool(preempted) or not asynchronous
                        observers.nothing(self, now, start, preempted, counts=counts)
                    if waits:
                        idle_s += next_arrival - start
                        start = next_arrival
                    now = start
                    if in_flight:
                        in_flight = False
                        request_seconds += population * (now - counted_s)
                        counted_s = now
                        self.step, self.num_decodes, self.computed = step, decodes, computed
                        free = release(landing, step, free)
                        decodes, computed = self.num_decodes, self.computed
                        population -= len(landing)
                        if landing and stops:
                            next_arrival = -inf
                        landing = []
                    if fruitless > patience:
                        end = "livelock"
                        break
                    continue
                if observers:
                    self.step, self.free, times = step, free, (now, start, dt)
                    observers.executed(
                        self, times, served, prompts, sums, starved, preempted, landing
                    )
                # The step runs.
                step += 1
                tokens += budget - left
                computed += served
                if asynchronous:
                    now = start
                    start += dt
                else:
                    start += dt
                    now = start
                if served:
                    fruitless = 0
                elif fruitless > patience:
                    end = "livelock"
                    break
                else:
                    fruitless += 1
                if windows:
                    windows.advance(1)
                if prompts:
                    for seq in prompts:
                        if seq.computed < seq.target:
                            if seq.admission > sorted_in:
                                in_prompt.append(seq)
                            continue
                        # The prompt is computed, its first token sampled: it goes on by itself.
                        if seq.admission <= sorted_in:
                            in_prompt.remove(seq)
                        fruitless = 0
                        decodes += 1
                        computed += seq.computed
                        begin_decode(seq, step, start)
                    next_last, sorted_in = calendar[0], self.num_admissions
                    if observers:
                        self.last_in_prompt = sorted_in
                    blocked = False
                else:
                    blocked = (
                        steady_head
                        and bool(waiting)
                        and not (preempted or starved or self.continued)
                    )
            elif in_flight:
                # Nobody is left but a step is under way.
                now = start
                in_flight = False
                if observers:
                    observers.taken_in(self, [])
                continue
            elif coming is None:
                if not is_open:
                    break
                self.is_idle, next_arrival = True, -inf
                continue
            else:
                if observers:
                    observers.idle(start)
                idle_s += next_arrival - start
                now = start = next_arrival
                continue

            # Who got the last token in this step?
            if landing or next_last < step:
                was_wasteful, wasteful = wasteful, False
                finished: list[Sequence] = []
                while next_last < step:
                    finished += ending.pop(heappop(calendar))
                    next_last = calendar[0]
                if len(finished) > 1:
                    finished.sort(key=by_admission)
                for seq in finished:
                    seq.finish_s = start
                    if asynchronous:
                        seq.landing = True
                        if seq.stops:
                            wasteful = True
                            continue
                    decodes -= 1
                    computed -= step + seq.offset
                    if windows:
                        windows.remove(seq, step + seq.offset)
                    opening[seq.phase] -= 1
                    seq.phase = NO_STEP
                if asynchronous:
                    finished, landing = landing, finished
                blocked = False
                if finished:
                    request_seconds += population * (now - counted_s)
                    counted_s = now
                    population -= len(finished)
                    if stops:
                        next_arrival = -inf
                    if was_wasteful:
                        self.step, self.num_decodes, self.computed = step, decodes, computed
                    free = release(finished, step, free)
                    if was_wasteful:
                        decodes, computed = self.num_decodes, self.computed
                elif observers and (in_flight or not asynchronous):
                    self.free = free
                    observers.taken_in(self, [])
            elif observers and (in_flight or not asynchronous):
                self.free = free
                observers.taken_in(self, [])
            in_flight = asynchronous

        yield self.outcome_of(
            end=end,
            end_s=start,
            num_steps=step + empty_passes,
            num_empty_passes=empty_passes,
            scheduled_tokens=tokens,
            max_running=max_running,
            busy_s=start - idle_s,
            request_seconds=request_seconds + population * (now - counted_s),
        )
