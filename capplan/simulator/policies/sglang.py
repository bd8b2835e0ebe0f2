"""SGLang's rules as documented; no recorded steps to compare with."""

from __future__ import annotations

from collections.abc import Sequence as Items

from capplan.simulator.policies.policy import NO_BLOCKS, UNLIMITED, Policy
from capplan.simulator.policies.pool import Pool
from capplan.simulator.policies.slot import Chunk, Slot

# Defaults of SGLang 0.5, srt/environ.py.
INIT_NEW_TOKEN_RATIO = 0.7
MIN_NEW_TOKEN_RATIO_FACTOR = 0.14
NEW_TOKEN_RATIO_DECAY_STEPS = 600
RETRACT_DECODE_STEPS = 20
CLIP_MAX_NEW_TOKENS = 4096


class Sglang(Policy):
    """Prompts before decodes, in steps of `chunked_prefill_size` tokens; retraction.

    A step of prompts stalls the decodes (unless `enable_mixed_chunk`), and a cut prompt goes on
    in the next step. A request is admitted if its prompt and announced output (4,096 tokens at
    most) are below what is free, less `new_token_ratio` times what the running requests may still
    produce. That ratio falls from step to step, and jumps up when decodes lack memory and
    requests have to be retracted: those with the fewest outputs, of these the longest prompts;
    they wait at the end of the queue. After a request did not fit, nobody is looked at until one
    has left. With `ignore_eos` and without radix cache, admission looks ahead to every finish.

    `scheduler_recv_interval`: new requests are read only every so many decode steps; a step of
    prompts, or an idle engine, reads at once. `max_running_requests` is the configuration's
    `max_num_seqs`, `page_size` its `block_size`, the radix cache its `enable_prefix_caching`
    (whole pages), the overlap scheduler its `async_scheduling`. Policy "fcfs" (the default).

    Sources: "Server Arguments" and "Hyperparameter Tuning" of docs.sglang.io; what
    managers/schedule_policy.py (PrefillAdder), scheduler.py, schedule_batch.py (retract_decode)
    and scheduler_recv_skipper.py of release 0.5 do.
    """

    name = "sglang"
    mixes = False
    chunked = True
    remembers_evicted = True

    def __init__(
        self,
        *,
        chunked_prefill_size: int = 8192,  # -1: prompts are not cut
        max_prefill_tokens: int = 16384,
        schedule_conservativeness: float = 1.0,
        scheduler_recv_interval: int = 1,
        enable_mixed_chunk: bool = False,
        ignore_eos: bool = False,
    ) -> None:
        self.mixes = enable_mixed_chunk
        self._chunk = chunked_prefill_size if chunked_prefill_size > 0 else UNLIMITED
        self._max_prefill = max_prefill_tokens
        self._interval = scheduler_recv_interval
        self._ignore_eos = ignore_eos
        self._init_ratio = min(INIT_NEW_TOKEN_RATIO * schedule_conservativeness, 1.0)
        self._min_ratio = self._init_ratio * MIN_NEW_TOKEN_RATIO_FACTOR
        self._decay = (self._init_ratio - self._min_ratio) / NEW_TOKEN_RATIO_DECAY_STEPS
        self._ratio, self._ratio_step = self._init_ratio, 0
        self._full_since = -1  # requests that had left when one did not fit

    def longest_prompt(self, engine: Pool) -> int | None:  # noqa: ARG002
        return None

    def reads_in(self, engine: Pool) -> int:
        if self._interval <= 1 or not engine.running:
            return 0
        # Passes that read nothing because nobody came count as well.
        return -(engine.step - engine.last_prefill_step) % self._interval

    def plan(self, engine: Pool, *, admitting: bool) -> Items[Chunk]:
        """Continue the cut prompt, then admit; a step of prompts if there is one."""
        left, inputs = self._chunk, self._max_prefill
        if self.mixes:
            left -= engine.num_decodes
        chunks: list[Chunk] = []
        for seq in engine.in_prompt:
            tokens = min(seq.target - seq.computed, left)
            if tokens <= 0:
                break
            chunks.append((seq, tokens))
            left -= tokens
            inputs -= tokens
        if not admitting or not engine.waiting or self._full_since == engine.num_left:
            return chunks
        if not engine.running:
            self._ratio, self._ratio_step = self._init_ratio, engine.step
        begun = len(chunks)
        found, cache, waiting = NO_BLOCKS, engine.cache, engine.waiting
        while waiting and left > 0 and inputs > 0:
            if len(engine.running) >= engine.slots:
                self._full_since = engine.num_left
                break
            seq = waiting[0]
            if cache:
                found = cache.find(seq)
            gap = seq.target - len(found) * engine.block_size
            if gap > inputs and chunks:
                break
            idle = sum([not block.uses for block in found]) if found else 0
            room = (engine.spare - idle) * engine.block_size - gap
            new = [seq for seq, _ in chunks[begun:]]
            if engine.running and not self._has_room(engine, seq, room, new):
                self._full_since = engine.num_left
                break
            tokens = min(gap, left)
            engine.admit(seq, found)
            chunks.append((seq, tokens))
            left -= tokens
            inputs -= tokens
        return chunks

    def _to_come(self, seq: Slot, step: int) -> int:
        """Output tokens that a request may still produce, as far as they are counted."""
        return min(seq.announced - seq.outputs_before(step), CLIP_MAX_NEW_TOKENS)

    def _ratio_at(self, step: int) -> float:
        ratio = self._ratio - self._decay * (step - self._ratio_step)
        return max(ratio, self._min_ratio)

    def _has_room(self, engine: Pool, seq: Slot, room: int, new: list[Slot]) -> bool:
        """May it be admitted? `room`: free tokens once its prompt is in."""
        if room < 0 or engine.admission_blocks(seq) > engine.spare:
            return False
        if self._ignore_eos and not engine.cache:
            return self._outlives(engine, seq, room, new)
        step = engine.step
        wanted, fresh = self._to_come(seq, step), sum([self._to_come(s, step) for s in new])
        ratio = self._ratio_at(step)
        may_come = engine.announced_to_come + self._in_prompt_to_come(engine)
        if wanted < room - ratio * may_come - fresh:
            return True
        if engine.longest_announced <= CLIP_MAX_NEW_TOKENS:
            return False  # nothing of it was clipped
        clipped = sum([self._to_come(s, step) for s in engine.running]) - fresh
        return wanted < room - ratio * clipped - fresh

    def _in_prompt_to_come(self, engine: Pool) -> int:
        return sum([seq.announced - seq.outputs for seq in engine.in_prompt])

    def _outlives(self, engine: Pool, new: Slot, room: int, admitted: list[Slot]) -> bool:
        """Is there memory at every finish to come, if everybody runs to his announced end?"""
        step, number = engine.step, len(engine.running) + 1
        prompts = [*engine.in_prompt, *admitted, new]
        to_come = engine.announced_to_come + sum([s.announced - s.outputs for s in prompts])
        if to_come + number < room:
            return True
        # (tokens to come, tokens held)
        ends = [(seq.announced - seq.outputs, seq.target) for seq in prompts]
        ends += [
            (seq.announced - seq.end + seq.last_step + 1 - step, seq.offset + step + 1)
            for seq in engine.running
            if seq.last_step >= step
        ]
        ends.sort()
        number, freed = len(ends), 0
        for left, held in ends:
            if room + freed - left * number <= number:
                return False
            freed += held
            number -= 1
        return True

    def victim(self, engine: Pool) -> Slot:
        step = engine.step
        candidates = [seq for seq in engine.running if not seq.landing]
        return min(candidates, key=lambda s: (s.outputs_before(step), -s.prompt, -s.admission))

    def put_back(self, engine: Pool, seq: Slot) -> None:
        engine.waiting.append(seq)

    def evicted(self, engine: Pool) -> None:
        """Set the ratio to what those left have shown so far, some steps ahead."""
        step = engine.step
        made = sum(seq.outputs_before(step) for seq in engine.running)
        may = sum(seq.announced for seq in engine.running)
        ahead = RETRACT_DECODE_STEPS * len(engine.running)
        self._ratio, self._ratio_step = min(1.0, (made + ahead) / (may + 1)), step
        self._full_since = -1
