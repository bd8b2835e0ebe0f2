"""A naive replica for the textbook policies: every request looked at in every step.

Written from the rules in docs/schedulers.md alone, to compare the counter-based loop with.
"""

from __future__ import annotations

from dataclasses import dataclass

from capplan.simulator.policies.config import LoopConfig
from capplan.simulator.requests import Request
from capplan.simulator.step_time import StepTime

Times = dict[str, tuple[float, list[float], int]]  # first scheduled, of each token, evictions


@dataclass(eq=False)
class Job:
    request: Request
    blocks: int = 0
    computed: int = 0
    done: int = 0
    scheduled_s: float = -1.0
    evictions: int = 0
    tokens_s: list[float] | None = None

    @property
    def known(self) -> int:
        return self.request.prompt_tokens + self.done


def run(
    name: str, config: LoopConfig, step_time: StepTime, requests: list[Request]
) -> tuple[Times, float]:
    """When every token came, and the share of held slots that did nothing."""
    now, free = 0.0, config.num_blocks
    coming = [Job(request, tokens_s=[]) for request in requests]
    waiting: list[Job] = []
    running: list[Job] = []
    ghosts: list[Job] = []
    times: Times = {}
    held = useful = 0
    padded = 0

    def whole(job: Job) -> int:
        return config.reserved_blocks(job.request) or -(-job.known // config.block_size)

    while coming or waiting or running or ghosts:
        while coming and coming[0].request.arrival_s <= now:
            waiting.append(coming.pop(0))
        if not waiting and not running:
            now = coming[0].request.arrival_s
            continue
        active = [job for job in running if job not in ghosts]
        decodes = [job for job in active if job.computed == job.known - 1 and job.done]
        mixed = name in ("orca", "chunked")
        if mixed:
            free, evicted = _grow(config, decodes, running, waiting, free)
            decodes = [job for job in decodes if job in running]
        else:
            evicted = False
        budget = config.max_num_batched_tokens if name in ("prefill-first", "chunked") else 10**9
        if name == "chunked":
            budget -= len(decodes)
        prompts: list[tuple[Job, int]] = []
        for job in active:
            if job in running and job not in decodes and budget > 0:
                prompts.append((job, min(budget, job.known - job.computed)))
                budget -= prompts[-1][1]
        closed = name in ("static", "decode-first") and bool(running)
        while not (evicted or closed) and waiting and len(running) < config.max_num_seqs:
            job = waiting[0]
            want = job.known if name != "chunked" else min(job.known, budget)
            mark = config.watermark_blocks if running else 0
            if want > budget or want == 0 or whole(job) > free - mark:
                break
            waiting.pop(0)
            running.append(job)
            job.blocks = whole(job)
            free -= job.blocks
            budget -= want
            job.scheduled_s = now if job.scheduled_s < 0 else job.scheduled_s
            prompts.append((job, want))
        if prompts and not mixed:
            decodes = []
        elif not mixed:
            free, _ = _grow(config, decodes, running, waiting, free)
            decodes = [job for job in decodes if job in running]
        sums = [(tokens, job.computed) for job, tokens in prompts]
        if name == "static":
            if prompts:
                padded = max(sums)[0]
                sums = [(padded, 0)] * len(sums)
                decodes, contexts = [], 0
            else:
                padded += 1
                contexts = padded * len(running)
        else:
            contexts = sum(job.known for job in decodes)
        served = len(running) if name == "static" and not prompts else len(decodes)
        if prompts:
            now += step_time.mixed(served, contexts, sums)
        else:
            base, slope, _ = step_time.line(served, contexts)
            now += base + slope * contexts
        held += len(running)
        useful += len(prompts) + len(decodes)
        for job, tokens in prompts:
            job.computed += tokens
        for job in decodes:
            job.computed += 1
        for job in list(running):
            if job.computed < job.known or job in ghosts:
                continue
            job.done += 1
            assert job.tokens_s is not None
            job.tokens_s.append(now)
            if job.done == job.request.output_tokens:
                times[job.request.id] = (job.scheduled_s, job.tokens_s, job.evictions)
                if name == "static":
                    ghosts.append(job)
                else:
                    running.remove(job)
                    free += job.blocks
        if ghosts and len(ghosts) == len(running):
            free += sum(job.blocks for job in ghosts)
            running, ghosts = [], []
    assert free == config.num_blocks
    return times, 1 - useful / held


def _grow(
    config: LoopConfig, decodes: list[Job], running: list[Job], waiting: list[Job], free: int
) -> tuple[int, bool]:
    """A block for each decode whose blocks are full; the last admitted ones go if need be."""
    evicted = False
    if config.kv_allocation != "paged":
        return free, evicted
    for job in list(decodes):
        if job not in running or job.blocks * config.block_size >= job.known:
            continue
        while free == 0:
            victim = running.pop()
            free += victim.blocks
            victim.blocks = victim.computed = 0
            victim.evictions += 1
            waiting.insert(0, victim)
            evicted = True
            if victim is job:
                break
        if job in running:
            job.blocks += 1
            free -= 1
    return free, evicted
