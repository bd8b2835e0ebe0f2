"""Hybrid models on the counters, approximately: several KV groups taken for one."""

from __future__ import annotations

from dataclasses import replace

from capplan.simulator.config import KvGroup, SchedulerConfig


def approximation_by_one_group(config: SchedulerConfig, tokens: int) -> SchedulerConfig:
    """One full-attention group in whose pool as many requests of `tokens` tokens fit.

    An approximation, to be named as such where it is used. What it gets wrong: requests shorter
    than `tokens` hold too little and longer ones too much, as windows and states stop growing;
    a prompt's chunk is in no window yet while it is computed, so that admission asks for more;
    cached blocks of windows and states are taken to be found like those of full attention.
    Exact, and about 80 times slower, is the configuration itself.
    """
    in_groups = sum(_blocks(group, tokens, config) for group in config.kv_groups)
    if not in_groups:
        return config
    in_one = -(-tokens // config.block_size)
    usable = config.usable_blocks * in_one // in_groups
    return replace(config, kv_groups=(), mamba_cache_mode="none", num_gpu_blocks=1 + max(1, usable))


def _blocks(group: KvGroup, tokens: int, config: SchedulerConfig) -> int:
    """Blocks that a running request of so many tokens holds in one group."""
    places = -(-tokens // group.block_size)
    if group.kind == "sliding":  # the window, which need not begin where a block does
        return min(places, -(-(group.window - 1) // group.block_size) + 1)
    if group.kind == "mamba":  # the state, with prefix caching the one before as well
        return min(places, 2 if config.mamba_cache_mode == "align" else 1)
    return places
