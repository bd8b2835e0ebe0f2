"""Number formats against what the GPU computes."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.check.cases import Case
from capplan.check.rules.rule import Remark, rule
from capplan.formulas.number_formats import FORMATS

# vLLM's least compute capability by method (its table of supported hardware).
_LEAST_GENERATION = {
    "fp8": 8,
    "awq_marlin": 8,
    "gptq_marlin": 8,
    "marlin": 8,
    "nvfp4": 8,
    "modelopt": 8,
}
_OLD = {"Volta": 7, "Turing": 7, "Pascal": 6}


def _generation(case: Case) -> int | None:
    """The NVIDIA generation where it is an old one, for each accelerator that it may be."""
    found = [
        next((number for name, number in _OLD.items() if spec.architecture.startswith(name)), 9)
        for spec in case.candidates
        if spec.vendor.lower() == "nvidia"
    ]
    return max(found) if found and len(found) == len(case.candidates) else None


@rule("CP020", "dtype-not-native", "warning", "weights in a format that the GPU does not compute")
def dtype_not_native(case: Case) -> Iterator[Remark]:
    """A GPU without tensor cores for a format expands the weights to 16 bits before each product.
    The memory is saved; the arithmetic, and so prefill and large batches, is that of 16 bits."""
    if case.model is None or case.edition is None or not case.candidates:
        return
    stored = case.edition.format or case.model.spec.stored_format
    form = FORMATS.get(stored)
    wanted = form.compute if form is not None else None
    if wanted not in ("fp8", "fp4", "int8"):
        return
    if any(wanted in spec.compute.peak for spec in case.candidates):
        return
    spec = case.candidates[0]
    if (_generation(case) or 9) < 8:
        return  # CP021
    yield Remark(
        f"{stored} weights on {spec.name}, which has no {wanted.upper()} tensor cores: they save "
        "memory and no arithmetic",
        case.deployment.flag("quantization") or case.deployment.model,
        (f"{spec.name} computes {', '.join(sorted(spec.compute.peak))}",),
        "use weights in INT8 (W8A8) or 4 bits (AWQ, GPTQ) here, or a GPU that computes "
        f"{wanted.upper()}",
        (case.model_note,) if case.model_note else (),
    )


@rule("CP021", "dtype-unsupported", "error", "a format that the engine refuses on this GPU")
def dtype_unsupported(case: Case) -> Iterator[Remark]:
    """vLLM stops where `--dtype bfloat16` is asked of a GPU before Ampere (compute capability
    below 8.0), and where a quantisation method needs a newer generation than the GPU is."""
    generation = _generation(case)
    if case.engine != "vllm" or generation is None or generation >= 8:
        return
    spec = case.candidates[0]
    dtype = case.deployment.flag("dtype")
    if dtype is not None and dtype.certain and dtype.text in ("bfloat16", "bf16"):
        yield Remark(
            f"bfloat16 needs compute capability 8.0; {spec.name} has {generation}.x",
            dtype,
            (f"{generation}.x < 8.0",),
            "set dtype to float16 (half)",
        )
    method = case.deployment.flag("quantization")
    least = _LEAST_GENERATION.get(case.quantisation)
    if method is not None and method.certain and least is not None and generation < least:
        yield Remark(
            f"quantization {case.quantisation} needs compute capability {least}.0; {spec.name} has "
            f"{generation}.x",
            method,
            (f"{generation}.x < {least}.0",),
            "use AWQ or GPTQ weights, or a newer GPU",
        )


@rule("CP022", "fp8-kv-not-native", "warning", "an FP8 KV cache on a GPU without FP8")
def fp8_kv_not_native(case: Case) -> Iterator[Remark]:
    """Before Ada and Hopper an FP8 KV cache is only storage: each read converts it, which some
    attention kernels (FlashAttention) do not do at all, so the engine falls back to a slower one
    or refuses. It saves memory; it does not make decoding faster."""
    flag = case.deployment.flag("kv_dtype")
    if flag is None or not flag.certain or not (flag.text or "").lower().startswith("fp8"):
        return
    if not case.candidates or any("fp8" in spec.compute.peak for spec in case.candidates):
        return
    spec = case.candidates[0]
    if spec.vendor.lower() not in ("nvidia", "amd"):
        return
    yield Remark(
        f"{spec.name} has no FP8: the KV cache is converted at each read, and only some attention "
        "kernels can",
        flag,
        (f"{spec.name} computes {', '.join(sorted(spec.compute.peak))}",),
        "leave kv-cache-dtype at auto, or use a GPU from Ada or Hopper on",
    )


RULES = (dtype_not_native, dtype_unsupported, fp8_kv_not_native)
