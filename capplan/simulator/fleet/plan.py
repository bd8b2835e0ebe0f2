"""The sections of a plan as settings of the driver."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from capplan.simulator.fleet.settings import (
    Admission,
    Clients,
    Failure,
    FleetSettings,
    Routing,
    Trouble,
)
from capplan.specs.clients import AdmissionSpec, ClientsSpec, FailureSpec, RouterSpec
from capplan.specs.fields import SpecError

TROUBLES: dict[str, Trouble] = {
    "timeout": "timed out",
    "rejected": "rejected",
    "failed": "failed",
}


def fleet_settings(
    num_replicas: int,
    *,
    clients: ClientsSpec | None = None,
    admission: AdmissionSpec | None = None,
    router: RouterSpec | None = None,
    failures: Sequence[FailureSpec] = (),
    seed: int = 0,
) -> FleetSettings:
    """Sections that are not given are patient clients, no limits, `RouterSpec`'s defaults."""
    return FleetSettings(
        num_replicas=num_replicas,
        clients=_clients(clients or ClientsSpec()),
        admission=_admission(admission or AdmissionSpec()),
        routing=_routing(router or RouterSpec()),
        failures=tuple(_failure(failure) for failure in failures),
        seed=seed,
    )


def check_failures(failures: Sequence[FailureSpec], num_replicas: int) -> None:
    """Raises SpecError, with the path from the plan, for failures that cannot be."""
    up_from: dict[int, float] = {}
    for index, failure in sorted(enumerate(failures), key=lambda entry: entry[1].at):
        path = ("failures", index)
        if failure.replica >= num_replicas:
            hint = f"there are {num_replicas}, counted from 0"
            raise SpecError("is no replica of this plan", *path, "replica", hint=hint)
        if failure.at <= up_from.get(failure.replica, -1.0):
            raise SpecError(f"is while replica {failure.replica} is down", *path, "at")
        up_from[failure.replica] = (
            inf if failure.down_for is None else failure.at + failure.down_for
        )


def _clients(spec: ClientsSpec) -> Clients:
    return Clients(
        timeout_s=inf if spec.timeout is None else spec.timeout,
        timeout_on=spec.timeout_on,
        retries=spec.retries,
        retry_on=tuple(TROUBLES[trouble] for trouble in spec.retry_on),
        backoff=spec.backoff,
        backoff_s=spec.backoff_base,
        backoff_max_s=spec.backoff_max,
        jitter=spec.jitter,
        cancels=spec.cancels,
    )


def _admission(spec: AdmissionSpec) -> Admission:
    def limit(value: float | None) -> float:
        return inf if value is None else value

    return Admission(
        max_queue_depth=limit(spec.max_queue_depth),
        max_queue_wait_s=limit(spec.max_queue_wait),
        max_concurrency=limit(spec.max_concurrency),
        retry_after_s=spec.retry_after,
    )


def _routing(spec: RouterSpec) -> Routing:
    return Routing(
        policy=spec.policy,
        health_check_interval_s=spec.health_check_interval,
        cache_threshold=spec.cache_threshold,
        balance_abs_threshold=spec.balance_abs_threshold,
        balance_rel_threshold=spec.balance_rel_threshold,
    )


def _failure(spec: FailureSpec) -> Failure:
    down_for = inf if spec.down_for is None else spec.down_for
    return Failure(spec.replica, spec.at, spec.at + down_for)
