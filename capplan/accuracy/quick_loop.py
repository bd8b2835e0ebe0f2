"""A replica as counters: one row's load in a few milliseconds, without a block table.

Decodes are a number and the sum of their contexts; a stretch of steps in which nothing changes is
one sum. Admission reserves KV tokens (see ``reserve_output_share``); nobody is preempted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil, inf
from typing import Protocol

from capplan.accuracy.step_record import StepRecord


class StepTimes(Protocol):
    """Step time in seconds, see `simulator.step_time.StepTime`."""

    def line(self, num_decodes: int, context_tokens: int) -> tuple[float, float, float]: ...

    def mixed(
        self, num_decodes: int, context_tokens: int, chunks: list[tuple[int, int]]
    ) -> float: ...


@dataclass(frozen=True)
class LoopRules:
    """``mixes``: decodes go on beside prefill, else they wait for it."""

    mixes: bool
    chunks: bool
    max_num_seqs: int
    max_num_batched_tokens: int
    kv_tokens: float
    reserve_output_share: float
    recv_interval: int = 1
    wait_iters: int = 0
    wait_tokens: float = 0.0


@dataclass(frozen=True)
class Timings:
    """Of each request, on the client's clock; by arrival."""

    sent_s: list[float]
    first_s: list[float]
    finish_s: list[float]
    decode_share_of_time: float

    @property
    def elapsed_s(self) -> float:
        """From the first request to the last answer."""
        return max(self.finish_s) - min(self.sent_s)


def run_loop(
    steps: StepTimes,
    rules: LoopRules,
    lengths: list[tuple[int, int]],
    arrivals: list[float] | None,
    concurrency: int,
    front_end_s: float,
    record: StepRecord | None = None,
) -> Timings:
    """Open loop at ``arrivals``, or a closed one of ``concurrency`` clients.

    ``record`` collects which steps ran and how much of TTFT and TPOT each was.
    """
    total = len(lengths)
    sent = [0.0] * total
    first = [0.0] * total
    finish = [0.0] * total
    # (time in the engine, request), in order of time.
    coming: deque[tuple[float, int]] = deque()
    if arrivals is not None:
        for index, when in enumerate(arrivals):
            sent[index] = when
            coming.append((when + front_end_s, index))
        unsent = total
    else:
        unsent = min(concurrency, total)
        coming.extend((front_end_s, index) for index in range(unsent))
    waiting: deque[int] = deque()
    prefilling: list[list[int]] = []  # [request, tokens done]
    calendar: list[tuple[int, int]] = []  # (step of the last token, request)
    waiting_tokens = 0
    now = kv = 0.0
    step = decodes = context = done = waited = since_poll = 0
    decode_s = 0.0
    pace = 0.0  # sum of 1 / output intervals of those that decode: TPOT of a second
    share, most, slots = rules.reserve_output_share, rules.kv_tokens, rules.max_num_seqs
    line, mixed = steps.line, steps.mixed
    interval, patience = rules.recv_interval, rules.wait_iters

    while done < total:
        if (
            coming
            and coming[0][0] <= now
            and (since_poll >= interval or interval == 1 or not decodes)
        ):
            since_poll = 0
            while coming and coming[0][0] <= now:
                index = coming.popleft()[1]
                waiting.append(index)
                waiting_tokens += lengths[index][0]
        held = (
            patience > 0
            and decodes > 0
            and waiting_tokens < rules.wait_tokens
            and waited < patience
        )
        budget = rules.max_num_batched_tokens - (decodes if rules.mixes else 0)
        chunks: list[tuple[int, int]] = []
        ended: list[int] = []
        if prefilling:
            kept = []
            for entry in prefilling:
                index, before = entry
                give = min(lengths[index][0] - before, budget)
                if give > 0:
                    budget -= give
                    chunks.append((give, before))
                    entry[1] = before + give
                if entry[1] == lengths[index][0]:
                    ended.append(index)
                else:
                    kept.append(entry)
            prefilling = kept
        while (
            waiting and budget > 0 and not held and decodes + len(ended) + len(prefilling) < slots
        ):
            index = waiting[0]
            prompt, output = lengths[index]
            need = prompt + share * output
            if kv + need > most and (decodes or ended or prefilling):
                break
            if prompt > budget and not rules.chunks and chunks:
                break
            waiting.popleft()
            waiting_tokens -= prompt
            kv += need
            give = min(prompt, budget) if rules.chunks else prompt
            budget -= give
            chunks.append((give, 0))
            if give == prompt:
                ended.append(index)
            else:
                prefilling.append([index, give])
        if chunks:
            waited = 0
            since_poll = interval
            going = decodes if rules.mixes else 0
            if record is not None:
                late = len(waiting) + len(prefilling) + len(ended)
                record.add(1, going, context + going, chunks, late, pace)
            now += mixed(going, context + going, chunks)
            if going:
                step += 1
                context += decodes
            for index in ended:
                prompt, output = lengths[index]
                first[index] = now
                decodes += 1
                context += prompt
                if output > 1:
                    pace += 1.0 / (output - 1)
                heappush(calendar, (step + output - 1, index))
        elif decodes:
            count = calendar[0][0] - step
            if held:
                count = min(count, max(1, patience - waited))
            base, slope, limit = line(decodes, context + decodes)
            each = base + slope * (context + decodes)
            if context + count * decodes > limit:
                count = max(1, min(count, int((limit - context) / decodes)))
            if coming:
                until = max(1, ceil((coming[0][0] - now) / each))
                if interval > 1:
                    until = max(until, interval - since_poll)
                count = min(count, until)
            spent = count * base + slope * (count * context + decodes * count * (count + 1) / 2)
            if record is not None:
                middle = context + decodes * (count + 1) / 2
                record.add(count, decodes, middle, (), len(waiting), pace)
            now += spent
            decode_s += spent
            step += count
            context += count * decodes
            if waiting:
                waited += count
            since_poll += count
        else:
            now = max(now, coming[0][0]) if coming else inf
            since_poll = interval
            if now == inf:
                break
            continue
        while calendar and calendar[0][0] <= step:
            index = heappop(calendar)[1]
            prompt, output = lengths[index]
            finish[index] = now
            decodes -= 1
            context -= prompt + output - 1
            kv -= prompt + share * output
            if output > 1:
                pace -= 1.0 / (output - 1)
            done += 1
            if unsent < total:
                sent[unsent] = now
                coming.append((now + front_end_s, unsent))
                unsent += 1
    return Timings(sent, first, finish, decode_s / now if now else 0.0)
