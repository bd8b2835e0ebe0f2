"""Quantised editions of a model: what the end of a checkpoint's name says.

Hubs hold each model many times: `Qwen/Qwen3-30B-A3B-FP8`, `hugging-quants/…-AWQ-INT4`,
`RedHatAI/…-FP8-dynamic`. The sizes are those of the model without that ending; only the number
format of some tensors differs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from capplan.errors import CapplanError
from capplan.specs.catalogue import Found, load_model
from capplan.specs.mixers import GatedDeltaNet, Mamba2
from capplan.specs.model import ModelSpec

ALL_GROUPS = ("attention", "dense_ffn", "shared_experts", "experts")


@dataclass(frozen=True, slots=True)
class WeightEdition:
    """Weights in another format than the model's file says; ``format`` None: as the file says.

    ``groups`` are the tensor groups that are quantised; ``kernel`` names the layout that a kernel
    wants (`marlin`, `triton`), where it changes the size.
    """

    format: str | None = None
    groups: tuple[str, ...] = ALL_GROUPS
    kernel: str | None = None


# Most specific first. None: a format whose bytes are not known here.
_METHODS: tuple[tuple[str, str | None], ...] = (
    (r"gguf|q\d_k|ggml|mixed", None),
    (r"4.?bit.*bnb|bnb|bitsandbytes", None),
    (r"w8a8 int8|int8 w8a8|quantized\.w8a8|w8a8|experts_int8|int8", "int8"),
    (r"nvfp4|modelopt.?fp4", "nvfp4"),
    (r"mxfp4", "mxfp4"),
    (r"fp8|float8", "fp8"),
    (r"awq|gptq|auto_?round|int4|w4a16|4.?bit|moe_wna16", "int4"),
    (r"fp32|float32", "fp32"),
)
_ENDING = re.compile(
    r"[-_ ./]*(?<![a-z0-9])(awq|gptq|fp8|nvfp4|mxfp4|w8a8|w4a16|int4|int8|gguf|bnb|4bit|"
    r"8bit|marlin|autoround|dynamic|static|block|quantized|per|tensor|channel|kv|q4_k_m|q\d_k\w*|unsloth|modelopt|mixed)"
    r"(?![a-z0-9])",
    re.IGNORECASE,
)


def quantisation_format(text: str) -> tuple[bool, str | None]:
    """Whether ``text`` (a setting, the end of a name) states a quantisation, and our format.

    >>> quantisation_format("awq_marlin"), quantisation_format("compressed-tensors fp8")
    ((True, 'int4'), (True, 'fp8'))
    >>> quantisation_format("gguf q4_k_m"), quantisation_format("auto")
    ((True, None), (False, None))
    """
    lowered = text.lower()
    for pattern, number_format in _METHODS:
        if re.search(pattern, lowered):
            return True, number_format
    return False, None


def without_ending(name: str) -> str:
    """The name of the model that a quantised edition was made of.

    >>> without_ending("hugging-quants/Meta-Llama-3.1-405B-Instruct-AWQ-INT4")
    'hugging-quants/Meta-Llama-3.1-405B-Instruct'
    >>> without_ending("neuralmagic/Meta-Llama-3.1-70B-Instruct-quantized.w8a8")
    'neuralmagic/Meta-Llama-3.1-70B-Instruct'
    """
    match = _ENDING.search(name, name.rfind("/") + 1)
    return name[: match.start()].rstrip("-_ .") if match else name


def load_edition(name: str) -> tuple[Found[ModelSpec], str]:
    """A model by the name of any of its editions, and the ending that was cut off.

    Raises CapplanError where neither the name nor its beginning is known.
    """
    short = without_ending(name)
    fault: CapplanError | None = None
    for tried in dict.fromkeys((name, short, short.rpartition("/")[2])):
        for written in (tried, re.sub(r"^Meta-", "", tried)):
            try:
                return load_model(written), name[len(short) :] if tried != name else ""
            except CapplanError as error:
                fault = fault or error
    assert fault is not None
    raise fault


def weight_edition(model: ModelSpec, quantisation: str, dtype: str = "") -> WeightEdition | None:
    """What is quantised, from an engine's setting and the ending of a name.

    None where the bytes of that format are not known here. Methods that leave attention alone:
    MXFP4 (gpt-oss), FBGEMM's FP8 (Llama-3.1-405B), and GPTQ of recurrent hybrids with experts,
    whose logged load is that of 4-bit experts beside 16-bit attention.
    """
    stated, number_format = quantisation_format(quantisation)
    if not stated:
        wide = "fp32" if dtype in ("fp32", "float32", "float") else None
        return WeightEdition(wide)
    if number_format is None:
        return None
    kernel = next((k for k in ("marlin", "triton") if k in quantisation.lower()), None)
    own = model.weights.quantization
    if own is not None and number_format in (own.format, own.format.split("-")[0]):
        return WeightEdition(None, kernel=kernel)
    groups: tuple[str, ...] = ALL_GROUPS
    if number_format == "int4" and "gptq" in quantisation.lower() and _is_hybrid_moe(model):
        groups = ("experts",)
    if "experts_int8" in quantisation.lower():
        # vLLM converts what its fused-MoE layer holds, and runs Jamba's dense FFNs as one expert.
        groups = ("dense_ffn", "shared_experts", "experts")
    if "fbgemm" in quantisation.lower():
        groups = ("dense_ffn", "shared_experts", "experts")
    elif number_format == "fp8" and _is_blockwise(model):
        number_format = "fp8-block128"
    return WeightEdition(number_format, groups, kernel)


def _is_hybrid_moe(model: ModelSpec) -> bool:
    recurrent = any(isinstance(m, (GatedDeltaNet, Mamba2)) for m in model.mixers.values())
    return recurrent and model.has_experts


def _is_blockwise(model: ModelSpec) -> bool:
    """The FP8 editions that Qwen publishes from Qwen3 on have 128 x 128 tiles."""
    return model.name.startswith("Qwen3")
