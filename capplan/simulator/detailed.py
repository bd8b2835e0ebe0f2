"""The scheduler request by request: several KV groups, speculation, older engine versions.

The general and slow path: every running request is looked at in every pass. One full-attention
group without drafts is the counters' business (`core`), by the same rules.
"""

from __future__ import annotations

from capplan.simulator.config import SchedulerConfig
from capplan.simulator.content import KeyBook
from capplan.simulator.detailed_pass import DetailedSequence, Pass, Scheduled
from capplan.simulator.groups import GroupManager, Table
from capplan.simulator.queues import FcfsQueue, PriorityQueue
from capplan.simulator.sequence import Sequence


class UnorderedRequestsError(Exception):
    """An old engine fails when two waiting requests have the same priority and arrival."""


class DetailedScheduler:
    """Queues, passes and results; the clock is in `detailed_clock`."""

    def __init__(self, config: SchedulerConfig) -> None:
        self.config = config
        self.manager = GroupManager(config)
        sizes = [group.block_size for group in self.manager.groups]
        by_size = {size: KeyBook(size) for size in sizes}
        self.books = [by_size[size] for size in sizes]
        self.running: list[DetailedSequence] = []
        self.waiting: FcfsQueue | PriorityQueue
        self.waiting = FcfsQueue() if config.policy == "fcfs" else PriorityQueue()
        self.executed = 0
        self.last_prefill = -1
        self.scan_emptied = False
        self.num_preemptions = 0

    def present(self) -> list[Sequence]:
        return [*self.running, *self.waiting]

    def arrive(self, seq: DetailedSequence) -> None:
        self._check_order(seq)
        self.waiting.append(seq)

    def _check_order(self, seq: Sequence) -> None:
        if self.config.policy == "priority" and not self.config.rules.orders_equal_requests:
            for other in self.waiting:
                if (other.priority, other.arrival_s) == (seq.priority, seq.arrival_s):
                    raise UnorderedRequestsError(f"{seq.request.id} and {other.request.id}")

    def drop(self, seq: DetailedSequence) -> None:
        """Its client has gone: between two passes it loses its blocks or its place."""
        if seq in self.running:
            self.running.remove(seq)
            self.manager.release(seq.own)
        else:
            self.waiting.remove(seq)

    # One pass.

    def schedule(self, start: float) -> Pass:
        """Give the running requests their tokens, then admit."""
        config = self.config
        self.manager.fresh_states.clear()
        result = Pass()
        present = len(self.running) + len(self.waiting)
        cut = config.long_prefill_token_threshold
        if config.long_prefill_token_threshold_adaptive:
            cut = max(cut, config.max_num_batched_tokens // present)
        if not cut or (present == 1 and config.rules.threshold_spares_a_lone_request):
            cut = config.max_model_len
        held = self._prefill_is_held()
        budget = self._serve_running(result, cut, held=held)
        if not result.preempted:
            self._admit_waiting(result, budget, cut, start, held=held)
            if not held:
                self.scan_emptied = not self.waiting
        self._after(result)
        return result

    def _prefill_is_held(self) -> bool:
        if self.last_prefill < 0 or not self.scan_emptied:
            return False
        since = self.executed + 1 - self.last_prefill
        decoding = any(not seq.in_prompt for seq in self.running)
        return decoding and since < self.config.prefill_schedule_interval

    def _serve_running(self, result: Pass, cut: int, *, held: bool) -> int:
        """Says how many tokens of the budget are left."""
        config, rules, free = self.config, self.config.rules, self.manager.pool.free
        budget, at = config.max_num_batched_tokens, 0
        while at < len(self.running) and budget > 0:
            seq = self.running[at]
            want = min(seq.known + seq.drafts + seq.placeholders - seq.computed, cut, budget)
            want = min(want, config.max_model_len - seq.computed - 1)
            want = self._aligned(seq, seq.computed, want)
            if self._last_is_on_its_way(seq) or want <= 0 or (held and seq.in_prompt):
                at += 1
                continue
            end = self._with_lookahead(seq.computed + want)
            gone = False
            while not gone and end > seq.own.quiet_until:
                self.manager.release_unread(seq.own, seq.computed - seq.inflight)
                if self.manager.missing(seq.own, end) <= len(free):
                    break
                victim = self._victim()
                if victim in result.items and rules.victim_returns_its_tokens:
                    budget += result.items.pop(victim).tokens
                    at -= 1
                self._preempt(victim)
                result.preempted.append(victim)
                gone = victim is seq
            if gone:
                if config.policy == "fcfs" or not rules.victim_returns_its_tokens:
                    break
                continue
            result.carried_prefill |= seq.in_prompt
            result.items[seq] = self._give(seq, want, end)
            result.items[seq].decode = want == 1 and not seq.in_prompt
            budget -= want
            at += 1
        return budget

    def _last_is_on_its_way(self, seq: DetailedSequence) -> bool:
        """Asynchronous: the steps in flight sample its last token for certain."""
        sure = seq.computed + 2 - seq.placeholders
        return seq.placeholders > 0 and sure >= seq.prompt + seq.limit

    def _with_lookahead(self, tokens: int) -> int:
        """Tokens that need a place, the drafter's own included."""
        return min(tokens + self.config.num_lookahead_tokens, self.config.max_model_len)

    def _aligned(self, seq: DetailedSequence, start: int, want: int) -> int:
        """State groups with prefix caching: chunks end where a state is to be kept."""
        if not self.manager.align:
            return want
        size, known = self.config.block_size, seq.known
        last_start = max(seq.prompt, known - 1)
        if start >= last_start:
            return want
        end = start + want
        if end < last_start:
            largest = self.config.max_num_batched_tokens
            if self.config.long_prefill_token_threshold:
                largest = min(largest, self.config.long_prefill_token_threshold)
            boundary = end // size * size
            if boundary > start or size <= largest:
                end = boundary
        stops = [(known - 1) // size * size]
        if start % size:
            stops.append(-(-start // size) * size)
        if start < seq.own.junction < end:
            stops.append(start + (seq.own.junction - start) // size * size)
        end = min([stop for stop in stops if start < stop < end], default=end)
        return max(0, end - start)

    def _give(self, seq: DetailedSequence, want: int, end: int) -> Scheduled:
        """Blocks up to token `end`; `want` tokens count as computed at once."""
        if end > seq.own.quiet_until:
            self.manager.extend(seq.own, end)
        seq.computed += want
        self._register(seq, seq.computed)
        drafts = max(0, seq.computed - seq.known - seq.placeholders) if seq.drafts else 0
        return Scheduled(seq, want, drafts)

    def _register(self, seq: DetailedSequence, computed: int) -> None:
        if self.config.enable_prefix_caching:
            known = seq.known - self.config.num_hash_lookahead_tokens
            self.manager.register(seq.own, min(computed, known), seq.block_keys, seq.prompt)

    def _victim(self) -> DetailedSequence:
        if self.config.policy == "fcfs":
            return self.running[-1]
        return max(self.running, key=lambda seq: (seq.priority, seq.arrival_s))

    def _preempt(self, seq: DetailedSequence) -> None:
        self.running.remove(seq)
        self.manager.release(seq.own)
        seq.computed = seq.placeholders = seq.drafts = 0
        seq.in_prompt = False
        seq.num_preemptions += 1
        self.num_preemptions += 1
        self._check_order(seq)
        self.waiting.put_back(seq)

    def _admit_waiting(
        self, result: Pass, budget: int, cut: int, start: float, *, held: bool
    ) -> None:
        config, manager, rules = self.config, self.manager, self.config.rules
        passed_over: list[DetailedSequence] = []
        any_running = bool(result.items)
        any_prompt = any(seq.in_prompt for seq in result.items)
        while budget > 0 and self.waiting and len(self.running) < config.slots:
            seq = self.waiting[0]
            assert isinstance(seq, DetailedSequence)
            hit, hits = self._lookup(seq)
            gap = seq.known - hit
            want = min(gap, cut)
            if held and gap > 1:
                break
            if want > budget and not config.enable_chunked_prefill:
                if rules.unchunked_prompt_stops_the_scan:
                    break
                self.waiting.popleft()
                passed_over.insert(0, seq)
                continue
            want = self._aligned(seq, hit, min(want, budget))
            dummies = 0
            drafts = config.num_speculative_tokens
            if drafts and gap == 1 and not any_prompt and (any_running or hit):
                if hit + 2 + drafts <= config.max_model_len:
                    dummies = drafts
                if 1 + dummies > budget:
                    break
            want += dummies
            if want <= 0 or not self._fits(seq, hit, hits, want):
                break
            self.waiting.popleft()
            self.running.append(seq)
            seq.computed = hit
            end = self._with_lookahead(hit + want)
            manager.admit(seq.own, hits, hit, end)
            item = result.items[seq] = self._give(seq, want, end)
            if dummies:
                item.drafts, item.dummies = dummies, True
            result.admitted[seq.request.id] = hit
            if seq.num_preemptions:
                seq.later_hits += (hit,)
            else:
                seq.first_scheduled_s, seq.first_hit = start, hit
            result.carried_prefill |= gap > 1
            budget -= want
        for seq in reversed(passed_over):
            self.waiting.put_back(seq)

    def _lookup(self, seq: DetailedSequence) -> tuple[int, list[Table]]:
        if not self.config.enable_prefix_caching:
            return 0, [[] for _ in self.manager.groups]
        return self.manager.lookup(seq.block_keys, seq.known - 1, seq.own)

    def _fits(self, seq: DetailedSequence, hit: int, hits: list[Table], want: int) -> bool:
        config, manager = self.config, self.manager
        if any(table and table[-1] in manager.fresh_states for table in hits):
            return False
        spare = len(manager.pool.free) - (config.watermark_blocks if self.running else 0)
        whole = min(seq.known, config.max_model_len)
        if config.scheduler_reserve_full_isl and (
            manager.admission_need(hits, hit, whole, whole_prompt=True) > spare
        ):
            return False
        end = self._with_lookahead(hit + want)
        return manager.admission_need(hits, hit, end, whole_prompt=False) <= spare

    def _after(self, result: Pass) -> None:
        """What the step is going to sample."""
        config = self.config
        for seq, item in result.items.items():
            if seq not in self.running:  # old rules: a victim stays in the step
                continue
            item.life = seq.num_preemptions
            item.context = seq.computed
            seq.inflight += item.tokens
            seq.in_prompt = seq.computed < seq.known + seq.placeholders
            if not seq.in_prompt:
                item.samples = True
                seq.drafts = 0
                if config.async_scheduling:
                    seq.placeholders += 1 + item.drafts
                    seq.drafts = config.num_speculative_tokens
        if result.items:
            self.executed += 1
            if result.carried_prefill:
                self.last_prefill = self.executed

    # Results.

    def take_in(self, item: Scheduled, end_s: float) -> tuple[int, int]:
        """The result of a step for one request: (tokens delivered, drafts accepted)."""
        seq, config = item.seq, self.config
        seq.inflight -= item.tokens
        current = item.life == seq.num_preemptions
        delivered = accepted = 0
        if item.samples:
            if item.drafts and not item.dummies:
                plan = seq.request.accepted_drafts or (0,)
                accepted = min(plan[seq.verifications % len(plan)], item.drafts)
                seq.verifications += 1
            if current:
                rejected = item.drafts - accepted
                seq.computed -= rejected
                if config.async_scheduling:
                    seq.placeholders -= rejected + accepted + 1
                else:
                    seq.drafts = config.num_speculative_tokens
            delivered = min(accepted + 1, seq.end - seq.outputs)
            if not seq.outputs:
                seq.first_token_s = end_s
            seq.outputs += delivered
        if current and config.async_scheduling:
            self._register(seq, seq.computed - seq.inflight)
        if item.samples and seq.outputs >= seq.end:
            seq.finished, seq.finish_s = True, end_s
            if current:
                self.running.remove(seq)
                self.manager.release(seq.own)
            else:
                self.waiting.remove(seq)
        return delivered, accepted
