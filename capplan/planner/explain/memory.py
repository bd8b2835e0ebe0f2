"""Memory, explained: weights, KV of a token and a request, the pool, what fits. Shared."""

from __future__ import annotations

from capplan.performance.kv_pool import KvPool
from capplan.planner.explain.figure import figure
from capplan.results.explanation import Figure, Symbol
from capplan.results.memory import MemoryBudget
from capplan.specs.kv_cache import kv_layers
from capplan.specs.model import ModelSpec
from capplan.specs.tensor import Tensor
from capplan.specs.tensors import tensor_bytes, tensor_format, tensors_of
from capplan.units import GB, GIB


def gib(size: float) -> str:
    return f"{size / GIB:.3g} GiB"


def weights(model: ModelSpec, tp: int, dtype: str | None, value: float) -> Figure:
    """Weight bytes of one GPU, by groups of tensors."""
    groups: dict[str, float] = {}
    for tensor in tensors_of(model):
        groups[tensor.group] = groups.get(tensor.group, 0.0) + _bytes(tensor, model, tp, dtype)
    symbols = [
        Symbol(name, f"{name.replace('_', ' ')}, of one GPU", size, "bytes")
        for name, size in groups.items()
    ]
    return figure(
        "weights of a GPU",
        value,
        "bytes",
        f"weights = {' + '.join(groups)}",
        symbols,
        why="Weights are there before the first request, and every step reads them.",
        picture="Every matrix of the model, cut over the GPUs of a replica.",
        check=f"{_params(model) / 1e9:.3g} billion parameters in {dtype or model.stored_format} "
        f"at TP {tp} are about this.",
        source="docs/model.md 1, 2; the checkpoint's tensors",
    )


def _bytes(tensor: Tensor, model: ModelSpec, tp: int, dtype: str | None) -> float:
    return tensor_bytes(tensor, tensor_format(tensor, model, dtype)) * tensor.shard_fraction(tp)


def _params(model: ModelSpec) -> float:
    return float(sum(tensor.num_params for tensor in tensors_of(model)))


def kv_per_token(model: ModelSpec, kv_dtype: str, value: float, tp: int = 1) -> Figure:
    """Of all layers; windows that are not yet full count like the others."""
    symbols: list[Symbol] = []
    terms = []
    for i, layer in enumerate(kv_layers(model, kv_dtype, tp)):
        if not layer.bytes_per_token:
            continue
        suffix = "" if not i else f"_{i + 1}"
        terms.append(f"layers{suffix} × bytes{suffix}")
        kind = layer.name.replace("_", " ")
        symbols += [
            Symbol(f"layers{suffix}", f"layers of {kind}", layer.count, ""),
            Symbol(
                f"bytes{suffix}", f"a token and layer of {kind}", layer.bytes_per_token, "bytes"
            ),
        ]
    return figure(
        "KV of a token",
        value,
        "bytes",
        f"kv_token = {' + '.join(terms) or '0'}",
        symbols,
        why="What each token of context costs for as long as its request lives.",
        picture="Every layer keeps a key and a value of each KV head.",
        check=f"A thousand tokens take {1000 * value / 1e6:.3g} MB; the whole context of "
        f"{model.max_context_tokens:,} {model.max_context_tokens * value / GB:.3g} GB.",
        source="docs/model.md 3; Ainslie et al., GQA, arXiv:2305.13245",
    )


def pool_flat(visible: float, share: float, held: float, reserve: float, value: float) -> Figure:
    """As `capplan gpus` plans: one sum beside weights and KV."""
    return figure(
        "KV pool of a GPU",
        value,
        "bytes",
        "pool = visible × share - weights - reserve",
        [
            Symbol("visible", "memory that a process sees", visible, "bytes"),
            Symbol("share", "of it for the engine", share, ""),
            Symbol("weights", "of this GPU", held, "bytes"),
            Symbol("reserve", "runtime and activations", reserve, "bytes"),
        ],
        why="What is left for KV is what batches are made of.",
        picture="The GPU is a shelf: the engine's share of it, less weights, less working space.",
        check=f"{value / visible:.0%} of the GPU's memory are for requests."
        + (
            " That is little: a smaller format or more GPUs a replica."
            if value < visible / 8
            else ""
        ),
        source="docs/model.md 5",
    )


