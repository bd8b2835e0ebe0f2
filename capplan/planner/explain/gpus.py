"""`capplan explain gpus`: the answer's figures, from the replica and the result that made it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from capplan.performance.bands import band_for
from capplan.performance.batch import Batch
from capplan.planner.bounds import decode_tokens_per_s
from capplan.planner.explain import memory
from capplan.planner.explain.bands import count_band_figures, value_band_figures
from capplan.planner.explain.figure import figure
from capplan.planner.explain.fleet import fleet_figures
from capplan.planner.explain.money import cost_figures, power_figures
from capplan.planner.explain.operating import (
    combined_figures,
    operating_figures,
    rate_symbol,
)
from capplan.planner.explain.steps import step_time
from capplan.planner.gpus import key_of_bounds
from capplan.planner.question import Question
from capplan.planner.replica import Replica
from capplan.results.explanation import Explanation, Figure, Symbol
from capplan.results.gpus import GpusPlan


def explain_gpus(question: Question, plan: GpusPlan) -> Explanation:
    """``plan`` answers ``question``; infeasible ones are explained up to where they end."""
    if not plan.feasible:
        plan = replace(plan, bounds=None)  # of no degree in particular
    tp = plan.tp or question.engine.tp or 1
    replica = Replica(question, tp)
    figures = list(bound_figures(replica, plan))
    left_out = [LARGEST_BATCHES]
    if plan.feasible:
        figures += operating_figures(replica, plan)
        figures += fleet_figures(plan, tp)
        figures += _bands(replica, plan)
        if plan.cost:
            figures += cost_figures(plan.cost, question.workload)
        if plan.power:
            figures += power_figures(plan.power, question.workload)
        count = f"{plan.num_gpus} x {plan.hardware} for {question.model.name}"
    else:
        count = f"No number of {plan.hardware} serves {question.model.name}: {plan.binding_limit}"
    return Explanation("gpus", count, tuple(figures), tuple(left_out))


def _bands(replica: Replica, plan: GpusPlan) -> Iterator[Figure]:
    """Of the count, unless the user has measured what a replica makes, and of the means."""
    question = replica.question
    counted = next(band for band in plan.bands if band.figure == "num_gpus")
    if question.fleet.replica_output_tokens_per_s is None:
        assert plan.replica is not None
        assert plan.bounds is not None
        yield from count_band_figures(
            counted,
            band_for("throughput", key_of_bounds(question, replica.tp, 1.0)),
            question.workload.arrival_rate_per_s,
            plan.replica.requests_per_s,
            replica.tp,
            plan.bounds.num_gpus_memory,
        )
    yield from value_band_figures(plan.bands)


LARGEST_BATCHES = "largest batches: the last at which a limit still holds, found by bisection"


def bound_figures(replica: Replica, plan: GpusPlan) -> Iterator[Figure]:
    """Demand, memory, decode and prefill; infeasible ones end with the memory."""
    yield from _demand(replica.question, plan)
    yield from _memory(replica, plan)
    if plan.feasible:
        yield from _decode(replica, plan)
        yield from _prefill(replica, plan)
        yield from combined_figures(replica, plan)


def _demand(question: Question, plan: GpusPlan) -> Iterator[Figure]:
    workload, limits = question.workload, question.limits
    yield figure(
        "requests in flight at the limits",
        plan.concurrency,
        "",
        "in_flight = rate × (ttft + (output - 1) × tpot)",
        [
            rate_symbol(question),
            Symbol("ttft", "limit on the time to first token", limits.slo_ttft_s, "s"),
            Symbol("output", "of an answer", workload.output_tokens, "tokens"),
            Symbol("tpot", "limit on the time per output token", limits.slo_tpot_s, "s"),
        ],
        why="Everything in flight holds KV and a seat, so this sizes memory and batches.",
        picture="A shop with customers arriving at a rate and each staying a while: how many are "
        "in it at once?",
        check=f"Each stays {plan.concurrency / workload.arrival_rate_per_s:.3g} s at its limits; "
        "served sooner, fewer are there.",
        source="Little, Oper. Res. 9(3), 1961; docs/model.md 13",
    )
    yield figure(
        "output tokens a second",
        plan.output_tokens_per_s,
        "tokens/s",
        "tokens = rate × output",
        [
            rate_symbol(question),
            Symbol("output", "of an answer", workload.output_tokens, "tokens"),
        ],
        why="The fleet has to make them, whatever the latency.",
        picture="Requests a second, each with its answer.",
        check=f"{plan.output_tokens_per_s * 86_400 / 1e9:.3g} billion a day at this rate.",
        source="definition",
    )


def _memory(replica: Replica, plan: GpusPlan) -> Iterator[Figure]:
    question = replica.question
    engine, model, context = question.engine, question.model, question.workload.context_tokens
    whole = engine.kv_pool(model, 0.0)
    yield memory.kv_per_token(model, engine.kv_dtype, plan.kv_bytes_per_token)
    sequence = float(whole.decode_bytes(context))
    yield memory.sequence_bytes(whole, context, sequence)
    yield figure(
        "KV of everything in flight",
        plan.kv_demand_bytes,
        "bytes",
        "demand = in_flight × sequence",
        [
            Symbol("in_flight", "requests, at the limits", plan.concurrency, ""),
            Symbol("sequence", f"of a finished request, {context:,} tokens", sequence, "bytes"),
        ],
        why="It has to be somewhere: the memory bound.",
        picture="All customers in the shop at once, each with a full basket.",
        check="Baskets fill while they walk: full ones are the cautious end.",
        source="docs/model.md 14",
    )
    yield memory.weights(model, replica.tp, engine.dtype, float(replica.weight_bytes_per_gpu))
    yield memory.pool_flat(
        float(engine.gpu_memory_bytes or question.hardware.visible_memory_bytes),
        engine.gpu_memory_utilization,
        float(replica.weight_bytes_per_gpu),
        float(engine.reserve_bytes),
        replica.pool_bytes_per_gpu,
    )
    if replica.pool_bytes_per_gpu > 0 and not replica.pool.keeps_nothing:
        yield memory.num_blocks(replica.pool)
        yield memory.sequences(replica.pool, context, replica.max_sequences)
        if plan.bounds is not None:
            yield _memory_bound(replica, plan)


def _memory_bound(replica: Replica, plan: GpusPlan) -> Figure:
    assert plan.bounds is not None
    pool = replica.pool
    return figure(
        "GPUs by memory",
        plan.bounds.num_gpus_memory,
        "",
        "gpus = min(ceil(in_flight × sequence / (usable × block)) × tp, combined)",
        [
            Symbol("in_flight", "requests, at the limits", plan.concurrency, ""),
            Symbol("sequence", "of one GPU", replica.sequence_bytes_per_gpu, "bytes"),
            Symbol("usable", "blocks that are handed out", pool.usable_blocks, ""),
            Symbol("block", "all layers, of one GPU", pool.bytes_per_block, "bytes"),
            Symbol("tp", "GPUs a replica", replica.tp, ""),
            Symbol("combined", "GPUs by all limits together", plan.bounds.num_gpus_combined, ""),
        ],
        why="Fewer could not hold what is in flight.",
        picture="The demand divided over the shelves of the replicas.",
        check="Above the combined bound it does not bind: served sooner, requests hold less.",
        source="docs/model.md 14",
    )


def _decode(replica: Replica, plan: GpusPlan) -> Iterator[Figure]:
    question, tp = replica.question, replica.tp
    workload, bounds = question.workload, plan.bounds
    assert bounds is not None
    measured = question.fleet.replica_output_tokens_per_s
    batch = max(1, replica.max_decode_batch)
    if measured is None:
        reads = replica.steps.uniform_reads(batch, workload.decode_context_tokens)
        step = replica.steps.time(Batch(batch, reads))
        made = decode_tokens_per_s(replica)
        yield step_time(
            f"step of {batch:,} decodes",
            step,
            step.total_s,
            why="Every running request gets one token a step: the step is its time per token.",
            picture="The weights pass once over the whole batch; each request adds its own KV.",
        )
        yield figure(
            "decode rate of a replica",
            made,
            "tokens/s",
            "made = batch / time",
            [
                Symbol("batch", "largest within TPOT and the pool", batch, ""),
                Symbol("time", "of its step", step.total_s, "s"),
            ],
            why="What a replica makes when it does nothing but decode.",
            picture="A bus that leaves when the step is over, with everybody aboard.",
            check=f"{1 / step.total_s:,.0f} steps a second; alone, a request would get "
            f"{1 / replica.decode_step_s(1):,.0f} tokens a second.",
            source="docs/model.md 15",
        )
        tokens, what = workload.output_tokens - 1, "after the first"
    else:
        made, tokens, what = measured, workload.output_tokens, "of an answer, all"
    yield figure(
        "GPUs by decode",
        bounds.num_gpus_decode,
        "",
        "gpus = ceil(rate × later / made) × tp" if tokens else "gpus = tp",
        [
            rate_symbol(question),
            Symbol("later", what, tokens, "tokens"),
            Symbol("made", "by a replica", made, "tokens/s"),
            Symbol("tp", "GPUs a replica", tp, ""),
        ],
        why="Fewer could not make the tokens within TPOT.",
        picture="Tokens wanted over tokens that a replica makes.",
        check="Prefill takes none of the time here: with it, more are needed.",
        source="docs/model.md 15" if measured is None else "--replica-tokens-per-s",
    )


def _prefill(replica: Replica, plan: GpusPlan) -> Iterator[Figure]:
    question = replica.question
    assert plan.bounds is not None
    assert plan.replica is not None
    per_s, prompt = replica.prefill_requests_per_s, question.workload.prompt_tokens
    yield figure(
        "prefill rate of a replica",
        plan.replica.prefill_tokens_per_s,
        "tokens/s",
        "computed = prompts × prompt",
        [
            Symbol("prompts", "packed into full steps", per_s, "req/s"),
            Symbol("prompt", "its length", prompt, "tokens"),
        ],
        why="What a replica computes when it does nothing but prefill.",
        picture="Prompts side by side in steps of the token budget.",
        check=f"One prompt alone takes {replica.ttft_s(0.0) * 1e3:.3g} ms.",
        source="docs/model.md 16",
    )
    yield figure(
        "GPUs by prefill",
        plan.bounds.num_gpus_prefill,
        "",
        "gpus = ceil(rate / prompts) × tp",
        [
            rate_symbol(question),
            Symbol("prompts", "of a replica", per_s, "req/s"),
            Symbol("tp", "GPUs a replica", replica.tp, ""),
        ],
        why="Fewer could not read the prompts as fast as they come.",
        picture="Prompts that come over prompts that a replica reads.",
        check="Decode takes none of the time here: with it, more are needed.",
        source="docs/model.md 16",
    )
