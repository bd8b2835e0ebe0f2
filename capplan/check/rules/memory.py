"""Does it fit: weights, one request of the longest length, and what is left."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.check.cases import Case
from capplan.check.rules.advice import first_advice
from capplan.check.rules.rule import Remark, rule
from capplan.check.rules.sizes import Room, first_room, gib, rooms
from capplan.units import GIB

_TIGHT_FRACTION = 0.12  # of the GPU's memory for KV
_UNUSED_SHARE = 0.75
_HIGH_SHARE = 0.95
_OUTSIDE_BYTES = 1.0 * GIB  # communicators, contexts of other processes, fragmentation


def _assumed(case: Case) -> tuple[str, ...]:
    notes = [case.model_note] if case.model_note else []
    if not case.version_known and case.profile is not None:
        notes.append(f"engine version unknown: {case.profile.name}")
    if case.deployment.partial:
        notes.append("what this file does not set, nothing else sets")
    if case.gpus is not None and len(case.gpus.names) > 1:
        notes.append(f"holds for each of {', '.join(case.gpus.names)}")
    return tuple(notes)


@rule("CP002", "weights-do-not-fit", "error", "the weights alone exceed the GPU's memory")
def weights_do_not_fit(case: Case) -> Iterator[Remark]:
    """An engine first loads the weights. Where they are larger than the share of the memory that
    it may use, it stops with an out-of-memory error, whatever the other settings are. Sizes are
    the sum of all tensors as this checkpoint stores them, per GPU of the split."""
    found = rooms(case)
    if case.deployment.partial or not found:
        return  # another file may quantise or split: CP004
    if any(_weights_fit(r) for r in found):
        return
    room = found[0]
    setup = room.setup
    yield Remark(
        f"{setup.model.name} takes {gib(room.weights_bytes)} of weights a GPU (TP {setup.tp} x "
        f"PP {setup.engine.pp}); {gib(room.share_bytes)} are there",
        case.deployment.flag("tp") or case.deployment.model,
        room.steps(),
        first_advice(case, room),
        _assumed(case),
    )


def _is_flat(room: Room) -> bool:
    """An engine or accelerator of which no logs are known: weights only."""
    return room.setup.engine.reserve_bytes is not None


def _weights_fit(room: Room) -> bool:
    return room.weights_bytes <= room.share_bytes + room.extra_bytes


@rule("CP003", "kv-below-one-sequence", "error", "the KV pool is smaller than one longest request")
def kv_below_one_sequence(case: Case) -> Iterator[Remark]:
    """vLLM refuses to start when its KV pool cannot hold one request of `max_model_len` tokens
    (which is the model's own context where it is not set). The pool is what the share of memory
    leaves after weights, activations and communicators; the best case of the logged range is
    taken, so that this is no matter of luck."""
    length = case.max_model_len
    found = rooms(case)
    if case.engine != "vllm" or length is None or not found or _is_flat(found[0]):
        return
    if case.deployment.partial:
        return
    if not all(
        _weights_fit(r) and not r.setup.checked(r.pool("high")).starts(length) for r in found
    ):
        return
    room = found[0]
    pool = room.setup.checked(room.pool("high"))
    one = pool.request_blocks(length) * pool.bytes_per_block
    where = "max_model_len" if case.deployment.flag("max_model_len") else "the model's context"
    yield Remark(
        f"one request of {length:,} tokens ({where}) needs {gib(one)} of KV on each GPU; at most "
        f"{gib(pool.available_bytes)} are left",
        case.deployment.flag("max_model_len") or case.deployment.model,
        (*room.steps(), f"one request of {length:,} tokens: {gib(one)}"),
        first_advice(case, room),
        _assumed(case),
    )


@rule("CP004", "tight-fit", "warning", "little memory is left for KV")
def tight_fit(case: Case) -> Iterator[Remark]:
    """A server whose weights fill its GPU starts, and then serves few requests at a time: their
    KV is what batches are made of. Also said where the pessimistic end of the logged range would
    not start at all, or where only another file could make it fit: a chart, a runtime, a base."""
    found = rooms(case)
    length = case.max_model_len
    if found and case.deployment.partial and not any(_weights_fit(r) for r in found):
        yield _too_large_alone(case, found[0])
        return
    if not found or length is None or _is_flat(found[0]):
        return
    room = found[0]
    likely, low = room.setup.checked(room.pool("likely")), room.setup.checked(room.pool("low"))
    high = room.setup.checked(room.pool("high"))
    if not _weights_fit(room) or likely.keeps_nothing:
        return
    share = likely.available_bytes / room.setup.visible_bytes
    risky = case.engine == "vllm" and high.starts(length) and not low.starts(length)
    if share >= _TIGHT_FRACTION and not risky:
        return
    if case.engine == "vllm" and not high.starts(length) and not case.deployment.partial:
        return  # CP003
    num = room.pool("likely").num_sequences(length)
    held = f"{num:,} request{'' if num == 1 else 's'} of {length:,} tokens"
    yield Remark(
        f"{gib(likely.available_bytes)} a GPU ({share:.0%} of its memory) are left for KV: {held}"
        + ("; it may not start at all" if risky or num < 1 else ""),
        case.deployment.flag("memory_share") or case.deployment.flag("max_model_len"),
        room.steps(),
        first_advice(case, room) or "use more GPUs a replica, smaller weights or an 8-bit KV cache",
        _assumed(case),
    )


def _too_large_alone(case: Case, room: Room) -> Remark:
    return Remark(
        f"{room.setup.model.name} takes {gib(room.weights_bytes)} of weights a GPU, and "
        f"{gib(room.share_bytes)} are there, unless another file quantises or splits it",
        case.deployment.flag("memory_share") or case.deployment.model,
        room.steps(),
        first_advice(case, room),
        _assumed(case),
    )


@rule("CP012", "utilisation-too-high", "warning", "too little memory is left outside the engine")
def utilisation_too_high(case: Case) -> Iterator[Remark]:
    """What `gpu_memory_utilization` leaves free is not spare: CUDA graphs (before vLLM 0.21 they
    are captured outside of it), communicators, fragmentation and any other process on the GPU
    live there. Above 0.95 a server that starts today fails after the next driver or image."""
    flag = case.deployment.flag("memory_share")
    share = case.deployment.number("memory_share")
    if case.engine not in ("vllm", "sglang") or flag is None or share is None or share > 1:
        return
    spec = case.hardware
    limit = 0.88 if case.engine == "sglang" else _HIGH_SHARE
    if spec is None:
        if share > _HIGH_SHARE:
            text = f"{share:g} leaves {1 - share:.0%} of the GPU for CUDA graphs, communicators"
            step = f"1 - {share:g} = {1 - share:g}"
            yield Remark(f"{text} and fragmentation", flag, (step,), f"set it to {limit:g} or less")
        return
    visible = (case.gpus.memory_bytes if case.gpus else None) or spec.visible_memory_bytes
    left = visible * (1 - share)
    needed, steps = _outside(case)
    if share <= _HIGH_SHARE and (case.engine == "sglang" or left >= needed):
        return
    best = min(limit, max(0.5, int(100 * (1 - needed / visible)) / 100))
    against = "which needs" if left < needed else "a thin margin over the"
    yield Remark(
        f"{share:g} leaves {gib(left)} a GPU outside of the engine, {against} {gib(needed)}"
        + ("" if left < needed else " that it needs"),
        flag,
        (f"{gib(visible)} x (1 - {share:g}) = {gib(left)}", *steps),
        f"set it to {best:g} or less",
        _assumed(case),
    )


def _outside(case: Case) -> tuple[float, list[str]]:
    """What lives in the memory that the share leaves free, about, and of what it is made."""
    steps = [f"communicators, other contexts, fragmentation: about {gib(_OUTSIDE_BYTES)}"]
    graphs = case.profile.memory.cuda_graphs if case.profile is not None else None
    eager = case.deployment.flag("enforce_eager")
    if graphs is None or graphs.subtracted or (eager is not None and eager.switch):
        return _OUTSIDE_BYTES, steps
    steps.append(f"CUDA graphs: {gib(graphs.likely)} ({gib(graphs.low)} to {gib(graphs.high)})")
    return _OUTSIDE_BYTES + graphs.likely, steps


@rule("CP013", "memory-unused", "warning", "a large part of the GPU is left unused")
def memory_unused(case: Case) -> Iterator[Remark]:
    """KV cache is made of what `gpu_memory_utilization` allows. A low share on a GPU of one's own
    costs concurrency and prefix hits for nothing; where another process shares the GPU, ignore
    this with that reason."""
    flag = case.deployment.flag("memory_share")
    share = case.deployment.number("memory_share")
    if case.engine != "vllm" or flag is None or share is None or share >= _UNUSED_SHARE:
        return
    room = first_room(case)
    steps = [f"1 - {share:g} = {1 - share:.0%} of each GPU is not used"]
    if room is not None:
        visible = room.setup.visible_bytes
        steps.append(
            f"{gib(visible)} x (0.90 - {share:g}) = {gib(visible * (0.9 - share))} more for KV"
        )
    seqs = case.deployment.count("max_num_seqs")
    extra = f", for at most {seqs} requests at a time" if seqs is not None else ""
    yield Remark(
        f"{share:g} leaves {1 - share:.0%} of each GPU unused{extra}",
        flag,
        tuple(steps),
        "set gpu_memory_utilization to 0.90, or use a smaller GPU",
    )


RULES = (
    weights_do_not_fit,
    kv_below_one_sequence,
    tight_fit,
    utilisation_too_high,
    memory_unused,
)
