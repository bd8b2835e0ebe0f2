"""Parameters of vision towers and projectors, tensor by tensor from `vision_config`.

A tower whose tensors are not known exactly is named as not counted; the decoder is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from capplan.specs.hf.config import Config

Fields = dict[str, Any]
_TOWER, _PROJECTOR = "vision tower", "vision projector"
NOT_COUNTED: Fields = {"not_counted": ["vision tower and projector"]}


def _linear(outputs: int, inputs: int, bias: bool = True) -> int:
    return outputs * inputs + (outputs if bias else 0)


def _plain_block(hidden: int, width: int) -> int:
    """A pre-norm ViT block with biases: four projections, an MLP of two, two layer norms."""
    return (
        4 * _linear(hidden, hidden) + _linear(width, hidden) + _linear(hidden, width) + 4 * hidden
    )


def _gated_block(hidden: int, width: int) -> int:
    """Four projections and a gated MLP, without biases; norms are the caller's."""
    return 4 * hidden * hidden + 3 * hidden * width


def _counted(outer: Config, count: Callable[[Config], dict[str, int]]) -> Fields:
    """What ``count`` finds in `vision_config`; without one, the tower is not counted."""
    if not outer.has("vision_config"):
        return NOT_COUNTED
    return {"extra_parameters": count(outer.nested("vision_config"))}


def qwen3_vl(outer: Config, text: Config) -> Fields:
    """Qwen3-VL and Qwen3.5: a 3D patch embedding, learned positions, mergers."""

    def count(vision: Config) -> dict[str, int]:
        hidden, out = vision.count("hidden_size"), vision.count("out_hidden_size")
        vision.expect("out_hidden_size", text.count("hidden_size"))
        merged = hidden * vision.count("spatial_merge_size") ** 2
        patch = vision.count("temporal_patch_size") * vision.count("patch_size") ** 2
        vision.require("deepstack_visual_indexes")
        deep = vision.layer_numbers("deepstack_visual_indexes", vision.num_layers("depth"))
        blocks = vision.num_layers("depth") * _plain_block(
            hidden, vision.count("intermediate_size")
        )
        mlp = _linear(merged, merged) + _linear(out, merged)
        # The last merger norms patches, those of deepstack norm merged ones.
        mergers = 2 * hidden + mlp + len(deep) * (2 * merged + mlp)
        patches = _linear(hidden, vision.count("in_channels") * patch)
        positions = vision.count("num_position_embeddings") * hidden
        return {_TOWER: patches + positions + blocks + mergers}

    return _counted(outer, count)


def qwen2_5_vl(outer: Config, text: Config) -> Fields:
    """Qwen2.5-VL: a 3D patch embedding without bias, RMS norms, gated MLPs, one merger."""

    def count(given: Config) -> dict[str, int]:
        vision = given.with_defaults(**_QWEN25_VISION)
        hidden, out = vision.count("hidden_size"), vision.count("out_hidden_size")
        vision.expect("out_hidden_size", text.count("hidden_size"))
        width = vision.count("intermediate_size")
        patch = vision.count("temporal_patch_size") * vision.count("patch_size") ** 2
        channels = vision.count("in_channels" if vision.has("in_channels") else "in_chans")
        block = 4 * _linear(hidden, hidden) + 2 * _linear(width, hidden)
        block += _linear(hidden, width) + 2 * hidden
        merged = hidden * vision.count("spatial_merge_size") ** 2
        merger = hidden + _linear(merged, merged) + _linear(out, merged)
        blocks = vision.num_layers("depth") * block
        return {_TOWER: hidden * channels * patch + blocks + merger}

    return _counted(outer, count)


# What the class takes; the config of the 32B leaves these out.
_QWEN25_VISION = {
    "depth": 32, "patch_size": 14, "temporal_patch_size": 2, "spatial_merge_size": 2,
    "in_chans": 3,
}  # fmt: skip


