"""The KV pool of an engine's version: its budget, laid into blocks by its own defaults."""

from __future__ import annotations

from capplan.performance.kv_layout import KvSettings
from capplan.specs.engine import EngineSpec


def engine_kv_settings(
    engine: EngineSpec,
    *,
    max_num_batched_tokens: int,
    block_size: int | None = None,
    max_model_len: int | None = None,
    async_scheduling: bool | None = None,
    enable_prefix_caching: bool | None = None,
    pp: int = 1,
    dcp: int = 1,
) -> KvSettings:
    """What shapes the pool: as given, else as the version has it."""
    defaults = engine.defaults
    asynchronous = defaults.async_scheduling if async_scheduling is None else async_scheduling
    prefixes = defaults.prefix_caching if enable_prefix_caching is None else enable_prefix_caching
    return KvSettings(
        block_size=block_size or defaults.block_size,
        max_model_len=max_model_len,
        max_num_batched_tokens=max_num_batched_tokens,
        enable_prefix_caching=prefixes,
        async_scheduling=asynchronous,
        hybrid_manager=defaults.hybrid_manager,
        hybrid_chunked=defaults.hybrid_chunked,
        pp=pp,
        dcp=dcp,
        printed_by_groups=engine.printed_size != "concurrency-times-length",
    )
