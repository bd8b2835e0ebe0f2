"""What makes a model fit: single changes, each tried with the same budget, nearest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from capplan import units
from capplan.errors import CapplanError
from capplan.formulas.number_formats import FORMATS
from capplan.planner.kv import KvQuestion, smaller_formats
from capplan.planner.kv_split import check_split, more_gpus
from capplan.results.gpus import Suggestion
from capplan.specs.catalogue import load_all
from capplan.specs.hardware import HardwareSpec
from capplan.specs.kv_cache import PACKED_MLA

MOST = 4
_MOST_FLAGS = 3  # one place is kept for more GPUs
_SHARES = (0.92, 0.95)
_FEWER_TOKENS = (4096, 2048, 1024, 512)
_FEWER_SEQS = (256, 128, 64, 32, 16)
Goal = Callable[[KvQuestion], bool]


def advise(question: KvQuestion) -> tuple[Suggestion, ...]:
    """At most four changes after which the engine starts and holds a sequence of the context.

    Nothing where it does so already. A change of the maximum length does not help where the user
    asked for that length.
    """
    if starts(question):
        return ()
    flags = list(islice(_flags(question), _MOST_FLAGS))
    found = [*flags, *_more_gpus(question)]
    return tuple(islice((*found, *_other_gpu(question)) if len(found) < MOST else found, MOST))


def starts(question: KvQuestion) -> bool:
    """The engine's start-up check passes, and one sequence of the context is held."""
    pool = question.deployment.pool
    return pool.starts(pool.max_model_len) and pool.num_sequences(question.context_tokens) > 0


def _with(question: KvQuestion, **changes: object) -> KvQuestion:
    return replace(question, engine=replace(question.engine, **changes))  # type: ignore[arg-type]


def _flags(question: KvQuestion) -> Iterator[Suggestion]:
    """Changes of one flag on the same GPUs: what costs least is first."""
    yield from _shorter(question)
    if question.engine.reserve_bytes is None:
        yield from _fewer(question)
    yield from _larger_share(question)
    yield from _smaller_kv(question)
    yield from _smaller_weights(question)


def _shorter(question: KvQuestion) -> Iterator[Suggestion]:
    pool = question.deployment.pool
    longest = pool.longest(pool.max_model_len)
    shorter = 0 < longest < pool.max_model_len and longest >= question.context_tokens
    if shorter and starts(_with(question, max_model_len=longest)):
        yield Suggestion("--max-model-len", str(longest), "the longest request that fits")


def _fewer(question: KvQuestion) -> Iterator[Suggestion]:
    """A smaller activation peak."""
    budget = question.deployment.budget
    if (tokens := _first(question, "max_num_batched_tokens", _FEWER_TOKENS,
                         below=budget.max_num_batched_tokens)):  # fmt: skip
        yield Suggestion("--max-num-batched-tokens", str(tokens), _outcome(
            _with(question, max_num_batched_tokens=tokens), "prefill in smaller chunks"
        ))  # fmt: skip
    if seqs := _first(question, "max_num_seqs", _FEWER_SEQS, below=budget.max_num_seqs):
        yield Suggestion("--max-num-seqs", str(seqs), _outcome(
            _with(question, max_num_seqs=seqs), "fewer rows of logits to profile"
        ))  # fmt: skip


def _first(question: KvQuestion, name: str, values: tuple[int, ...], *, below: int) -> int | None:
    """The largest of the values with which it fits."""
    tried = (value for value in values if value < below)
    return next((v for v in tried if starts(_with(question, **{name: v}))), None)


def _larger_share(question: KvQuestion) -> Iterator[Suggestion]:
    budget = question.deployment.budget
    if budget.memory_share_option != "gpu_memory_utilization":
        return
    for share in _SHARES:
        changed = _with(question, memory_share=share)
        if share > budget.memory_share and starts(changed):
            yield Suggestion(
                "--gpu-memory-utilization", f"{share:g}",
                _outcome(changed, "leaves less for whatever else runs there"),
            )  # fmt: skip
            return


def _smaller_kv(question: KvQuestion) -> Iterator[Suggestion]:
    kv_dtype = question.engine.kv_dtype
    if kv_dtype == PACKED_MLA or FORMATS[kv_dtype].bits <= 8:
        return
    changed = _with(question, kv_dtype="fp8")
    if starts(changed):
        yield Suggestion("--kv-dtype", "fp8", _outcome(changed, "half the KV a token"))


def _smaller_weights(question: KvQuestion) -> Iterator[Suggestion]:
    for dtype in smaller_formats(question):
        changed = _with(question, dtype=dtype, edition=None)
        if not _divides(changed) or not starts(changed):
            continue
        weights = units.format_bytes(
            changed.deployment.budget.size("weights"), binary=True, digits=3
        )
        yield Suggestion("--dtype", dtype, _outcome(changed, f"{weights} of weights a GPU"))
        return


def _more_gpus(question: KvQuestion) -> Iterator[Suggestion]:
    """The smallest number of GPUs that holds it."""
    for tp, pp in more_gpus(question.model, question.hardware, question.engine):
        changed = _with(question, tp=tp, pp=pp)
        if not starts(changed):
            continue
        option, value = ("--tp", str(tp)) if tp != (question.engine.tp or 1) else ("--pp", str(pp))
        if option == "--tp" and pp != question.engine.pp:
            value = f"{tp} --pp {pp}"
        yield Suggestion(option, value, _outcome(changed, f"{changed.deployment.num_gpus} GPUs"))
        return


def _other_gpu(question: KvQuestion) -> Iterator[Suggestion]:
    """The accelerator with the least memory that holds it in the same shape."""
    if question.engine.gpu_memory_bytes is not None:
        return
    larger = sorted(
        (
            found
            for found in load_all(HardwareSpec, "hardware")
            if found.spec.visible_memory_bytes > question.hardware.visible_memory_bytes
            and found.spec.vendor == question.hardware.vendor
        ),
        key=lambda found: (found.spec.visible_memory_bytes, found.id),
    )
    for found in larger:
        changed = replace(question, hardware_id=found.id, hardware=found.spec)
        if _divides(changed) and starts(changed):
            size = units.format_bytes(found.spec.visible_memory_bytes, binary=True, digits=3)
            yield Suggestion("--hardware", found.id, _outcome(changed, f"{size} to see"))
            return


def _divides(question: KvQuestion) -> bool:
    try:
        check_split(question.model, question.hardware, question.engine)
    except CapplanError:
        return False
    return True


def _outcome(changed: KvQuestion, why: str) -> str:
    """Why it helps, and what then fits."""
    num = changed.deployment.num_sequences(changed.context_tokens)
    sequences = "1 sequence" if num == 1 else f"{num:,} sequences"
    verb = "fits" if num == 1 else "fit"
    return f"{why}; {sequences} of {changed.context_tokens:,} {verb}"