def pool_itemised(budget: MemoryBudget) -> Figure:
    """As `capplan kv` budgets: the engine's own items."""
    terms = {_key(term.name): term for term in budget.terms}
    symbols = [Symbol("visible", "memory that a process sees", budget.visible_bytes, "bytes")]
    symbols += [
        Symbol(key, f"{term.name} ({term.source})", term.likely_bytes, "bytes")
        for key, term in terms.items()
    ]
    return figure(
        "KV pool of a GPU",
        budget.pool_bytes,
        "bytes",
        f"pool = visible - {' - '.join(terms)}",
        symbols,
        why="What is left for KV is what batches are made of.",
        picture=f"{budget.engine} fills the GPU item by item; the pool is the rest.",
        check=f"By the items' logged ranges it is {gib(budget.pool_low_bytes)} to "
        f"{gib(budget.pool_high_bytes)}.",
        source="docs/memory.md; start-up logs of the engine",
    )


def _key(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name.lower()).strip("_").replace("__", "_")


def num_blocks(pool: KvPool) -> Figure:
    return figure(
        "blocks of the pool",
        pool.num_blocks,
        "",
        "blocks = floor(pool / block)",
        [
            Symbol("pool", "room for KV on the GPU that decides", pool.available_bytes, "bytes"),
            Symbol(
                "block", f"{pool.block_size} tokens of all layers", pool.bytes_per_block, "bytes"
            ),
        ],
        why="The engine hands out KV in blocks; one of them it never hands out.",
        picture="The pool cut into pages of equal size, as an operating system cuts its memory.",
        check=f"Blocks × tokens a block are {pool.num_blocks * pool.block_size:,} tokens where all "
        "layers keep everything.",
        source="docs/model.md, Blocks; Kwon et al., PagedAttention, arXiv:2309.06180",
    )


def sequence_bytes(pool: KvPool, tokens: int, value: float) -> Figure:
    return figure(
        f"KV of a request of {tokens:,} tokens",
        value,
        "bytes",
        "sequence = kept × block",
        [
            Symbol("kept", "blocks of a decoding request", pool.decode_blocks(tokens), ""),
            Symbol("block", "all layers, of one GPU", pool.bytes_per_block, "bytes"),
        ],
        why="A request holds whole blocks, for as long as it runs.",
        picture="Its tokens in blocks, the last one partly filled; windows keep only their reach.",
        check=f"ceil({tokens:,} / {pool.block_size}) = {-(-tokens // pool.block_size):,} blocks "
        "where one group of layers keeps everything.",
        source="docs/model.md, Blocks",
    )


def sequences(pool: KvPool, tokens: int, value: float) -> Figure:
    """Raises nothing: where not one fits, the formula says so by max(0, ...)."""
    formula = "fits = floor((usable - starting) / kept) + 1"
    if value <= 0:
        formula = "fits = max(0, floor((usable - starting) / (usable + starting)))"
    return figure(
        f"requests of {tokens:,} tokens at once",
        value,
        "",
        formula,
        [
            Symbol("usable", "blocks that are handed out", pool.usable_blocks, ""),
            Symbol("starting", "of the one in its prefill", pool.request_blocks(tokens), ""),
            Symbol("kept", "of each that decodes", pool.decode_blocks(tokens), ""),
        ],
        why="More than these cannot run together, whatever the GPU could compute.",
        picture="One request in its prefill, the others decoding, until the blocks are gone.",
        check=f"{int(value):,} × {tokens:,} = {int(value) * tokens:,} tokens of context held.",
        source="docs/model.md, Blocks",
    )
