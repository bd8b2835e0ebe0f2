"""The traffic of a simulation: the plan's section, with options laid over it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from capplan.cli.inputs import Inputs
from capplan.errors import CapplanError, QuantityError
from capplan.specs.fields import SpecError
from capplan.specs.plan import Plan
from capplan.specs.rates import ConstantRate
from capplan.specs.traffic import TrafficClass, TrafficSpec

# Enough for a P99 with a hundred requests beyond it, over in a fraction of a second.
DEFAULT_NUM_REQUESTS = 10_000


class TrafficOptions(NamedTuple):
    qps: str | None
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
    "peak_factor": ("peak_factor", "--peak-factor"),
    "arrivals": ("arrivals", "--arrivals"),
    "prompt_tokens": ("prompt", "--prompt-tokens"),
    "output_tokens": ("output", "--output-tokens"),
    "trace": ("trace", "--trace"),
    "num_requests": ("requests", "--num-requests"),
    "duration": ("duration", "--duration"),
    "seed": ("seed", "--seed"),
}


def traffic_spec(options: TrafficOptions, plan: Plan | None, inputs: Inputs) -> TrafficSpec:
    """Options win over the plan; each is checked by the rules of the section `traffic:`."""
    laid = {_FIELDS[name][0]: value for name, value in _values(options, inputs).items()}
    base = plan.traffic if plan else TrafficSpec()
    if not laid:
        return base
    for name, value in laid.items():
        _checked({name: value}, name)
    if {"requests", "duration"} & laid.keys():
        base = _without(base, "requests", "duration")
    if "trace" in laid:
        base = _without(base, "rate", "arrivals", "prompt", "output", "chat", "closed_loop")
    given = {field: getattr(base, field) for field in base.model_fields_set}
    return _checked(given | laid, *laid)


def _values(options: TrafficOptions, inputs: Inputs) -> dict[str, Any]:
    """The options that were given, as a plan would hold them."""
    found: dict[str, Any] = {
        name: text for name, text in options._asdict().items() if text is not None
    }
    skip = found.pop("skip_bad_rows", False)
    for name in ("num_requests", "seed"):
        if name in found:
            found[name] = inputs.whole(_FIELDS[name][1], found[name], least=int(name != "seed"))
    if "peak_factor" in found:
        found["peak_factor"] = inputs.number(
            "--peak-factor", found["peak_factor"], least=1.0, most=24.0
        )
    if "trace" in found:
        found["trace"] = {"file": found["trace"], "skip_bad_rows": skip}
    elif skip:
        raise CapplanError("--skip-bad-rows says nothing without --trace")
    return found


def _without(base: TrafficSpec, *fields: str) -> TrafficSpec:
    given = {f: getattr(base, f) for f in base.model_fields_set if f not in fields}
    return TrafficSpec(**given)


def _checked(values: dict[str, Any], *laid: str) -> TrafficSpec:
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


def is_stationary(spec: TrafficSpec) -> bool:
    """Whether it goes on as it began, so that a warm-up can be cut."""
    classes: tuple[TrafficClass, ...] = spec.classes or (spec,)
    return all(
        part.trace is None
        and isinstance(part.rate, ConstantRate | None)
        and not (part.arrivals.kind == "burst" and part.arrivals.size is None)
        for part in classes
    )


def folder_of(plan_file: str | None, options: TrafficOptions) -> Path:
    """Names of files in a plan count from the plan; on the command line from here."""
    if plan_file is None or options.trace is not None:
        return Path()
    return Path(plan_file).parent
