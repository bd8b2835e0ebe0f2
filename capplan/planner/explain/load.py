"""How full a simulated server was, and what a step of its mean batch takes."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.performance.bands import LOADED_FRACTION
from capplan.performance.batch import Chunk
from capplan.planner.explain.figure import figure
from capplan.planner.explain.steps import step_time
from capplan.planner.serving import Serving
from capplan.planner.simulated_bands import flow_of, held_requests, requests_per_s_when_full
from capplan.results.explanation import Figure, Symbol
from capplan.results.simulate import SimulateInputs, SimulateResult


def load_figures(
    asked: SimulateInputs, result: SimulateResult, serving: Serving
) -> Iterator[Figure]:
    """Nothing where nothing was served."""
    if not result.num_measured or not result.requests_per_s:
        return
    flow = flow_of(result)
    full = requests_per_s_when_full(serving, flow)
    state = result.saturation
    if asked.arrival_rate_per_s is not None and not state.saturated:
        came = max(state.offered_per_s, state.served_per_s)
        yield figure(
            "share of what the replicas carry",
            came / (serving.num_replicas * full),
            "",
            "used = came / (replicas × full)",
            [
                Symbol("came", "or left, whichever is more", came, "req/s"),
                Symbol("replicas", "simulated", serving.num_replicas, ""),
                Symbol("full", "of one with every seat taken", full, "req/s"),
            ],
            why="It decides which measured servers this one is like, and so its error bands.",
            picture="How full the hall is, against all seats taken.",
            check=f"Servers from {LOADED_FRACTION:.0%} on are a kind of their own: there queues "
            "make small errors large.",
            source="docs/accuracy.md, Error bands; the steady state of docs/model.md 17",
        )
    yield from _seats(serving, result)
    yield from _step(result, serving)


def _seats(serving: Serving, result: SimulateResult) -> Iterator[Figure]:
    flow, config = flow_of(result), serving.config
    tokens = flow.prompt_tokens + flow.output_tokens
    pool = float(config.usable_blocks * config.block_size)
    yield figure(
        "requests that a replica holds",
        held_requests(serving, flow),
        "",
        "held = max(1, min(seats, pool / tokens))",
        [
            Symbol("seats", "max_num_seqs, of all stages", config.slots, ""),
            Symbol("pool", "KV that is handed out", pool, "tokens"),
            Symbol("tokens", "of a finished request, as they were", tokens, "tokens"),
        ],
        why="More have to wait, whatever the GPU could compute.",
        picture="Chairs and plates: whichever runs out first.",
        check=f"At most {result.usage.max_running:,} ran on a replica at once.",
        source="docs/simulator.md",
    )


def _step(result: SimulateResult, serving: Serving) -> Iterator[Figure]:
    usage, flow = result.usage, flow_of(result)
    if not usage.mean_batch or usage.mean_step_tokens is None or usage.mean_step_s is None:
        return
    batch = usage.mean_batch
    read = max(0.0, usage.mean_step_tokens - batch)
    reads = serving.steps.uniform_reads(batch, round(flow.prompt_tokens + flow.output_tokens / 2))
    chunks = [Chunk(round(read))] if round(read) else []
    parts = serving.steps.mixed(batch, reads, chunks)
    yield step_time(
        f"step of the mean batch, {batch:.3g} decodes and {round(read):,} prompt tokens",
        parts,
        parts.total_s,
        why="Every running request gets a token a step: this is what it waits for.",
        picture="One pass of the weights over everybody aboard. The mean of all steps, prompts "
        f"among them, was {usage.mean_step_s * 1e3:.3g} ms.",
    )
