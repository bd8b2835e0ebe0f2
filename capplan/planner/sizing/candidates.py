"""One kind of replica as it answers a question: its bounds, before any simulation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from capplan import units
from capplan.planner.question import Question
from capplan.planner.replica import MeanStep
from capplan.planner.serving import Serving
from capplan.planner.sizing.served import ServedReplica
from capplan.results.sizing import Kind


@dataclass(frozen=True)
class Candidate:
    """One kind of replica: the question as it answers it, and how it is served."""

    question: Question
    serving: Serving
    slo_e2e_s: float | None
    own_prompt_tokens: float | None = None  # those that a prefix cache cannot save

    @property
    def gpus_per_replica(self) -> int:
        return self.serving.deployment.num_gpus

    @cached_property
    def replica(self) -> ServedReplica:
        """A bound: what may be found in the cache is."""
        question = self.question
        if self.own_prompt_tokens is not None and self.serving.config.enable_prefix_caching:
            own = max(1, round(self.own_prompt_tokens))
            question = replace(question, workload=replace(question.workload, prompt_tokens=own))
        return ServedReplica(question, self.serving, self.slo_e2e_s)

    @cached_property
    def best(self) -> MeanStep | None:
        return self.replica.best_mean_step()

    @property
    def bound_per_s(self) -> float:
        """What one replica carries on average within the limits, at most."""
        return self.best.requests_per_s if self.best is not None else 0.0

    @cached_property
    def saturation_per_s(self) -> float:
        """Requests a second of one replica with every seat taken: no limits, no queue."""
        return self.replica.mean_step(float(self.replica.max_sequences)).requests_per_s

    @cached_property
    def bound_limit(self) -> str:
        """The limit that a slightly larger batch breaks."""
        if self.best is None:
            return self.replica.fault() or "kv_memory"
        return self.replica.limit_beyond(self.best)

    @cached_property
    def collective_fraction(self) -> float:
        """Of a decode step at the bound."""
        batch = max(1.0, self.best.decode_batch if self.best is not None else 1.0)
        context = self.question.workload.decode_context_tokens
        reads = self.replica.steps.uniform_reads(batch, context)
        step = self.replica.steps.decode(batch, reads)
        return step.collective_s / step.total_s

    def why_not(self, fault: str) -> tuple[str, str | None]:
        """The reason why no rate is possible, and what to say of it: how far a lone request is.

        ``interconnect`` where it would keep the limit but for the collectives.
        """
        question, replica = self.question, self.replica
        if fault == "tpot":
            reads = replica.steps.uniform_reads(1.0, question.workload.decode_context_tokens)
            steps = [(1, replica.steps.decode(1.0, reads))]
            limit_s = question.limits.slo_tpot_s
        elif fault == "ttft":
            steps, limit_s = replica.prefill_steps(0.0), question.limits.slo_ttft_s
        else:
            return fault, None
        linked_s = sum(times * step.collective_s for times, step in steps)
        whole_s = sum(times * step.total_s for times, step in steps)
        linked, whole = (units.format_duration(t, digits=3) for t in (linked_s, whole_s))
        if whole_s - linked_s <= limit_s < whole_s:
            words = f"collectives take {linked} of the {whole} of {fault.upper()} alone"
            return "interconnect", words
        return fault, f"{whole} alone"

    def facts(self, reason: str | None = None, words: str | None = None) -> Kind:
        """What is known of it before any simulation."""
        return kind_of(
            self.question.hardware_id,
            self.serving,
            reason,
            words,
            None if self.best is None else self.bound_per_s,
            None if self.best is None else self.collective_fraction,
        )


def kind_of(
    hardware_id: str,
    serving: Serving,
    reason: str | None,
    words: str | None,
    bound_per_s: float | None = None,
    collective_fraction: float | None = None,
) -> Kind:
    """A kind that was not simulated (yet)."""
    deployment = serving.deployment
    engine = deployment.engine
    known = reason is None or bound_per_s is not None
    config = serving.config if known and reason not in ("weights", "kv_memory") else None
    return Kind(
        hardware=hardware_id,
        tp=deployment.tp,
        pp=engine.pp,
        dp=engine.dp,
        ep=serving.ep,
        dtype=engine.dtype or deployment.model.stored_format,
        kv_dtype=engine.kv_dtype,
        max_num_seqs=config.max_num_seqs // engine.dp if config else engine.max_num_seqs,
        max_num_batched_tokens=config.max_num_batched_tokens // engine.dp
        if config
        else engine.max_num_batched_tokens,
        enable_prefix_caching=config.enable_prefix_caching
        if config
        else engine.enable_prefix_caching,
        gpus_per_replica=deployment.num_gpus,
        bound_requests_per_s=bound_per_s,
        collective_fraction=collective_fraction,
        reason=reason,
        words=words,
        sustained=None,
        num_replicas=None,
        num_gpus=None,
        num_gpus_rounded=None,
        usd_per_hour=None,
        peak_power_w=None,
        e2e_s=None,
    )
