"""Parameters of multi-token-prediction layers, counted from the tensors of their kinds.

Serving loads them only to speculate, so they are named beside the total and are in no size.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError

from capplan.specs.ffn_tensors import ffn_tensors
from capplan.specs.ffns import FFN, DenseFFN, MoEFFN
from capplan.specs.hf.stack import Stack
from capplan.specs.mixer_tensors import mixer_tensors
from capplan.specs.mixers import AnyMixer, Mixer

MIXER_ADAPTER: TypeAdapter[AnyMixer] = TypeAdapter(Mixer)
FFN_ADAPTER: TypeAdapter[DenseFFN | MoEFFN] = TypeAdapter(FFN)


def mtp_parameters(stack: Stack, spec: dict[str, Any]) -> int:
    """Mixers, ffns and their norms, and what the reader says that the layers hold beside them."""
    hidden = spec["hidden_size"]
    norm = hidden * {"layer": 2, "none": 0}.get(spec.get("norm", "rms"), 1)
    norms_a_half = 2 if spec.get("norm_placement") == "sandwich" else 1
    total = stack.mtp_extra
    try:
        for mixer, ffn in stack.mtp:
            if mixer is not None:
                part = MIXER_ADAPTER.validate_python(stack.mixers[mixer])
                total += sum(t.num_params for t in mixer_tensors(mixer, part, hidden, 1))
                total += norms_a_half * norm
            if ffn is not None:
                half = FFN_ADAPTER.validate_python(stack.ffns[ffn])
                total += sum(t.num_params for t in ffn_tensors(ffn, half, hidden, 1))
                total += norms_a_half * norm
    except ValidationError:
        return 0  # the model itself has the same fault and says where it stands
    return total


def deepseek_extra(hidden: int, vocab: int, num: int) -> int:
    """Beside its layer, each module of DeepSeek-V3's kind (arXiv:2412.19437, sec. 2.2) holds the
    projection of both inputs, their two norms and a final one, and copies of embedding and head.
    """
    return num * (2 * hidden * hidden + 3 * hidden + 2 * vocab * hidden)
