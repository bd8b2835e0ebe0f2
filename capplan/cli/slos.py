"""Limits as `capplan gpus` takes them: each at its percentile, or at a common one."""

from __future__ import annotations

import re
from typing import NamedTuple

from capplan import units
from capplan.cli.inputs import Inputs
from capplan.errors import CapplanError
from capplan.planner import question as q
from capplan.specs.percentiles import DEFAULT_SLO_PERCENTILE

KEYS = ("ttft", "tpot", "itl", "e2e")
_DEFAULT_S = {"ttft": q.DEFAULT_SLO_TTFT_S, "tpot": q.DEFAULT_SLO_TPOT_S}
_WORDS = {"ttft": "TTFT limit", "tpot": "TPOT limit"}
_OWN = re.compile(r"[pP](\d{1,2}(?:\.\d{1,3})?):(.*)", re.DOTALL)


class SloLimit(NamedTuple):
    key: str
    limit_s: float
    percentile: float | None  # None: as the others


class SloOptions(NamedTuple):
    slo_ttft: str | None
    slo_tpot: str | None
    slo_e2e: str | None = None
    slo_percentile: str | None = None
    slo_goodput: str | None = None
    slo_itl: str | None = None


def limits_of(options: SloOptions, inputs: Inputs, *, all_given: bool = False) -> list[SloLimit]:
    """In the order of KEYS. TTFT and TPOT have defaults, unless only --slo-e2e is given, or a
    plan has said which limits there are."""
    whole_only = all_given or (options.slo_e2e is not None and options[:2] == (None, None))
    found: list[SloLimit] = []
    for key in KEYS:
        text: str | None = getattr(options, f"slo_{key}")
        option, percentile = f"--slo-{key}", None
        if text is None and (key in ("itl", "e2e") or whole_only):
            continue
        if text is not None and (own := _OWN.fullmatch(text)) is not None:
            percentile, text = _percentile(option, own[1]), own[2]
        limit_s = inputs.duration(option, text, _DEFAULT_S.get(key, 0.0), _WORDS.get(key, ""))
        found.append(SloLimit(key, limit_s, percentile))
    return found


def common_percentile(options: SloOptions, limits: list[SloLimit], inputs: Inputs) -> float:
    text = options.slo_percentile
    if text is not None:
        return _percentile("--slo-percentile", text.removeprefix("p").removeprefix("P"))
    if any(limit.percentile is None for limit in limits):
        said = f"P{DEFAULT_SLO_PERCENTILE:g}"
        inputs.assume("percentile of the limits", said, "--slo-percentile")
    return DEFAULT_SLO_PERCENTILE


def _percentile(option: str, text: str) -> float:
    try:
        value = float(text) if re.fullmatch(r"[0-9.]{1,8}", text, re.ASCII) else None
    except ValueError:
        value = None
    if value is None or not 1 <= value <= 99.99:
        raise CapplanError(
            f"{option}: `{text[:40]}` is not a percentile from 1 to 99.99",
            hint="write 99, or p95:400ms for a limit with its own",
        )
    return value


def check_together(limits: list[SloLimit], output_tokens: int) -> None:
    """Raises CapplanError where one limit leaves the others nothing to say."""
    by_key = {limit.key: limit.limit_s for limit in limits}
    if not {"ttft", "tpot", "e2e"} <= by_key.keys():
        return
    parts_s = by_key["ttft"] + (output_tokens - 1) * by_key["tpot"]
    if by_key["e2e"] >= parts_s:
        return
    whole, parts = units.format_duration(by_key["e2e"]), units.format_duration(parts_s, digits=3)
    raise CapplanError(
        f"--slo-e2e {whole} contradicts the other limits: TTFT and {output_tokens - 1:,} times "
        f"TPOT allow {parts}",
        hint=f"give --slo-e2e {units.format_duration(parts_s, digits=3)} or more, or leave out "
        "--slo-ttft and --slo-tpot",
    )
