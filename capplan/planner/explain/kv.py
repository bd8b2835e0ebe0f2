"""`capplan explain kv`: memory of one GPU, its blocks, and what fits."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.planner.explain import memory
from capplan.planner.explain.figure import figure
from capplan.planner.kv import KvQuestion
from capplan.results.explanation import Explanation, Figure, Symbol
from capplan.results.kv import BlockSizeRow, KvResult


def explain_kv(question: KvQuestion, result: KvResult) -> Explanation:
    """The figures of `capplan kv` for the choice that was asked for."""
    here, pool = question.deployment, question.deployment.pool
    figures = [memory.kv_per_token(question.model, result.kv_dtype, result.kv_bytes_per_token)]
    figures.append(_weights(result))
    figures.append(memory.pool_itemised(result.memory))
    if not pool.keeps_nothing and result.kv_pool_bytes_per_gpu > 0:
        context = result.context_tokens
        figures.append(memory.num_blocks(pool))
        figures.append(
            memory.sequence_bytes(pool, context, float(result.kv_bytes_per_sequence_per_gpu))
        )
        figures.append(memory.sequences(pool, context, result.num_sequences / here.engine.dp))
        figures += _concurrency(result)
    figures += _lengths(result)
    headline = f"{result.model} on {result.num_gpus} x {result.hardware}"
    left_out = (
        "longest request: the longest that passes the engine's start-up check, found by bisection",
        "ranges of the items: from start-up logs, docs/memory.md",
    )
    return Explanation("kv", headline, tuple(figures), left_out)


def _weights(result: KvResult) -> Figure:
    """As loaded: padding and copies of the engine included."""
    share = result.weight_bytes_per_gpu / result.weight_bytes
    return figure(
        "weights of a GPU",
        result.weight_bytes_per_gpu,
        "bytes",
        "weights = whole × part",
        [
            Symbol("whole", "the checkpoint, or converted", result.weight_bytes, "bytes"),
            Symbol("part", f"that a GPU holds at TP {result.tp} x PP {result.pp}", share, ""),
        ],
        why="Weights are there before the first request, and every step reads them.",
        picture="Every matrix of the model, cut over the GPUs; some stand on each of them.",
        check=f"An even cut would be {1 / (result.tp * result.pp):.3g}; embeddings, norms and KV "
        "heads that do not divide add to it.",
        source="docs/model.md 1, 2, 4",
    )


def _concurrency(result: KvResult) -> Iterator[Figure]:
    sizing = result.sizing
    needed = sum(group.blocks_at_max_model_len for group in sizing.groups)
    yield figure(
        "concurrency that the engine prints",
        sizing.max_concurrency,
        "",
        "concurrency = blocks / request",
        [
            Symbol("blocks", "of the pool", sizing.num_blocks, ""),
            Symbol("request", f"of {sizing.max_model_len:,} tokens, in its prefill", needed, ""),
        ],
        why="It is the line to compare with the engine's log.",
        picture="How many of the longest requests fit at once, as the engine reckons.",
        check="Below 1 the engine does not start."
        if sizing.max_concurrency < 1
        else "Above 1: the engine starts.",
        source="docs/model.md, Blocks",
    )


def _lengths(result: KvResult) -> Iterator[Figure]:
    total = Symbol(
        "held", f"of {result.num_lengths:,} requests", result.lengths_total_tokens, "tokens"
    )
    yield figure(
        "slots of static allocation",
        result.static_slots,
        "tokens",
        "slots = requests × longest",
        [
            Symbol("requests", "of the lengths asked for", result.num_lengths, ""),
            Symbol("longest", "that each is given", result.static_length, "tokens"),
        ],
        why="This is what paging saves.",
        picture="Every guest gets a table for the largest party.",
        check=f"{result.static_utilisation:.1%} of them are used.",
        source="docs/worked-example.md 5; Kwon et al., arXiv:2309.06180",
    )
    yield figure(
        "used share, static",
        result.static_utilisation,
        "",
        "used = held / slots",
        [total, Symbol("slots", "of static allocation", result.static_slots, "tokens")],
        why="The rest of the memory is bought and empty.",
        picture="Seats taken over seats.",
        check="20 to 38 % were reported of engines before paging (arXiv:2309.06180, figure 2).",
        source="docs/worked-example.md 5",
    )
    for row in result.blocks:
        yield _paged(row, total)


def _paged(row: BlockSizeRow, total: Symbol) -> Figure:
    return figure(
        f"used share, blocks of {row.block_size:,}",
        row.paged_utilisation,
        "",
        "used = held / slots",
        [
            Symbol(total.name, total.meaning, row.used_tokens, "tokens"),
            Symbol("slots", "in whole blocks", row.paged_slots, "tokens"),
        ],
        why="Small blocks waste less and cost longer tables and smaller copies.",
        picture="Only the last block of a request is partly empty.",
        check=f"On average {row.mean_waste_tokens:.3g} tokens a request are wasted; half a block "
        f"is {row.block_size / 2:g}.",
        source="docs/worked-example.md 5",
    )
