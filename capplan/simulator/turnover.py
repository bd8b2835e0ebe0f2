"""Who comes into the running list, who decodes from now on, who leaves: once to every request.

All are made as functions that hold on to what they need, for speed: they share the queues of the
replica and hand the number of free blocks to and fro.
"""

from __future__ import annotations

from collections.abc import Callable

from capplan.simulator.blocks import Block, BlockTable
from capplan.simulator.sequence import Sequence
from capplan.simulator.state import ReplicaState
from capplan.simulator.step_time import ChunkSums

Admit = Callable[[list[Sequence], list[ChunkSums], int, int, float, bool, int], tuple[int, int]]
Begin = Callable[[Sequence, int, float], None]
Release = Callable[[list[Sequence], int, int], int]


def admission(replica: ReplicaState) -> Admit:
    """Moves requests from the queue to the running list until one does not fit."""
    cache, waiting, running, size = (
        replica.cache,
        replica.waiting,
        replica.running,
        replica.block_size,
    )
    config, slots = replica.config, replica.slots
    watermark, chunked = config.watermark_blocks, config.enable_chunked_prefill
    whole_prompt, longest = config.scheduler_reserve_full_isl, config.max_model_len
    table = cache.table if cache else BlockTable(0)

    def admit(
        prompts: list[Sequence],
        sums: list[ChunkSums],
        budget: int,
        cut: int,
        start: float,
        held: bool,
        free: int,
    ) -> tuple[int, int]:
        """What is left of the budget and of the free blocks.

        Adds to `prompts` and `sums`; sets `admitted_prefill` if one has more than a token to
        compute.
        """
        while budget > 0 and waiting and len(running) < slots:
            seq = waiting[0]
            gap, spare, hit = seq.target, free, 0
            found: list[Block] = []
            if cache and (seq.keys or seq.num_preemptions):
                table.settle(free)
                found = cache.find(seq)
                hit = len(found) * size
                gap -= hit
                spare += sum([block.uses > 0 for block in found])
            want = gap
            if want > cut:
                want = cut
            if held and gap > 1:
                break
            if want > budget:
                if not chunked:
                    break
                want = budget
            if watermark and running:
                spare -= watermark
            needed = -(-(hit + want) // size)
            if needed > spare:
                break
            if want < gap and whole_prompt and -(-min(seq.target, longest) // size) > spare:
                break
            waiting.popleft()
            running[seq] = None
            seq.admission = replica.num_admissions = replica.num_admissions + 1
            seq.computed = hit + want
            free -= needed
            if cache:
                if found:
                    free += len(found) - table.hold(found)
                seq.blocks = found
                if seq.keys:
                    cache.register(seq, seq.computed)
            budget -= want
            if gap > 1:
                replica.admitted_prefill = True
            if seq.num_preemptions:
                seq.later_hits = (*seq.later_hits, hit)
            else:
                seq.first_scheduled_s, seq.first_hit = start, hit
            prompts.append(seq)
            sums.append((want, hit))
        return budget, free

    return admit


def transition(replica: ReplicaState) -> Begin:
    """Lets a request whose prompt is computed go on by itself: from now on it is counted."""
    cache, windows, size = replica.cache, replica.windows, replica.block_size
    opening, ends_in = replica.opening, replica.ends_in

    def begin(seq: Sequence, step: int, start: float) -> None:
        """`step` is the number of the next pass, `start` when the first token is sampled."""
        offset = seq.offset = seq.computed - step
        phase = seq.phase = -offset % size
        opening[phase] += 1
        seq.decode_since = step
        if windows:
            windows.add(seq, seq.computed)
        ends_in(step - 2 + seq.end - seq.outputs, seq)
        if not seq.outputs:
            seq.first_token_s = start
        if cache and cache.is_shared and seq.request.reused:
            replica.continued[seq] = None

    return begin


def departure(replica: ReplicaState) -> Release:
    """Lets requests leave whose last token has been taken in."""
    cache, running, size = replica.cache, replica.running, replica.block_size
    observers, on_finish = replica.observers, replica.on_finish
    table = cache.table if cache else BlockTable(0)

    def release(finished: list[Sequence], step: int, free: int) -> int:
        """Free blocks after it. In scheduling order; `step` is the number of the next pass."""
        if observers:
            replica.free = free
            observers.taken_in(replica, finished)
        for seq in finished:
            seq.finished = True
            if seq in running:
                del running[seq]
                registered = computed = seq.prompt + seq.end - 1
                if seq.stops and seq.landing:  # one more decode is on its way
                    computed = step + seq.offset
                    replica.remove_decode(seq)
                if cache is None:
                    free += -(-computed // size)
                else:
                    table.settle(free)
                    if seq.keys or seq.blocks:
                        replica.continued.pop(seq, None)
                        free += cache.leave(seq, computed, registered, preempted=False)
                    else:
                        full = registered // size
                        free += table.release_nameless(full, -(-computed // size) - full)
            else:  # preempted with its last token on the way
                replica.waiting.remove(seq)
            on_finish(seq.record())
        if observers:
            replica.free = free
            observers.released(replica)
        return free

    return release
