"""The kinds of replica that a question allows, and why some cannot serve it at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from capplan.errors import CapplanError, UnsupportedError
from capplan.performance.kv_engine import Deployment, KvEngine
from capplan.planner.parallelism import allowed_tps, check_tp
from capplan.planner.question import Question
from capplan.planner.replica import MeanStep
from capplan.planner.serving import Serving
from capplan.planner.sizing.one_pool import simplified
from capplan.planner.sizing.served import ServedReplica
from capplan.results.sizing import Kind


@dataclass(frozen=True)
class SearchSpace:
    """Values of each setting that are tried; None stands for the engine's own default.

    ``tps`` None: every degree that the model and the accelerator allow.
    """

    tps: tuple[int, ...] | None = None
    pps: tuple[int, ...] = (1,)
    eps: tuple[bool, ...] = (False,)  # experts spread over the TP group
    dtypes: tuple[str | None, ...] = (None,)
    kv_dtypes: tuple[str, ...] = ()
    max_num_seqs: tuple[int | None, ...] = (None,)
    max_num_batched_tokens: tuple[int | None, ...] = (None,)
    prefix_caching: tuple[bool | None, ...] = (None,)


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
        ep=serving.ep,
        dtype=engine.dtype or deployment.model.stored_format,
        kv_dtype=engine.kv_dtype,
        max_num_seqs=config.max_num_seqs if config else engine.max_num_seqs,
        max_num_batched_tokens=config.max_num_batched_tokens
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


@dataclass(frozen=True)
class Kinds:
    """``able`` could serve the question, ``slow`` hold the model but no limit, of ``refused``."""

    able: list[Candidate]
    slow: list[Candidate]
    refused: list[Kind]


def candidates_of(
    question: Question,
    model_id: str,
    engine: KvEngine,
    space: SearchSpace,
    slo_e2e_s: float | None = None,
    own_prompt_tokens: float | None = None,
) -> Kinds:
    """Kinds that could serve the question, and those that cannot with their reasons."""
    found: list[Candidate] = []
    slow: list[Candidate] = []
    refused: list[Kind] = []
    for serving in _servings(question, model_id, engine, space):
        try:
            candidate = replace(
                _candidate(question, serving, slo_e2e_s), own_prompt_tokens=own_prompt_tokens
            )
        except UnsupportedError as error:
            refused.append(kind_of(question.hardware_id, serving, "unsupported", error.message))
            continue
        except CapplanError as error:
            reason = _memory_reason(serving)
            refused.append(kind_of(question.hardware_id, serving, reason, error.message))
            continue
        fault = candidate.replica.fault()
        if fault is not None or candidate.best is None:
            refused.append(candidate.facts(fault or "kv_memory"))
            if fault in ("ttft", "tpot", "e2e"):
                slow.append(candidate)
        else:
            found.append(candidate)
    return Kinds(found, slow, refused)


def _servings(
    question: Question, model_id: str, engine: KvEngine, space: SearchSpace
) -> Iterator[Serving]:
    model, hardware = question.model, question.hardware
    tps: Sequence[int] = space.tps or allowed_tps(model, hardware)
    for tp, pp, spread, dtype, kv, seqs, budget, caching in product(
        tps, space.pps, space.eps, space.dtypes, space.kv_dtypes or (engine.kv_dtype,),
        space.max_num_seqs, space.max_num_batched_tokens, space.prefix_caching,
    ):  # fmt: skip
        if spread and (not model.has_experts or tp == 1):
            continue
        own = replace(
            engine,
            pp=pp,
            dtype=dtype,
            kv_dtype=kv,
            max_num_seqs=seqs if seqs is not None else engine.max_num_seqs,
            max_num_batched_tokens=budget if budget is not None else engine.max_num_batched_tokens,
            enable_prefix_caching=caching if caching is not None else engine.enable_prefix_caching,
        )
        deployment = Deployment(model, hardware, own, tp)
        yield Serving(
            model_id, question.hardware_id, deployment, 1, ep=tp if spread else 1,
            calibration=question.calibration,
        )  # fmt: skip


def _candidate(question: Question, serving: Serving, slo_e2e_s: float | None) -> Candidate:
    """Raises CapplanError for what cannot be served, UnsupportedError for what we cannot say."""
    deployment = serving.deployment
    check_tp(question.model, question.hardware, deployment.tp)
    serving = simplified(serving, question.workload.context_tokens)
    config = serving.config
    if config.max_model_len < question.workload.context_tokens:
        raise CapplanError(
            f"the KV pool holds {config.max_model_len:,} tokens of one request, which has "
            f"{question.workload.context_tokens:,}"
        )
    serving.steps  # noqa: B018 (raises where the accelerator does not compute the format)
    engine = replace(
        question.engine,
        dtype=deployment.engine.dtype,
        kv_dtype=deployment.engine.kv_dtype,
        tp=deployment.tp,
        max_num_batched_tokens=config.max_num_batched_tokens,
    )
    return Candidate(replace(question, engine=engine), serving, slo_e2e_s)


def _memory_reason(serving: Serving) -> str:
    return "weights" if serving.deployment.budget.pool_bytes <= 0 else "kv_memory"
