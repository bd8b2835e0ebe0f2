"""One change that would make a deployment fit, tried on the same budget."""

from __future__ import annotations

from capplan.check.cases import Case
from capplan.check.rules.sizes import Room
from capplan.errors import CapplanError
from capplan.planner.kv import KvQuestion
from capplan.planner.kv_advice import advise

_OPTIONS = {
    "--tp": "tensor-parallel-size",
    "--pp": "pipeline-parallel-size",
    "--kv-dtype": "kv-cache-dtype",
    "--hardware": "the GPU",
    "--dtype": "quantization",
}


def first_advice(case: Case, room: Room) -> str | None:
    """What `capplan kv` would suggest first, in the engine's own words."""
    setup = room.setup
    length = case.max_model_len or setup.model.max_context_tokens
    context = min(length, 8192, setup.model.max_context_tokens)
    question = KvQuestion(
        model_id=case.model.id if case.model else setup.model.name,
        model=setup.model,
        hardware_id=case.hardware_id or setup.hardware.name,
        hardware=setup.hardware,
        engine=setup.engine,
        context_tokens=context,
        lengths=(context,),
        static_length=None,
    )
    try:
        found = advise(question)
    except (CapplanError, ArithmeticError, ValueError, AssertionError):
        return None
    if not found:
        return None
    best = found[0]
    if best.option == "--dtype" and best.value != "fp8":  # which engines make while they load
        return f"serve a checkpoint in {best.value}: {best.why}"
    option = _OPTIONS.get(best.option, best.option.lstrip("-"))
    value = best.value.replace("--pp", "and pipeline-parallel-size")
    return f"set {option} to {value}: {best.why}"
