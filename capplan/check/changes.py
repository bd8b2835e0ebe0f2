"""What a change does to deployments: GPUs, cost, KV, and the predicted time to first token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capplan.check.cases import Case
from capplan.check.foresight import predicted
from capplan.check.predictions import Level
from capplan.check.run import summary_of
from capplan.formulas.capacity import usd_per_month
from capplan.results.check import CheckedDeployment, FleetChange


def fleet_changes(before: Sequence[Case], after: Sequence[Case]) -> Iterator[FleetChange]:
    """One row a deployment that was added, removed, or changed in something that counts."""
    old, new = _by_key(before), _by_key(after)
    for key in dict.fromkeys((*old, *new)):
        change = _change(old.get(key), new.get(key))
        if change is not None:
            yield change


def _by_key(cases: Sequence[Case]) -> dict[tuple[str, str, int], Case]:
    """By file, name and turn: names repeat."""
    found: dict[tuple[str, str, int], Case] = {}
    for case in cases:
        turn = 0
        name = (case.config.relative(case.deployment.source.file), case.deployment.name)
        while (*name, turn) in found:
            turn += 1
        found[(*name, turn)] = case
    return found


def _change(before: Case | None, after: Case | None) -> FleetChange | None:
    old = summary_of(before) if before is not None else None
    new = summary_of(after) if after is not None else None
    shown = new or old
    if shown is None:
        return None
    ttft_before, ttft_after = _ttft(before), _ttft(after)
    change = FleetChange(
        deployment=shown.name,
        file=shown.file,
        what="added" if old is None else "removed" if new is None else "changed",
        num_gpus_before=_gpus(old),
        num_gpus_after=_gpus(new),
        hardware_before=old.hardware if old else None,
        hardware_after=new.hardware if new else None,
        usd_per_month_before=_month(old),
        usd_per_month_after=_month(new),
        ttft_name=level.name if (level := ttft_after or ttft_before) else None,
        ttft_s_before=ttft_before.value_s if ttft_before else None,
        ttft_s_after=ttft_after.value_s if ttft_after else None,
        kv_pool_tokens_before=old.kv_pool_tokens if old else None,
        kv_pool_tokens_after=new.kv_pool_tokens if new else None,
    )
    same = change.what == "changed" and (
        change.num_gpus_before == change.num_gpus_after
        and change.hardware_before == change.hardware_after
        and change.usd_per_month_before == change.usd_per_month_after
        and change.ttft_s_before == change.ttft_s_after
        and change.kv_pool_tokens_before == change.kv_pool_tokens_after
    )
    return None if same else change


def _gpus(summary: CheckedDeployment | None) -> int | None:
    return 0 if summary is None else summary.num_gpus


def _month(summary: CheckedDeployment | None) -> float | None:
    if summary is None:
        return 0.0
    return None if summary.usd_per_hour is None else usd_per_month(summary.usd_per_hour)


def _ttft(case: Case | None) -> Level | None:
    found = predicted(case) if case is not None else None
    return found.ttft if found is not None and not found.saturated else None
