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
    """At most four changes after which it fits; nothing where it does already.

    Where not one sequence of the context is held, holding one is what is looked for (the engine
    may then have to be told a shorter maximum length, which is said); else, that the engine
    starts with its maximum length.
    """
    if starts(question):
        return ()
    goal = starts if holds(question) else holds
    flags = list(islice(_flags(question, goal), _MOST_FLAGS))
    found = [*flags, *_more_gpus(question, goal)]
    if len(found) < MOST:
        found += _other_gpu(question, goal)
    return tuple(found[:MOST])


def holds(question: KvQuestion) -> bool:
    """A sequence of the context fits."""
    return question.deployment.pool.num_sequences(question.context_tokens) > 0


def starts(question: KvQuestion) -> bool:
    """The engine's start-up check passes, too."""
    return question.deployment.starts and holds(question)


def _with(question: KvQuestion, **changes: object) -> KvQuestion:
    return replace(question, engine=replace(question.engine, **changes))  # type: ignore[arg-type]


def _flags(question: KvQuestion, goal: Goal) -> Iterator[Suggestion]:
    """Changes of one flag on the same GPUs: what costs least is first."""
    yield from _shorter(question)
    if question.engine.reserve_bytes is None:
        yield from _fewer(question, goal)
    yield from _larger_share(question, goal)
    yield from _smaller_kv(question, goal)
    yield from _smaller_weights(question, goal)


def _shorter(question: KvQuestion) -> Iterator[Suggestion]:
    here = question.deployment
    most = here.pool.max_model_len
    longest = here.longest(most)
    shorter = 0 < longest < most and longest >= question.context_tokens
    if shorter and starts(_with(question, max_model_len=longest)):
        yield Suggestion("--max-model-len", str(longest), "the longest request that fits")
    elif longest < most and _whole_prompts(question):
        powers = (2**i for i in reversed(range(most.bit_length())) if 2**i < most)
        tried = (n for n in powers if n >= question.context_tokens)
        fits = next((n for n in tried if starts(_with(question, max_model_len=n))), None)
        if fits is not None:
            yield Suggestion("--max-model-len", str(fits), "a step then carries shorter prompts")


def _whole_prompts(question: KvQuestion) -> bool:
    """A step must take the longest prompt whole, so that its length decides the activation peak."""
    defaults = question.engine.profile.defaults
    return not defaults.chunks(question.deployment.pool.max_model_len)


def _fewer(question: KvQuestion, goal: Goal) -> Iterator[Suggestion]:
    """A smaller activation peak."""
    budget = question.deployment.budget
    for name, values, now, why in (
        ("max_num_batched_tokens", _FEWER_TOKENS, budget.max_num_batched_tokens,
         "smaller chunks of prefill"),
        ("max_num_seqs", _FEWER_SEQS, budget.max_num_seqs, "fewer rows of logits to profile"),
    ):  # fmt: skip
        if name == "max_num_batched_tokens" and _whole_prompts(question):
            continue  # the engine refuses fewer than its longest prompt
        value = _first(question, goal, name, values, now)
        if value is not None:
            outcome = _outcome(_with(question, **{name: value}), why)
            yield Suggestion(f"--{name.replace('_', '-')}", str(value), outcome)


def _first(
    question: KvQuestion, goal: Goal, name: str, values: tuple[int, ...], below: int
) -> int | None:
    """The largest of the values with which it fits."""
    tried = (value for value in values if value < below)
    return next((v for v in tried if goal(_with(question, **{name: v}))), None)


def _larger_share(question: KvQuestion, goal: Goal) -> Iterator[Suggestion]:
    budget = question.deployment.budget
    if budget.memory_share_option != "gpu_memory_utilization":
        return
    for share in _SHARES:
        changed = _with(question, memory_share=share)
        if share > budget.memory_share and goal(changed):
            yield Suggestion(
                "--gpu-memory-utilization", f"{share:g}",
                _outcome(changed, "leaves less for whatever else runs there"),
            )  # fmt: skip
            return


def _smaller_kv(question: KvQuestion, goal: Goal) -> Iterator[Suggestion]:
    kv_dtype = question.engine.kv_dtype
    if kv_dtype == PACKED_MLA or FORMATS[kv_dtype].bits <= 8:
        return
    changed = _with(question, kv_dtype="fp8")
    if goal(changed):
        yield Suggestion("--kv-dtype", "fp8", _outcome(changed, "half the KV a token"))


def _smaller_weights(question: KvQuestion, goal: Goal) -> Iterator[Suggestion]:
    for dtype in smaller_formats(question):
        changed = _with(question, dtype=dtype, edition=None)
        if not _divides(changed) or not goal(changed):
            continue
        weights = units.format_bytes(
            changed.deployment.budget.size("weights"), binary=True, digits=3
        )
        yield Suggestion("--dtype", dtype, _outcome(changed, f"{weights} of weights a GPU"))
        return


def _more_gpus(question: KvQuestion, goal: Goal) -> Iterator[Suggestion]:
    """The smallest number of GPUs that holds it; and that which holds the longest request."""
    engine = question.engine
    for tp, pp in more_gpus(question.model, question.hardware, engine):
        changed = _with(question, tp=tp, pp=pp)
        if not goal(changed):
            continue
        words = [f"--tp {tp}"] if tp != (engine.tp or 1) else []
        words += [f"--pp {pp}"] if pp != engine.pp else []
        option, _, value = " ".join(words).partition(" ")
        num = changed.deployment.num_gpus
        yield Suggestion(option, value, _outcome(changed, f"{num} GPUs"))
        if starts(changed):
            return
        goal = starts


def _other_gpu(question: KvQuestion, goal: Goal) -> Iterator[Suggestion]:
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
        if _divides(changed) and goal(changed):
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
    """Why it helps, what then fits, and what else must be said to the engine."""
    here, context = changed.deployment, changed.context_tokens
    low, num, high = (
        changed.engine.dp * pool.num_sequences(context)
        for pool in (here.least_pool, here.pool, here.most_pool)
    )
    between = "" if low == high else f" ({low:,} to {high:,})"
    sequences = f"1 sequence of {context:,} fits" if num == 1 else f"{num:,} of {context:,} fit"
    text = f"{why}; {sequences}{between}"
    if here.starts:
        return text
    return f"{text}, started with --max-model-len {here.longest(here.pool.max_model_len)}"
