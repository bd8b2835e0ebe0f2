"""What was asked of `capplan gpus`, as a plan.yaml has it written: `--emit plan`."""

from __future__ import annotations

import re
from typing import Any

from capplan import units
from capplan.cli.gpus_asked import Asked
from capplan.planner.emit.plan_file import AskedFor
from capplan.specs.engine_catalogue import DEFAULT_ENGINE
from capplan.specs.growth import DEFAULT_HORIZON


def written(asked: Asked) -> AskedFor:
    """The engine, the traffic and the promises as they were given."""
    options = asked.options
    growth = None
    if options.growth is not None:
        growth = {"rate": options.growth, "horizon": options.horizon or DEFAULT_HORIZON}
    return AskedFor(
        engine=options.engine or DEFAULT_ENGINE,
        version=options.engine_version,
        traffic=asked.traffic or _traffic(asked),
        slos=_slos(asked),
        growth=growth,
    )


def _traffic(asked: Asked) -> dict[str, Any]:
    options = asked.options
    if options.qps is None:
        found: dict[str, Any] = {
            "rate": units.format_rate(asked.questions[0].workload.arrival_rate_per_s)
        }
    else:
        found = {"rate": f"{options.qps}/s" if _is_number(options.qps) else options.qps}
        if options.peak_factor is not None:
            found["peak_factor"] = float(options.peak_factor)
    if asked.options.arrivals is not None:
        found["arrivals"] = asked.options.arrivals
    for name, text in (("prompt", asked.prompt), ("output", asked.output)):
        found[name] = int(text) if re.fullmatch(r"\d+", text) else text
    return found


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d+)?", text.strip(), re.ASCII) is not None


def _slos(asked: Asked) -> dict[str, Any]:
    """Limits with their percentiles; of bounds, which speak of means, the limits alone."""
    if asked.percentile is None:
        return {each.key: units.format_duration(each.limit_s) for each in asked.limits}
    found: dict[str, Any] = {}
    if asked.limits:
        found["percentile"] = _plain(asked.percentile)
    for each in asked.limits:
        text = units.format_duration(each.limit_s)
        own = each.percentile is not None and each.percentile != asked.percentile
        found[each.key] = {"limit": text, "percentile": _plain(each.percentile)} if own else text
    if asked.options.slo_goodput is not None:
        found["goodput"] = asked.options.slo_goodput
    return found


def _plain(number: float | None) -> float | None:
    """99 rather than 99.0."""
    return int(number) if number is not None and number.is_integer() else number
