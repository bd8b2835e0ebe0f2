"""How a trace was understood, where the plan does not say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from capplan.results.assumptions import Assumption
from capplan.simulator.traffic.replay.clock import UNIT_NAMES
from capplan.simulator.traffic.replay.trace_file import TraceFile
from capplan.specs.traffic import Trace


def of_trace(
    trace: Trace, file: TraceFile, own_times: bool, skipped: Counter[str]
) -> list[Assumption]:
    """Format, clock and estimates of a file; `skipped` counts the rows that were left out."""
    found = []
    name = Path(trace.file).name
    if trace.format == "auto":
        found.append(Assumption(f"format of {name}", file.format, "trace.format"))
    if own_times and trace.time_unit == "auto" and file.time_unit is not None:
        unit = UNIT_NAMES.get(file.time_unit, "times of day, UTC where no zone stands")
        found.append(Assumption(f"`{file.time_field}`", unit, "trace.time_unit"))
    if own_times and file.format == "mooncake" and not trace.spread:
        found.append(Assumption("requests of one tick", "all at once", "trace.spread: 3s"))
    if file.estimates_tokens and "characters_per_token" not in trace.model_fields_set:
        number = f"{trace.characters_per_token:g} characters each"
        found.append(Assumption("tokens of texts", number, "trace.characters_per_token"))
    if skipped:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in skipped.most_common())
        found.append(Assumption(f"rows left out of {name}", reasons, "--skip-bad-rows"))
    return found
