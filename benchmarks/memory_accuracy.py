"""How near the predicted memory is to what engines print when they start.

    python benchmarks/memory_accuracy.py LOG_FACTS.csv [--json]

(a) tokens from the logged pool against the printed tokens; (b) weights of one GPU; (c) the pool
from model, GPU and flags alone; (d) does it start. Each row is read with its own engine version.
Rows that say nothing about a measure are listed with the reason.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from memory_rows import GIB, NotEvaluated, Row

from capplan.performance.engine_pool import engine_kv_settings
from capplan.performance.kv_pool import KvPool
from capplan.performance.loaded_weights import loaded_weights
from capplan.performance.memory import MemoryRequest, memory_budget
from capplan.results.memory import MemoryBudget

HALF_UNIT_GIB = 0.005  # logs print two decimals
CONTRADICTION_GIB = 0.3
MAX_RANGE_GIB = 3.0  # a verdict may hang on a range of this size, not on a wider one
BARS = {
    "tokens_exact_fraction": 0.95,
    "weights_within_1pct_fraction": 0.90,
    "pool_median_error": 0.04,
    "pool_p90_error": 0.12,
    "wrong_verdicts": 0,
}


@dataclass
class Measure:
    """Rows of one measure: what was compared, and why the others were not."""

    name: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def kv_pool(row: Row, pool_bytes: float, *, split: bool = True) -> KvPool:
    """The blocks of a logged or predicted pool, under the row's own version and flags.

    Not ``split``: the layers of all pipeline stages on one GPU.
    """
    engine = row.engine
    gpu = engine.gpu_class(row.known_memory_bytes, row.text("gpu"))
    settings = engine_kv_settings(
        engine,
        block_size=row.count("block_size"),
        max_model_len=row.max_model_len,
        max_num_batched_tokens=gpu.max_num_batched_tokens,
        pp=row.pp if split else 1,
        dcp=row.dcp,
    )
    return KvPool(row.model, row.kv_format, row.tp, settings, pool_bytes)


def tokens(row: Row) -> dict[str, Any]:
    """(a) the logged pool in blocks; equal within the rounding of the printed GiB."""
    printed = row.printed_tokens
    pool = row.logged_pool_gib
    if pool is None or printed is None or pool <= 0:
        raise NotEvaluated("pool and tokens are not both printed")
    _refuse_contradiction(row, pool)
    # SGLang prints K and V apart, each rounded.
    slack = HALF_UNIT_GIB * (2 if row.text("sgl_k_gb") else 1)
    low, likely, high = (
        kv_pool(row, (pool + sign * slack) * GIB).printed_tokens for sign in (-1, 0, 1)
    )
    return {"predicted": likely, "logged": printed, "good": low <= printed <= high}


def weights(row: Row) -> dict[str, Any]:
    """(b) weights of one GPU."""
    logged = row.number("model_load_gib")
    if logged is None:
        raise NotEvaluated("weights are not printed")
    model = row.model  # the first reason is the one that is given
    predicted = loaded_weights(model, row.tp, row.pp, row.edition).total_bytes / GIB
    error = predicted / logged - 1
    return {"predicted": predicted, "logged": logged, "error": error, "good": abs(error) <= 0.01}


def budget(row: Row, share: float | None) -> MemoryBudget:
    """The budget from model, GPU and flags alone."""
    hardware = row.hardware
    sglang_free = row.number("gpu_mem_gib") if row.text("engine") == "sglang" else None
    return memory_budget(
        MemoryRequest(
            model=row.model,
            engine=row.engine,
            visible_bytes=row.memory_bytes,
            gpu_name=row.text("gpu"),
            tp=row.tp,
            pp=row.pp,
            edition=row.edition,
            memory_share=share,
            max_model_len=row.max_model_len,
            max_num_seqs=row.count("max_num_seqs"),
            visible_is_estimate=row.number("gpu_mem_gib") is None
            and bool(hardware and hardware.visible_memory_is_estimate),
            fast_link=bool(hardware and hardware.scale_up),
            free_before_bytes=sglang_free * GIB if sglang_free else None,
        )
    )


def pool(row: Row) -> dict[str, Any]:
    """(c) the pool, blind."""
    logged = row.logged_pool_gib
    if logged is None:
        raise NotEvaluated("the pool is not printed")
    model = row.model
    if row.stated_share is None:
        raise NotEvaluated("the share of memory is not stated")
    if logged <= 0:
        raise NotEvaluated("no pool at all: a verdict, not an error in per cent")
    _refuse_capped(row, logged)
    _refuse_contradiction(row, logged)
    found = budget(row, row.stated_share)
    predicted = found.pool_bytes / GIB
    return {
        "model": model.name,
        "predicted": predicted,
        "low": found.pool_low_bytes / GIB,
        "high": found.pool_high_bytes / GIB,
        "logged": logged,
        "error": abs(predicted - logged) / logged,
        "good": found.pool_low_bytes / GIB <= logged <= found.pool_high_bytes / GIB,
    }


def _refuse_capped(row: Row, logged: float) -> None:
    """SGLang with --max-total-tokens: far less than its own printed memory allows."""
    after, before = row.number("sgl_avail_after_load_gb"), row.number("gpu_mem_gib")
    if after is not None and before is not None and row.stated_share is not None:
        allowed = after - before * (1 - row.stated_share)
        if logged < 0.9 * allowed:
            raise NotEvaluated("capped: the pool is far below what the printed memory allows")


def _refuse_contradiction(row: Row, logged: float) -> None:
    """A row that prints every term: where they do not sum, they are of different ranks."""
    keys = ("gpu_mem_gib", "model_load_gib", "non_torch_gib", "act_peak_gib")
    visible, load, non_torch, peak = (row.number(key) for key in keys)
    share = row.stated_share
    if None in (visible, load, non_torch, peak, share) or row.engine.memory.cuda_graphs.subtracted:
        return
    summed = (visible or 0) * (share or 0) - (load or 0) - (non_torch or 0) - (peak or 0)
    if abs(summed - logged) > CONTRADICTION_GIB:
        raise NotEvaluated("the printed terms do not sum to the printed pool")


def verdict(row: Row) -> dict[str, Any]:
    """(d) does the longest context fit: blind where GPU and share are known, else by the pool."""
    length = row.count("needed_len") or row.count("err_max_seq_len") or row.count("max_model_len")
    started = _started(row)
    model = row.model
    if length is None:
        length = model.max_context_tokens
    need = _needed_bytes(row, length) / GIB
    try:
        if row.stated_share is None:
            raise NotEvaluated("the share of memory is not stated")
        found = budget(row, row.stated_share)
        low, likely, high = found.pool_low_bytes, found.pool_bytes, found.pool_high_bytes
    except NotEvaluated:
        logged = row.logged_pool_gib
        if logged is None:
            raise
        low = likely = high = logged * GIB
    fits = likely / GIB >= need
    in_range = low / GIB <= need <= high / GIB and (high - low) / GIB <= MAX_RANGE_GIB
    return {
        "need": need,
        "predicted": likely / GIB,
        "low": low / GIB,
        "high": high / GIB,
        "fits": fits,
        "started": started,
        "good": fits == started or in_range,
    }


def _needed_bytes(row: Row, length: int) -> float:
    """Room that the start-up check asks for on a GPU; some versions check the whole model."""
    pool = kv_pool(row, 0.0, split=not row.engine.whole_model_startup_check)
    return float(pool.request_blocks(length) * pool.bytes_per_block)


def _started(row: Row) -> bool:
    """What the log says: it refused, or it printed a pool that holds its longest context."""
    needed, pool_gib = row.number("needed_gib"), row.number("kv_avail_gib")
    longest, held = row.count("err_max_seq_len"), row.count("err_kv_tokens")
    if pool_gib is not None and (pool_gib <= 0 or (needed is not None and needed > pool_gib)):
        return False
    if longest is not None and held is not None:
        return longest <= held
    printed = row.text("kv_tokens") or row.text("gpu_blocks") or row.text("sgl_tokens")
    if printed and row.number("max_conc_x") is not None:
        return (row.number("max_conc_x") or 0) >= 1
    if printed and row.text("kv_tokens"):
        return True
    raise NotEvaluated("the log does not say whether it started")


MEASURES: dict[str, Callable[[Row], dict[str, Any]]] = {
    "tokens": tokens,
    "weights": weights,
    "pool": pool,
    "verdict": verdict,
}


def measure(rows: Sequence[Row]) -> dict[str, Measure]:
    found = {name: Measure(name) for name in MEASURES}
    for row in rows:
        for name, function in MEASURES.items():
            try:
                values = function(row)
            except NotEvaluated as reason:
                found[name].skipped.append((row.id, str(reason)))
                continue
            head = {"id": row.id, "model": row.model_id, "engine": row.engine.name}
            found[name].rows.append(head | values)
    return found


def summary(found: dict[str, Measure], num_rows: int) -> dict[str, Any]:
    def fraction(name: str) -> float | None:
        rows = found[name].rows
        return sum(row["good"] for row in rows) / len(rows) if rows else None

    errors = sorted(row["error"] for row in found["pool"].rows)
    return {
        "tokens_exact_fraction": fraction("tokens"),
        "weights_within_1pct_fraction": fraction("weights"),
        "pool_median_error": statistics.median(errors) if errors else None,
        "pool_p90_error": errors[math.ceil(0.9 * len(errors)) - 1] if errors else None,
        "wrong_verdicts": sum(not row["good"] for row in found["verdict"].rows),
        "coverage": {"rows": num_rows} | {name: len(m.rows) for name, m in found.items()},
    }


def table(found: dict[str, Measure], figures: dict[str, Any]) -> str:
    lines = []
    for name, part in found.items():
        lines += [f"{name}: {len(part.rows)} rows"]
        for row in sorted(part.rows, key=lambda row: row["good"]):
            values = (
                f"{key} {value:,.3f}" if isinstance(value, float) else f"{key} {value}"
                for key, value in row.items()
                if key not in ("id", "model", "engine", "good")
            )
            mark = "  " if row["good"] else "! "
            lines += [f"  {mark}{row['id']:>4}  {row['model']:<30} {', '.join(values)}"]
        reasons: dict[str, list[str]] = {}
        for row_id, reason in part.skipped:
            reasons.setdefault(reason, []).append(row_id)
        lines += [f"  not evaluated: {why}: {' '.join(ids)}" for why, ids in reasons.items()]
        lines += [""]
    for key, value in figures.items():
        bar = BARS.get(key)
        shown = f"{value:.4f}" if isinstance(value, float) else str(value)
        lines += [f"{key:<30} {shown}" + (f"  (bar {bar})" if bar is not None else "")]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("facts", type=Path, metavar="LOG_FACTS.csv")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with options.facts.open(encoding="utf-8", newline="") as file:
        rows = [Row(cells) for cells in csv.DictReader(file)]
    found = measure(rows)
    figures = summary(found, len(rows))
    if options.json:
        skipped = {name: dict(part.skipped) for name, part in found.items()}
        print(json.dumps(figures | {"not_evaluated": skipped}, indent=2))
    else:
        print(table(found, figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
