"""What stands around the replicas of a simulation: the plan's sections, options laid over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from capplan import units
from capplan.cli.inputs import Inputs
from capplan.errors import CapplanError, QuantityError, did_you_mean
from capplan.simulator.fleet.plan import fleet_settings
from capplan.simulator.fleet.settings import FleetSettings
from capplan.specs.clients import POLICIES, AdmissionSpec, ClientsSpec, RouterSpec
from capplan.specs.fields import Spec
from capplan.specs.plan import Plan


class FleetOptions(NamedTuple):
    router: str | None = None
    client_timeout: str | None = None
    client_retries: str | None = None
    max_queue_depth: str | None = None


S = TypeVar("S", bound=Spec)


def fleet_of(
    options: FleetOptions, plan: Plan | None, num_replicas: int, inputs: Inputs
) -> FleetSettings:
    """Options win over the plan. Raises CapplanError."""
    clients = _laid(
        ClientsSpec,
        plan.clients if plan else None,
        {
            "timeout": (options.client_timeout, "--client-timeout"),
            "retries": (
                _whole(inputs, options.client_retries, "--client-retries"),
                "--client-retries",
            ),
        },
    )
    admission = _laid(
        AdmissionSpec,
        plan.admission if plan else None,
        {
            "max_queue_depth": (
                _whole(inputs, options.max_queue_depth, "--max-queue-depth"),
                "--max-queue-depth",
            )
        },
    )
    if options.router is not None and options.router not in POLICIES:
        hint = did_you_mean(options.router[:40], POLICIES) or f"one of: {', '.join(POLICIES)}"
        raise CapplanError(f"--router: `{options.router[:40]}` is not a router", hint=hint)
    router = _laid(
        RouterSpec,
        plan.router if plan else None,
        {"policy": (options.router, "--router")},
    )
    failures = plan.failures if plan else ()
    _assume(clients, admission, router, num_replicas, bool(failures), inputs)
    return fleet_settings(
        num_replicas, clients=clients, admission=admission, router=router, failures=failures
    )


def _whole(inputs: Inputs, text: str | None, option: str) -> int | None:
    return None if text is None else inputs.whole(option, text, least=0)


def _laid(kind: type[S], planned: S | None, options: Mapping[str, tuple[Any, str]]) -> S | None:
    """The section with the options that were given; None where nobody said anything."""
    given = {name: value for name, (value, _) in options.items() if value is not None}
    if not given:
        return planned
    try:
        laid = kind.model_validate(given)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        original = fault.get("ctx", {}).get("error")
        option = options[str(fault["loc"][0])][1]
        if isinstance(original, QuantityError):
            raise CapplanError(f"{option}: {original.message}", hint=original.hint) from None
        raise CapplanError(f"{option}: {fault['msg'].lower()}") from None
    # Not checked as a whole: that a field says nothing any more is no fault of the option.
    values = {name: getattr(laid, name) for name in given}
    return planned.model_copy(update=values) if planned else laid


def _assume(
    clients: ClientsSpec | None,
    admission: AdmissionSpec | None,
    router: RouterSpec | None,
    num_replicas: int,
    fails: bool,
    inputs: Inputs,
) -> None:
    """What the sections leave open and what matters to this run."""
    said = router.model_fields_set if router else set()
    router = router or RouterSpec()
    if num_replicas > 1 and "policy" not in said:
        inputs.assume("router", router.policy, "--router")
    if num_replicas > 1 and router.policy == "prefix-aware":
        for field in ("cache_threshold", "balance_abs_threshold", "balance_rel_threshold"):
            if field not in said:
                inputs.assume(field, f"{getattr(router, field):g}", f"plan: router.{field}")
    if fails and "health_check_interval" not in said:
        seconds = units.format_duration(router.health_check_interval)
        inputs.assume("health check every", seconds, "plan: router.health_check_interval")
    if clients is not None:
        _assume_clients(clients, inputs)
    if admission is not None and "retry_after" not in admission.model_fields_set:
        inputs.assume("Retry-After", "none", "plan: admission.retry_after")


def _assume_clients(clients: ClientsSpec, inputs: Inputs) -> None:
    said = clients.model_fields_set
    if clients.timeout is not None and "timeout_on" not in said:
        inputs.assume("clients wait for", "the first token", "plan: clients.timeout_on")
    if clients.timeout is not None and "cancels" not in said:
        inputs.assume("clients who leave", "are dropped", "plan: clients.cancels")
    if clients.retries and "backoff" not in said:
        inputs.assume("pause before a retry", "none", "plan: clients.backoff")
