"""The naive scheduler: one object a request, one id a block, every request looked at in every step.

Written from the rules of docs/simulator.md as plainly as possible, and slow. It reads scenario
files and returns what they record, so that the engine's traces and the counters of
`capplan.simulator` can both be compared with it. One KV group, no speculation; both modes.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any

Json = dict[str, Any]


class LivelockError(Exception):
    """Requests preempt each other for ever and none gets a token."""


class Seq:
    """A request inside the engine."""

    def __init__(self, index: int, entry: Json, max_model_len: int) -> None:
        self.index, self.id, self.arrival = index, entry["id"], entry["arrival_s"]
        self.priority = entry.get("priority", 0)
        self.prompt = entry["prompt_len"]
        room = max_model_len - self.prompt
        self.end = min(entry["output_len"], room)
        self.limit = min(entry.get("max_tokens", entry["output_len"]), room)  # what is announced
        self.computed = self.outputs = self.placeholders = self.inflight = self.life = 0
        self.mid = self.finished = False
        self.blocks: list[int] = []
        self.num_registered = 0
        self.keys: list[int] = []
        self.first_sched = self.ttft = self.finish = None
        self.preemptions, self.hits = 0, list[int]()

    @property
    def known(self) -> int:
        return self.prompt + self.outputs

    def result(self) -> Json:
        cached, *resumed = self.hits or [None]
        return {
            "id": self.id, "arrival_s": self.arrival, "first_sched_s": self.first_sched,
            "ttft_s": self.ttft, "finish_s": self.finish, "output_tokens": self.outputs,
            "preemptions": self.preemptions, "cached_tokens": cached,
            "resume_cached_tokens": resumed,
        }  # fmt: skip


def block_keys(requests: list[Json], block_size: int) -> list[list[int]]:
    """Keys of the full blocks of prompt and outputs: equal numbers mean equal content so far."""
    numbers: dict[Any, int] = {}
    by_id = {entry["id"]: index for index, entry in enumerate(requests)}
    tokens: dict[int, list[Any]] = {}

    def tokens_of(index: int) -> list[Any]:
        if index not in tokens:
            entry, start = requests[index], list[Any]()
            if "parent" in entry:
                start = list(tokens_of(by_id[entry["parent"]]))
            chain = entry.get("prefix_chain", [])
            if "prefix_id" in entry:
                chain = [[entry["prefix_id"], entry["prefix_len"]]]
            for stream, length in chain:
                start += [(stream, i) for i in range(length)]
            start = start[: entry["prompt_len"]]
            total = entry["prompt_len"] + entry["output_len"]
            start += [(index, i) for i in range(len(start), total)]
            tokens[index] = start
        return tokens[index]

    result = []
    for index in range(len(requests)):
        content, key, keys = tokens_of(index), -1, []
        for start in range(0, len(content) - block_size + 1, block_size):
            block = (key, *content[start : start + block_size])
            key = numbers.setdefault(block, len(numbers))
            keys.append(key)
        result.append(keys)
    return result


class Pool:
    """Blocks: one free queue, and who can be found under which key."""

    def __init__(self, usable: int) -> None:
        self.free: OrderedDict[int, None] = OrderedDict.fromkeys(range(usable))
        self.uses = [0] * usable
        self.key_of: list[int | None] = [None] * usable
        self.found: dict[int, list[int]] = {}

    def take(self) -> int:
        block, _ = self.free.popitem(last=False)
        key = self.key_of[block]
        if key is not None:
            self.found[key].remove(block)
            if not self.found[key]:
                del self.found[key]
            self.key_of[block] = None
        self.uses[block] = 1
        return block

    def register(self, block: int, key: int) -> None:
        self.key_of[block] = key
        self.found.setdefault(key, []).append(block)

    def hold(self, block: int) -> None:
        if not self.uses[block]:
            del self.free[block]
        self.uses[block] += 1

    def release(self, blocks: list[int]) -> None:
        for block in reversed(blocks):
            self.uses[block] -= 1
            if not self.uses[block]:
                self.free[block] = None
                if self.key_of[block] is None:
                    self.free.move_to_end(block, last=False)


class Engine:
    """One replica. `run` is the clock, `schedule` one pass, `take_in` the result of a step."""

    def __init__(self, scenario: Json) -> None:
        self.config = scenario["config"]
        self.cost = scenario["step_time"]
        self.asynchronous = scenario.get("mode") == "async"
        length = self.config["max_model_len"]
        self.seqs = [Seq(i, e, length) for i, e in enumerate(scenario["requests"])]
        self.caching = self.config["enable_prefix_caching"]
        if self.caching:
            all_keys = block_keys(scenario["requests"], self.config["block_size"])
            for seq, keys in zip(self.seqs, all_keys, strict=True):
                seq.keys = keys
        self.pool = Pool(self.config["num_gpu_blocks"] - 1)
        self.running: list[Seq] = []
        self.waiting: deque[Seq] = deque()
        self.steps: list[Json] = []
        self.executed = self.fruitless = 0
        self.last_prefill: int | None = None
        self.scan_emptied = False
        self.empty = self.max_running = self.stale = self.wasted = 0

    # One pass.

    def schedule(self, now: float) -> Json:
        config = self.config
        budget = config["max_num_batched_tokens"]
        in_engine = len(self.running) + len(self.waiting)
        threshold = config["long_prefill_token_threshold"]
        if config["long_prefill_token_threshold_adaptive"]:
            threshold = max(threshold, budget // in_engine)
        cut = threshold if threshold and in_engine > 1 else config["max_model_len"]
        held = self.prefill_is_held()
        sched: dict[Seq, int] = {}
        admit: dict[str, int] = {}
        pre: list[Seq] = []
        carried = False
        at = 0
        while at < len(self.running) and budget > 0:
            seq = self.running[at]
            want = min(seq.known + seq.placeholders - seq.computed, cut, budget)
            want = min(want, config["max_model_len"] - seq.computed - 1)
            last_on_its_way = seq.placeholders and seq.outputs + seq.placeholders >= seq.limit
            if last_on_its_way or want <= 0 or (held and seq.mid):
                at += 1
                continue
            need = self.blocks(seq.computed + want) - len(seq.blocks)
            while need > len(self.pool.free) and seq in self.running:
                victim = self.victim()
                if victim in sched:
                    budget += sched.pop(victim)
                    victim.computed = 0
                    at -= 1
                self.preempt(victim)
                pre.append(victim)
            if seq not in self.running:
                if config["policy"] == "fcfs":
                    break
                continue
            self.give(seq, want)
            carried |= seq.mid
            sched[seq] = want
            budget -= want
            at += 1
        if not pre:
            carried |= self.admit(sched, admit, budget, cut, held)
            if not held:
                self.scan_emptied = not self.waiting
        samples = []
        for seq, tokens in sched.items():
            seq.inflight += tokens
            seq.mid = seq.computed < seq.known + seq.placeholders
            if not seq.mid:
                seq.placeholders += 1
                samples.append(seq)
        self.fruitless = 0 if samples else self.fruitless + 1
        if self.fruitless > 3000:
            raise LivelockError
        if sched:
            self.executed += 1
            if carried:
                self.last_prefill = self.executed
        self.max_running = max(self.max_running, len(self.running))
        return {
            "now": now, "seqs": [(s, n, s.life, s in samples) for s, n in sched.items()],
            "admit": admit, "pre": [s.id for s in pre], "run": len(self.running),
            "wait": len(self.waiting), "free": len(self.pool.free),
            "context": sum(s.computed for s in sched),
        }  # fmt: skip

    def admit(self, sched: dict[Seq, int], admit: Json, budget: int, cut: int, held: bool) -> bool:
        """The second half of a pass. Says whether an admission carried prefill."""
        config, carried = self.config, False
        slots = min(config["max_num_seqs"], config["max_num_active_seqs"] or 10**9)
        while budget > 0 and self.waiting and len(self.running) < slots:
            seq = self.waiting[0]
            if config["policy"] == "priority":
                seq = min(self.waiting, key=lambda s: (s.priority, s.arrival, s.id))
            found = self.lookup(seq)
            hit = len(found) * config["block_size"]
            gap = seq.known - hit
            want = min(gap, cut)
            if (held and gap > 1) or (want > budget and not config["enable_chunked_prefill"]):
                break
            want = min(want, budget)
            idle = sum(not self.pool.uses[block] for block in found)
            kept = int(config["watermark"] * config["num_gpu_blocks"]) if self.running else 0
            spare = len(self.pool.free) - idle - kept + len(found)
            whole = self.blocks(min(seq.known, config["max_model_len"]))
            if config["scheduler_reserve_full_isl"] and whole > spare:
                break
            if self.blocks(hit + want) > spare:
                break
            self.waiting.remove(seq)
            self.running.append(seq)
            for block in found:
                self.pool.hold(block)
            seq.blocks, seq.num_registered, seq.computed = found, len(found), hit
            self.give(seq, want)
            admit[seq.id] = hit
            seq.hits.append(hit)
            carried |= gap > 1
            sched[seq] = want
            budget -= want
        return carried

    def prefill_is_held(self) -> bool:
        if self.last_prefill is None or not self.scan_emptied:
            return False
        since = self.executed + 1 - self.last_prefill
        decoding = any(not seq.mid for seq in self.running)
        return decoding and since < self.config["prefill_schedule_interval"]

    def blocks(self, tokens: int) -> int:
        return -(-tokens // self.config["block_size"])

    def lookup(self, seq: Seq) -> list[int]:
        found: list[int] = []
        if self.caching:
            for key in seq.keys[: (seq.known - 1) // self.config["block_size"]]:
                if key not in self.pool.found:
                    break
                found.append(self.pool.found[key][0])
        return found

    def give(self, seq: Seq, want: int) -> None:
        """Blocks for `want` more tokens, which count as computed at once."""
        seq.computed += want
        while len(seq.blocks) < self.blocks(seq.computed):
            seq.blocks.append(self.pool.take())
        self.register(seq, min(seq.computed, seq.known))

    def register(self, seq: Seq, tokens: int) -> None:
        """Make the blocks that are full with `tokens` tokens findable."""
        if self.caching:
            for i in range(seq.num_registered, tokens // self.config["block_size"]):
                self.pool.register(seq.blocks[i], seq.keys[i])
                seq.num_registered = i + 1

    def victim(self) -> Seq:
        if self.config["policy"] == "fcfs":
            return self.running[-1]
        return max(self.running, key=lambda s: (s.priority, s.arrival))

    def preempt(self, seq: Seq) -> None:
        self.running.remove(seq)
        self.pool.release(seq.blocks)
        seq.blocks, seq.computed, seq.num_registered = [], 0, 0
        seq.placeholders, seq.mid = 0, False
        seq.life += 1
        seq.preemptions += 1
        self.waiting.appendleft(seq)

    # Results.

    def take_in(self, step: Json, start: float, dt: float) -> None:
        out, fin, stale, waste = [], [], [], []
        for seq, tokens, life, samples in step["seqs"]:
            seq.inflight -= tokens
            if seq.first_sched is None:
                seq.first_sched = start
            if seq.finished:
                waste.append(seq.id)
                self.wasted += tokens
                continue
            current = life == seq.life
            if not current:
                stale.append(seq.id)
            if samples:
                out.append(seq.id)
                seq.outputs += 1
                seq.placeholders -= current
                if seq.outputs == 1:
                    seq.ttft = start + dt - seq.arrival
            if current:
                self.register(seq, seq.computed - seq.inflight)
            if samples and seq.outputs >= seq.end:
                seq.finished, seq.finish = True, start + dt
                fin.append(seq.id)
                (self.running if current else self.waiting).remove(seq)
                self.pool.release(seq.blocks)
        self.stale += len(stale)
        self.record(step, start, dt, out, fin, stale, waste)

    def record(
        self, step: Json, t: float, dt: float, out: Any, fin: Any, stale: Any, waste: Any
    ) -> None:
        sched = {seq.id: tokens for seq, tokens, _, _ in step["seqs"]}
        entry: Json = {"t": t, "dt": dt, "sched": sched, "admit": step["admit"], "pre": step["pre"]}
        if self.asynchronous:
            entry = {"ts": step["now"], **entry, "out": out, "stale": stale, "waste": waste}
        counts = {name: step[name] for name in ("run", "wait", "free")}
        step["record"] |= {**entry, "fin": fin, **counts, "free_end": len(self.pool.free)}

    def run(self) -> Json:
        coming = deque(sorted(self.seqs, key=lambda s: (s.arrival, s.index)))
        flying: deque[tuple[Json, float, float]] = deque()
        now = gpu_free = 0.0
        stalled = False
        while True:
            while coming and coming[0].arrival <= now:
                self.waiting.append(coming.popleft())
            if not (self.running or self.waiting or flying):
                if not coming:
                    break
                now = coming[0].arrival
                continue
            step = self.schedule(now) if self.running or self.waiting else None
            if step and (step["seqs"] or step["pre"]):
                step["record"] = {}  # filled when the result is in; in the order of the passes
                self.steps.append(step["record"])
            if step and step["seqs"]:
                tokens = sum(n for _, n, _, _ in step["seqs"])
                dt = self.cost["a"] + self.cost["b"] * tokens + self.cost["c"] * step["context"]
                start = max(now, gpu_free)
                gpu_free = start + dt
                flying.append((step, start, dt))
                if self.asynchronous and len(flying) < 2:
                    continue
            elif step and step["pre"]:
                self.empty += 1
                self.record(step, max(now, gpu_free), 0.0, [], [], [], [])
            if flying:
                flight = flying.popleft()
                now = max(now, flight[1] + flight[2])
                self.take_in(*flight)
            elif not (step and step["pre"]):
                if not coming:
                    stalled = True
                    break
                if not self.asynchronous and step:
                    self.empty += 1
                    step["record"] = {}
                    self.steps.append(step["record"])
                    self.record(step, now, 0.0, [], [], [], [])
                now = max(now, coming[0].arrival)
        return self.results(stalled, now)

    def results(self, stalled: bool, now: float) -> Json:
        if self.asynchronous:
            now = max((s.finish for s in self.seqs if s.finish is not None), default=0.0)
        summary: Json = {
            "num_steps": len(self.steps), "end_s": now,
            "stalled": stalled, "unfinished": [s.id for s in self.seqs if not s.finished],
            "tokens": sum(sum(step["sched"].values()) for step in self.steps),
            "preemptions": sum(s.preemptions for s in self.seqs),
            "empty_steps": self.empty, "max_running": self.max_running,
            "stale_outputs": self.stale, "wasted_tokens": self.wasted,
        }  # fmt: skip
        per_request = [seq.result() for seq in self.seqs]
        return {"summary": summary, "per_request": per_request, "steps": self.steps}


def replay(scenario: Json) -> Json:
    return Engine(scenario).run()