def siglip(outer: Config, text: Config) -> Fields:
    """Gemma 3: SigLIP without a pooling head, a norm and one projection."""

    def count(vision: Config) -> dict[str, int]:
        vision.refuse("vision_use_head", False)
        hidden, patch = vision.count("hidden_size"), vision.count("patch_size")
        positions = (vision.count("image_size") // patch) ** 2
        blocks = vision.num_layers() * _plain_block(hidden, vision.count("intermediate_size"))
        patches = _linear(hidden, vision.count("num_channels", 3) * patch**2)
        tower = patches + positions * hidden + blocks + 2 * hidden
        return {_TOWER: tower, _PROJECTOR: hidden + hidden * text.count("hidden_size")}

    return _counted(outer, count)


def gemma4_vision(outer: Config, text: Config) -> Fields:
    """Gemma 4: sandwich norms, QK norms, two tables of positions, standardisation buffers."""
    if outer.has("audio_config"):
        return {"not_counted": ["vision tower and projector", "audio tower and projector"]}

    def count(vision: Config) -> dict[str, int]:
        vision.require("use_clipped_linears", "standardize")
        vision.refuse("use_clipped_linears", False)
        vision.refuse("attention_bias", False)
        hidden, head_dim = vision.count("hidden_size"), vision.count("head_dim")
        query = vision.count("num_attention_heads") * head_dim
        key = vision.count("num_key_value_heads") * head_dim
        block = 2 * hidden * (query + key) + 3 * hidden * vision.count("intermediate_size")
        block += 2 * head_dim + 4 * hidden
        patches = hidden * 3 * vision.count("patch_size") ** 2
        positions = 2 * vision.count("position_embedding_size") * hidden
        buffers = 2 * hidden if vision.flag("standardize", False) else 0
        tower = patches + positions + vision.num_layers() * block + buffers
        return {_TOWER: tower, _PROJECTOR: hidden * text.count("hidden_size")}

    return _counted(outer, count)


def llama4_vision(outer: Config, text: Config) -> Fields:
    """Llama 4: a class token, an adapter of two layers behind a pixel shuffle."""

    def count(vision: Config) -> dict[str, int]:
        hidden, patch = vision.count("hidden_size"), vision.count("patch_size")
        width = vision.count("intermediate_size")
        patches = hidden * vision.count("num_channels", 3) * patch**2
        positions = ((vision.count("image_size") // patch) ** 2 + 1) * hidden
        blocks = vision.num_layers() * _plain_block(hidden, width)
        middle, out = vision.count("projector_input_dim"), vision.count("projector_output_dim")
        adapter = middle * width + middle * out
        tower = patches + hidden + positions + 4 * hidden + blocks + adapter
        return {
            _TOWER: tower,
            _PROJECTOR: vision.count("vision_output_dim") * text.count("hidden_size"),
        }

    return _counted(outer, count)


def moonvit(outer: Config, text: Config) -> Fields:
    """Kimi K2.5: MoonViT with learned 2D positions, and a patch merger of two layers."""

    def count(vision: Config) -> dict[str, int]:
        hidden, patch = vision.count("vt_hidden_size"), vision.count("patch_size")
        vision.expect("mm_projector_type", "patchmerger")
        vision.expect("mm_hidden_size", hidden)
        vision.expect("text_hidden_size", text.count("hidden_size"))
        patches = _linear(hidden, 3 * patch**2)
        sides = vision.count("init_pos_emb_height") * vision.count("init_pos_emb_width")
        blocks = vision.num_layers("vt_num_hidden_layers") * _plain_block(
            hidden, vision.count("vt_intermediate_size")
        )
        vision.expect("merge_kernel_size", [2, 2])
        merged = 4 * hidden
        projector = 2 * hidden + _linear(merged, merged)
        projector += _linear(text.count("hidden_size"), merged)
        return {_TOWER: patches + sides * hidden + blocks + 2 * hidden, _PROJECTOR: projector}

    return _counted(outer, count)


def pixtral(outer: Config, text: Config) -> Fields:
    """Mistral Small 3.1: RMS norms, gated MLPs, a merger of 2 x 2 patches."""

    def count(vision: Config) -> dict[str, int]:
        hidden, out = vision.count("hidden_size"), text.count("hidden_size")
        vision.expect("head_dim", hidden // vision.count("num_attention_heads"))
        patches = hidden * vision.count("num_channels", 3) * vision.count("patch_size") ** 2
        block = _gated_block(hidden, vision.count("intermediate_size")) + 2 * hidden
        tower = patches + hidden + vision.num_layers() * block
        bias = outer.flag("multimodal_projector_bias", False)
        merger = hidden * hidden * outer.count("spatial_merge_size") ** 2
        projector = hidden + merger + _linear(out, hidden, bias) + _linear(out, out, bias)
        return {_TOWER: tower, _PROJECTOR: projector}

    return _counted(outer, count)
