"""What surrounds the replicas of a plan: impatient clients, admission, the router, failures."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, Strict, model_validator

from capplan.specs.fields import Count, CountOrZero, Flag, Spec, SpecError
from capplan.specs.rates import Span, SpanOrZero

Attempts = Annotated[int, Strict(), Field(ge=0, le=100)]
Ratio = Annotated[float, Strict(), Field(ge=1, le=1000, allow_inf_nan=False)]
Share = Annotated[float, Strict(), Field(ge=0, le=1, allow_inf_nan=False)]
Trouble = Literal["timeout", "rejected", "failed"]
RouterPolicy = Literal[
    "round-robin", "random", "random-of-two", "least-requests", "least-kv", "prefix-aware"
]
POLICIES: tuple[str, ...] = get_args(RouterPolicy)


class ClientsSpec(Spec):
    """What a user does while an answer is late, and after a refusal."""

    timeout: Span | None = Field(default=None, description="From sending; then the user gives up.")
    timeout_on: Literal["ttft", "e2e"] = Field(
        default="ttft", description="What has to come in time: the first token, or the last."
    )
    retries: Attempts = Field(default=0, description="How often the same request is sent again.")
    retry_on: tuple[Trouble, ...] = ("timeout", "rejected", "failed")
    backoff: Literal["none", "fixed", "exponential"] = Field(
        default="none", description="Pause before an attempt: doubled each time if exponential."
    )
    backoff_base: SpanOrZero = 1.0
    backoff_max: SpanOrZero = 60.0
    jitter: Flag = Field(default=True, description="Exponential: drawn between 0 and the pause.")
    cancels: Flag = Field(
        default=True,
        description="The engine learns that the client has gone, and drops it.",
    )

    @model_validator(mode="after")
    def _needed(self) -> ClientsSpec:
        given = self.model_fields_set
        if self.timeout is None and (useless := given & {"timeout_on", "cancels"}):
            raise SpecError("says nothing without a `timeout`", min(useless))
        if not self.retries and (useless := given & {"retry_on", "backoff"}):
            raise SpecError("says nothing without `retries`", min(useless))
        if self.backoff == "none" and (useless := given & {"backoff_base", "backoff_max"}):
            hint = "add `backoff: exponential` or `backoff: fixed`"
            raise SpecError("says nothing without a `backoff`", min(useless), hint=hint)
        if self.backoff == "exponential" and self.backoff_max < self.backoff_base:
            raise SpecError("is below `backoff_base`", "backoff_max")
        return self


class AdmissionSpec(Spec):
    """When a replica answers 429 instead of queueing a request."""

    max_queue_depth: CountOrZero | None = Field(
        default=None, description="Requests that may wait at a replica."
    )
    max_queue_wait: SpanOrZero | None = Field(
        default=None,
        description="Estimated: requests waiting x gap between the last finishes.",
    )
    max_concurrency: Count | None = Field(
        default=None, description="Requests that may be in a replica, waiting and running."
    )
    retry_after: SpanOrZero = Field(
        default=0.0, description="Sent along; clients wait at least as long."
    )


class RouterSpec(Spec):
    """How a replica is chosen. `prefix-aware` is the cache-aware rule of the SGLang router."""

    policy: RouterPolicy = "least-requests"
    health_check_interval: SpanOrZero = Field(
        default=5.0, description="Only at these times does the router learn who is down or back."
    )
    cache_threshold: Share = Field(
        default=0.3, description="Prefix-aware: share of the prompt that has to match."
    )
    balance_abs_threshold: CountOrZero = Field(
        default=64, description="Prefix-aware: loads are uneven above this difference ..."
    )
    balance_rel_threshold: Ratio = Field(
        default=1.5, description="... and this ratio, most to fewest."
    )

    @model_validator(mode="after")
    def _of_the_policy(self) -> RouterSpec:
        own = {"cache_threshold", "balance_abs_threshold", "balance_rel_threshold"}
        if self.policy != "prefix-aware" and (useless := self.model_fields_set & own):
            hint = "it belongs to `policy: prefix-aware`"
            raise SpecError(f"says nothing to `{self.policy}`", min(useless), hint=hint)
        return self


class FailureSpec(Spec):
    """A replica dies with all it holds, and comes back empty after `down_for`, or never."""

    replica: CountOrZero = Field(description="Counted from 0.")
    at: SpanOrZero
    down_for: Span | None = None
