"""The option texts of `capplan kv`, as given."""

from __future__ import annotations

from typing import NamedTuple


class KvOptions(NamedTuple):
    model: str | None
    hardware: str | None
    dtype: str | None
    kv_dtype: str | None
    tp: str | None
    pp: str | None
    dcp: str | None
    dp_attention: str | None
    engine: str | None
    engine_version: str | None
    engine_log: str | None
    context: str | None
    max_model_len: str | None
    gpu_memory: str | None
    gpu_memory_utilization: str | None
    reserve: str | None
    block_size: str | None
    max_num_seqs: str | None
    max_num_batched_tokens: str | None
    async_scheduling: bool | None
    enable_prefix_caching: bool | None
    lengths: str | None
    static_length: str | None
