"""The traffic of a simulation: the plan's section, with options laid over it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from capplan.cli.inputs import Inputs
from capplan.errors import CapplanError, QuantityError
from capplan.specs.documents import Document
from capplan.specs.fields import SpecError
from capplan.specs.plan import Plan
from capplan.specs.traffic import TrafficSpec

RAMP_UP_S_PER_USER = 0.1
SLOW_NUM_REQUESTS = 1200


class TrafficOptions(NamedTuple):
    qps: str | None
    users: str | None
    think_time: str | None
    peak_factor: str | None
    arrivals: str | None
    prompt_tokens: str | None
    output_tokens: str | None
    trace: str | None
    skip_bad_rows: bool | None
    num_requests: str | None
    duration: str | None
    seed: str | None


_FIELDS = {
    "qps": ("rate", "--qps"),
    "closed_loop": ("closed_loop", "--users"),
    "peak_factor": ("peak_factor", "--peak-factor"),
    "arrivals": ("arrivals", "--arrivals"),
    "prompt_tokens": ("prompt", "--prompt-tokens"),
    "output_tokens": ("output", "--output-tokens"),
    "trace": ("trace", "--trace"),
    "num_requests": ("requests", "--num-requests"),
    "duration": ("duration", "--duration"),
    "seed": ("seed", "--seed"),
}


def traffic_spec(
    options: TrafficOptions, plan: Plan | None, document: Document | None, inputs: Inputs
) -> TrafficSpec:
    """Options win over the plan; each is checked by the rules of the section `traffic:`."""
    laid = _laid(options, inputs)
    if not laid:
        return plan.traffic if plan else TrafficSpec()
    for name, value in laid.items():
        checked({name: value}, name)
    return checked(_merged(laid, document), *laid)


def traffic_mapping(
    options: TrafficOptions, document: Document | None, inputs: Inputs
) -> dict[str, Any]:
    """The same as a plan would have it written."""
    return _merged(_laid(options, inputs), document)


def _laid(options: TrafficOptions, inputs: Inputs) -> dict[str, Any]:
    return {_FIELDS[name][0]: value for name, value in _values(options, inputs).items()}


def _merged(laid: dict[str, Any], document: Document | None) -> dict[str, Any]:
    """Options over the file, as it has it: what was read is no text that could be read again."""
    given = dict(document.data.get("traffic") or {}) if document else {}
    if {"requests", "duration"} & laid.keys():
        _leave_out(given, "requests", "duration")
    if "closed_loop" in laid:
        _leave_out(given, "rate", "arrivals", "peak_factor", "trace")
    if "rate" in laid:
        _leave_out(given, "closed_loop", "trace")
    if "trace" in laid:
        _leave_out(given, "rate", "arrivals", "prompt", "output", "chat", "closed_loop")
    return given | laid


def _values(options: TrafficOptions, inputs: Inputs) -> dict[str, Any]:
    """The options that were given, as a plan would hold them."""
    found: dict[str, Any] = {
        name: text for name, text in options._asdict().items() if text is not None
    }
    skip = found.pop("skip_bad_rows", False)
    users, think = found.pop("users", None), found.pop("think_time", None)
    if users is not None:
        number = inputs.whole("--users", users, least=1, most=1_000_000)
        found["closed_loop"] = {"users": number} | ({"think_time": think} if think else {})
    elif think is not None:
        raise CapplanError(
            "--think-time says nothing without --users", hint="say how many with --users N"
        )
    for name in ("num_requests", "seed"):
        if name in found:
            found[name] = inputs.whole(_FIELDS[name][1], found[name], least=int(name != "seed"))
    if "peak_factor" in found:
        found["peak_factor"] = inputs.number(
            "--peak-factor", found["peak_factor"], least=1.0, most=24.0
        )
    if "trace" in found:
        found["trace"] = {"file": found["trace"]} | ({"skip_bad_rows": True} if skip else {})
    elif skip:
        raise CapplanError(
            "--skip-bad-rows says nothing without --trace", hint="name the file with --trace FILE"
        )
    return found


def _leave_out(given: dict[str, Any], *fields: str) -> None:
    for field in fields:
        given.pop(field, None)


def checked(values: dict[str, Any], *laid: str) -> TrafficSpec:
    try:
        return TrafficSpec.model_validate(values)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        original = fault.get("ctx", {}).get("error")
        field = fault["loc"][0] if fault["loc"] else (*getattr(original, "path", ()), *laid)[0]
        option = next((o for f, o in _FIELDS.values() if f in (field, *laid)), "traffic")
        option = next((o for f, o in _FIELDS.values() if f == field), option)
        if isinstance(original, QuantityError):
            raise CapplanError(f"{option}: {original.message}", hint=original.hint) from None
        if isinstance(original, SpecError):
            raise CapplanError(f"{option} {original}", hint=original.hint) from None
        raise CapplanError(f"{option}: {fault['msg'].lower()}") from None


def in_a_loop(spec: TrafficSpec, users: int) -> TrafficSpec:
    """The same requests from so many users, each with one under way.

    Enough of them that a P99 has ten beyond it after a warm-up in which everybody is served a few
    times. The users begin one after the other: all at once would move in step for ever.
    """
    given = {f: getattr(spec, f) for f in spec.model_fields_set if f not in ("rate", "arrivals")}
    given["closed_loop"] = {"users": users, "ramp_up": f"{users * RAMP_UP_S_PER_USER:g}s"}
    if spec.requests is None and spec.duration is None:
        given["requests"] = 1500 + 6 * users
    return TrafficSpec.model_validate(given)


def fewer(spec: TrafficSpec, inputs: Inputs) -> TrafficSpec:
    """As many requests as a P99 asks for, where each is followed by itself and nobody says more."""
    if spec.requests is not None or spec.duration is not None or spec.trace is not None:
        return spec
    inputs.assume("requests", f"{SLOW_NUM_REQUESTS:,}: this engine is slow to follow",
                  "--num-requests")  # fmt: skip
    return spec.model_copy(update={"requests": SLOW_NUM_REQUESTS})


def folder_of(plan_file: str | None, options: TrafficOptions) -> Path:
    """Names of files in a plan count from the plan; on the command line from here."""
    if plan_file is None or options.trace is not None:
        return Path()
    return Path(plan_file).parent
