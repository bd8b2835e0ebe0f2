"""What the engine did within the windows, over all replicas."""

from __future__ import annotations

from collections.abc import Sequence

from capplan.results.simulate import Usage
from capplan.simulator.step_statistics import Totals
from capplan.simulator.yardstick import Window, Yardstick, rate_of

_KV_FULL = 0.95  # of the blocks, at the fullest moment


def output_tokens(windows: Sequence[Window]) -> float:
    """Decoded within the window, and the first tokens that prefill samples."""
    tokens = 0.0
    for window in windows:
        tokens += window.totals().num_decodes
        start_s, end_s = window.start_s, window.end_s
        tokens += sum(1 for r in window.run.records if start_s <= r.first_token_s <= end_s)
    return tokens


def prompt_tokens(windows: Sequence[Window]) -> float:
    """Prompts whose first token came within the window, cached parts included."""
    return sum(
        record.prompt_tokens
        for window in windows
        for record in window.run.records
        if window.start_s <= record.first_token_s <= window.end_s
    )


def usage_of(windows: Sequence[Window], yardstick: Yardstick) -> Usage:
    """Steps, batches, memory and waste."""
    parts = [window.totals() for window in windows]
    total = Totals(*(sum(column) for column in zip(*parts, strict=True)))
    watches = [watch for window in windows for watch in window.run.statistics]
    replica_s = sum(w.elapsed_s * w.run.num_replicas for w in windows)
    records = [record for window in windows for record in window.run.records]
    steps, blocks = total.num_steps, yardstick.usable_blocks
    wasted = sum(window.run.wasted_tokens for window in windows)
    scheduled = sum(window.run.scheduled_tokens for window in windows)
    prompts = sum(record.prompt_tokens for record in records)
    tokens = total.num_decodes + total.prefill_tokens
    return Usage(
        num_steps=round(steps),
        mean_step_s=total.busy_s / steps if steps else None,
        mean_batch=total.num_decodes / steps if steps else None,
        mean_step_tokens=tokens / steps if steps else None,
        budget_fraction=tokens / steps / yardstick.max_num_batched_tokens if steps else None,
        max_running=max(watch.max_running for watch in watches),
        max_waiting=max(watch.max_waiting for watch in watches),
        kv_used_fraction=total.block_s / replica_s / blocks if replica_s and blocks else None,
        kv_used_fraction_max=max(w.max_used_blocks for w in watches) / blocks if blocks else 0.0,
        busy_fraction=min(1.0, rate_of(total.busy_s, replica_s)),
        num_preemptions=sum(record.num_preemptions for record in records),
        wasted_tokens=wasted,
        wasted_fraction=wasted / scheduled if scheduled else 0.0,
        prefix_hit_fraction=sum(r.cached_tokens for r in records) / prompts if prompts else None,
    )


def bottleneck_of(usage: Usage, yardstick: Yardstick) -> str | None:
    """What requests waited for, where some had to wait for more than the next step."""
    if usage.max_running >= yardstick.max_num_seqs:
        return "seats"
    return "kv" if usage.kv_used_fraction_max >= _KV_FULL and usage.num_preemptions else None
