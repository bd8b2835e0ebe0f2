"""One GPU's memory item by item, how the model is dealt over GPUs, and what makes it fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from capplan.render import shows
from capplan.render.screen import Column, Table
from capplan.results.kv import KvResult
from capplan.results.memory import MemoryTerm

_NAMES = {"left free": "left free by the share", "context": "taken before loading"}


def memory_table(result: KvResult) -> Table:
    """Visible memory, the terms and the pool, each with its range and the rows behind it."""
    memory = result.memory
    columns = (
        Column("item", "", right=False),
        Column("low_bytes", "least", _size),
        Column("likely_bytes", "likely", _size),
        Column("high_bytes", "most", _size),
        Column("num_rows", "logged\nrows", shows.count),
        Column("from", "from", right=False, prose=True),
    )
    share = f"{memory.memory_share:g} is taken"
    rows: list[Sequence[Any]] = [
        ("visible to a process", None, memory.visible_bytes, None, None, "")
    ]
    rows += [_term(term, share) for term in memory.terms]
    ends = (memory.pool_low_bytes, memory.pool_high_bytes)
    low, high = ends if ends[0] < ends[1] else (None, None)
    rows.append(("KV pool", low, memory.pool_bytes, high, None, "what is left"))
    stage = f", stage {memory.stage + 1} of {result.pp}" if result.pp > 1 else ""
    return Table(f"Memory of one GPU, itemised ({memory.engine}{stage})", columns, rows)


def _term(term: MemoryTerm, share: str) -> Sequence[Any]:
    name = _NAMES.get(term.name, term.name)
    source = share if term.name == "left free" else term.source
    if not term.is_estimate:
        return (name, None, term.likely_bytes, None, None, source)
    return (name, term.low_bytes, term.likely_bytes, term.high_bytes, term.rows, source)


def _size(value: float) -> str:
    return shows.binary_bytes(value) if value >= 0 else f"-{shows.binary_bytes(-value)}"


def split_table(result: KvResult) -> Table | None:
    """What of the model one GPU holds; nothing where it holds all."""
    if result.num_gpus == 1:
        return None
    columns = (
        Column("what", "", right=False),
        Column("num_whole", "model", shows.count),
        Column("num_per_gpu", "a GPU", shows.count),
        Column("note", "", right=False),
    )
    rows = [(row.name, row.num_whole, row.num_per_gpu, row.note or "") for row in result.split]
    return Table(f"Dealt over {result.num_gpus} GPUs", columns, rows)


def stage_table(result: KvResult) -> Table | None:
    if not result.stages:
        return None
    columns = (
        Column("stage", "stage", lambda stage: str(stage + 1)),
        Column("num_layers", "layers", shows.count),
        Column("weight_bytes_per_gpu", "weights", _size),
        Column("kv_pool_bytes_per_gpu", "KV pool", _size),
        Column("bytes_per_block_per_gpu", "a block", shows.binary_bytes),
        Column("num_blocks", "blocks", shows.count),
        Column("decides", "", lambda decides: "decides: fewest blocks" if decides else "", False),
    )
    rows = [[getattr(row, column.key) for column in columns] for row in result.stages]
    return Table("Stages of the pipeline, each a GPU's", columns, rows)


def advice_table(result: KvResult) -> Table | None:
    if not result.advice:
        return None
    columns = (
        Column("change", "change", right=False),
        Column("outcome", "what it does", right=False, prose=True),
    )
    rows = [(f"{item.option} {item.value}", item.why) for item in result.advice]
    return Table("What makes it fit, nearest first; each was tried", columns, rows)
