"""What is tried: every kind of replica that a question allows, and why some cannot serve it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from capplan import units
from capplan.errors import CapplanError, UnsupportedError
from capplan.performance.kv_engine import Deployment, KvEngine
from capplan.planner.parallelism import (
    allowed_tps,
    check_tp,
    link_fault,
    linked_gpus,
    num_experts,
    repeats_kv,
    tp_fault,
)
from capplan.planner.question import Question
from capplan.planner.serving import Serving
from capplan.planner.sizing.candidates import Candidate, kind_of
from capplan.planner.sizing.one_pool import simplified
from capplan.planner.sizing.plans import BEYOND_LINKS
from capplan.results.sizing import Kind


@dataclass(frozen=True)
class SearchSpace:
    """Values of each setting that are tried; None stands for the engine's own default.

    ``tps`` None: every degree that the model and the accelerator allow.
    """

    tps: tuple[int, ...] | None = None
    pps: tuple[int, ...] = (1,)
    eps: tuple[bool, ...] = (False,)  # experts spread over the TP group
    # Copies of the attention that share the experts; None: one a GPU where TP would repeat KV.
    dps: tuple[int, ...] | None = None
    dtypes: tuple[str | None, ...] = (None,)
    kv_dtypes: tuple[str, ...] = ()
    max_num_seqs: tuple[int | None, ...] = (None,)
    max_num_batched_tokens: tuple[int | None, ...] = (None,)
    prefix_caching: tuple[bool | None, ...] = (None,)


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
            candidate = _candidate(question, serving, slo_e2e_s, own_prompt_tokens)
        except UnsupportedError as error:
            ranks = serving.deployment.tp * serving.deployment.engine.dp
            words = link_fault(question.hardware, ranks)
            reason = "interconnect" if words else "unsupported"
            if words:
                words = f"{BEYOND_LINKS} {linked_gpus(question.hardware)}"
            kind = kind_of(question.hardware_id, serving, reason, words or error.message)
            shape = (kind.tp, kind.dp, words)
            if not words or all(shape != (one.tp, one.dp, one.words) for one in refused):
                refused.append(kind)  # what no link joins is the same with other settings
            continue
        except CapplanError as error:
            reason, words = _memory_fault(serving, error)
            refused.append(kind_of(question.hardware_id, serving, reason, words))
            continue
        fault = candidate.replica.fault()
        if fault is not None or candidate.best is None:
            refused.append(candidate.facts(*candidate.why_not(fault or "kv_memory")))
            if fault in ("ttft", "tpot", "e2e"):
                slow.append(candidate)
        else:
            found.append(candidate)
    return Kinds(found, slow, refused)


def _servings(
    question: Question, model_id: str, engine: KvEngine, space: SearchSpace
) -> Iterator[Serving]:
    model, hardware = question.model, question.hardware
    for (tp, dp, ep), pp, dtype, kv, seqs, budget, caching in product(
        _shapes(question, space), space.pps, space.dtypes, space.kv_dtypes or (engine.kv_dtype,),
        space.max_num_seqs, space.max_num_batched_tokens, space.prefix_caching,
    ):  # fmt: skip
        own = replace(
            engine,
            pp=pp,
            dp=dp,
            dtype=dtype,
            kv_dtype=kv,
            max_num_seqs=seqs if seqs is not None else engine.max_num_seqs,
            max_num_batched_tokens=budget if budget is not None else engine.max_num_batched_tokens,
            enable_prefix_caching=caching if caching is not None else engine.enable_prefix_caching,
        )
        deployment = Deployment(model, hardware, own, tp)
        yield Serving(
            model_id, question.hardware_id, deployment, 1, ep=ep,
            calibration=question.calibration,
        )  # fmt: skip


def _shapes(question: Question, space: SearchSpace) -> list[tuple[int, int, int]]:
    """(TP, copies of the attention, ranks that share the experts)."""
    model, hardware = question.model, question.hardware
    tps: Sequence[int] = space.tps or allowed_tps(model, hardware)
    found: list[tuple[int, int, int]] = []
    for tp, dp, spread in product(tps, space.dps or (1,), space.eps):
        if dp > 1:
            found.append((tp, dp, tp * dp))
        elif not spread or (model.has_experts and tp > 1):
            found.append((tp, 1, tp if spread else 1))
    if space.tps is None:
        if space.dps is None and repeats_kv(model):
            found += [(1, dp, dp) for dp in tps if 1 < dp <= num_experts(model)]
        beyond = 2 * max(tps, default=1)
        if link_fault(hardware, beyond) and tp_fault(model, beyond) is None:
            found.append((beyond, 1, 1))  # said, not sized
    return list(dict.fromkeys(found))


def _candidate(
    question: Question, serving: Serving, slo_e2e_s: float | None, own_prompt_tokens: float | None
) -> Candidate:
    """Raises CapplanError for what cannot be served, UnsupportedError for what we cannot say."""
    deployment = serving.deployment
    check_tp(question.model, question.hardware, deployment.tp)
    serving = simplified(serving, question.workload.context_tokens)
    config = serving.config
    if config.max_model_len < question.workload.context_tokens:
        raise CapplanError(
            f"the KV pool holds {config.max_model_len:,} tokens of one request, which has "
            f"{question.workload.context_tokens:,}",
            hint="more GPUs a replica (--tp), --kv-dtype fp8, or shorter requests",
        )
    serving.steps  # noqa: B018 (raises where the accelerator does not compute the format)
    engine = replace(
        question.engine,
        dtype=deployment.engine.dtype,
        kv_dtype=deployment.engine.kv_dtype,
        tp=deployment.tp,
        max_num_batched_tokens=config.max_num_batched_tokens,
    )
    return Candidate(replace(question, engine=engine), serving, slo_e2e_s, own_prompt_tokens)


def _memory_fault(serving: Serving, error: CapplanError) -> tuple[str, str]:
    """The reason and what to say of it."""
    budget = serving.deployment.budget
    if budget.pool_bytes > 0:
        return "kv_memory", error.message
    weights = sum(term.likely_bytes for term in budget.terms if term.name == "weights")
    sizes = (
        units.format_bytes(size, binary=True, digits=3) for size in (weights, budget.visible_bytes)
    )
    return "weights", "{} a GPU, which has {}".format(*sizes)
