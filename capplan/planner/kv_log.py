"""A start-up log beside the prediction for the same settings: which term differs, and by what."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.performance.kv_engine import Deployment
from capplan.results.engine_log import LogComparison, LogTerm
from capplan.specs.engine_log import EngineLog

# Names in a log by terms of the budget; what a log prints of each.
_BUDGET_TERMS = {
    "weights": ("weights", "load_usage"),
    "non-torch": ("non_torch",),
    "activation peak": ("activation_peak",),
    "CUDA graphs (estimate)": ("cuda_graphs_estimate",),
}
_POOLS = ("pool", "kv_pool", "trt_pool")
_TOKENS = ("kv_tokens", "sglang_tokens", "trt_tokens", "stored_tokens")


def compare(log: EngineLog, here: Deployment) -> LogComparison:
    """Every figure that the log prints and that is predicted."""
    terms = tuple(_terms(log, here))
    parts = [term for term in terms if term.name in _BUDGET_TERMS or term.name == "memory shown"]
    return LogComparison(
        engine=log.engine,
        version=log.version,
        num_runs=log.num_runs,
        terms=terms,
        longest_admitted_tokens=longest_admitted(log),
        differs_most=max(parts, key=lambda t: abs(t.difference)).name if parts else None,
        differing_ranks=log.differing_ranks,
        unread=log.unread,
    )


def _terms(log: EngineLog, here: Deployment) -> Iterator[LogTerm]:
    budget = here.budget
    if (visible := log.sizes.get("visible")) is not None:
        shown = float(here.hardware.visible_memory_bytes)
        yield _term("memory shown", "bytes", shown, shown, shown, visible)
    for name, keys in _BUDGET_TERMS.items():
        term, logged = budget.term(name), _first(log.sizes, keys)
        if term is not None and logged is not None:
            yield _term(name, "bytes", term.low_bytes, term.likely_bytes, term.high_bytes, logged)
    if (graphs := log.sizes.get("cuda_graphs")) is not None:
        taken = here.engine.profile.memory.cuda_graphs
        yield _term("CUDA graphs taken", "bytes", taken.low, taken.likely, taken.high, graphs)
    room = logged_pool(log)
    if room is not None:
        ends = (budget.pool_low_bytes, budget.pool_bytes, budget.pool_high_bytes)
        yield _term("KV pool", "bytes", *ends, room)
    if (needed := log.sizes.get("needed")) is not None:
        length = log.counts.get("needed_length") or here.pool.max_model_len
        pool = here.checked(here.pool)
        need = float(pool.request_blocks(int(length)) * pool.bytes_per_block)
        yield _term("KV of the longest request", "bytes", need, need, need, needed)
    yield from _token_terms(log, here, room)


def _token_terms(log: EngineLog, here: Deployment, room: float | None) -> Iterator[LogTerm]:
    pools = (here.least_pool, here.pool, here.most_pool)
    blocks = log.counts.get("gpu_blocks") or log.counts.get("trt_blocks")
    size = log.counts.get("tokens_per_block") or here.pool.block_size
    tokens = _first(log.counts, _TOKENS) or (blocks * size if blocks else None)
    if tokens is not None:
        low, likely, high = (float(p.printed_tokens) for p in pools)
        yield _term("tokens printed", "tokens", low, likely, high, tokens)
        if room is not None:
            laid = here.pool_of([room] * here.engine.pp).printed_tokens
            yield _term("tokens of the logged pool", "tokens", laid, laid, laid, tokens)
    if (times := log.counts.get("max_concurrency")) is not None:
        length = here.pool.max_model_len
        low, likely, high = (p.max_concurrency(length) for p in pools)
        yield _term("maximum concurrency", "times", low, likely, high, times)
    if (longest := log.counts.get("estimated_max_length")) is not None:
        checked = [here.checked(one) for one in pools]
        low, likely, high = (float(p.longest(p.max_model_len)) for p in checked)
        yield _term("estimated maximum length", "tokens", low, likely, high, longest)


def longest_admitted(log: EngineLog) -> int | None:
    """What `--max-model-len` may be at most, by an engine that refused to start with more.

    It prints its own estimate, or, before it had one, the tokens that its pool stores.
    """
    if "needed_length" not in log.counts:
        return None
    longest = _first(log.counts, ("estimated_max_length", "stored_tokens"))
    return None if longest is None else int(longest)


def logged_pool(log: EngineLog) -> float | None:
    """The printed pool; SGLang prints keys and values apart."""
    halves = log.sizes.get("k_pool"), log.sizes.get("v_pool")
    if halves[0] is not None and halves[1] is not None:
        return halves[0] + halves[1]
    return _first(log.sizes, _POOLS)


def _first(figures: dict[str, float], names: tuple[str, ...]) -> float | None:
    return next((figures[name] for name in names if name in figures), None)


def _term(
    name: str, unit: str, low: float, predicted: float, high: float, logged: float
) -> LogTerm:
    return LogTerm(name, unit, low, predicted, high, logged, predicted - logged)
