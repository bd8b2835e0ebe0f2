"""OLMo in its generations, and OLMoE."""

from __future__ import annotations

from capplan.specs.hf.config import Config
from capplan.specs.hf.parts import (
    biased_attention,
    dense,
    moe,
    sliding_and_full,
    windowed_layers,
)
from capplan.specs.hf.stack import Part, Stack, uniform


def _mixer(config: Config) -> Part:
    return biased_attention(config, qk_norm="per-layer")


def olmo(config: Config, _: Config) -> Stack:
    """The first OLMo: layer norms without parameters."""
    return uniform(biased_attention(config), dense(config), config.num_layers(), norm="none")


def olmo2(config: Config, _: Config) -> Stack:
    """Norms after each half instead of before it: as many."""
    return uniform(_mixer(config), dense(config), config.num_layers())


def olmo3(config: Config, _: Config) -> Stack:
    config.require("sliding_window", "layer_types")
    mixers = sliding_and_full(_mixer(config), config.count("sliding_window"))
    layers = windowed_layers(config, config.num_layers())
    return Stack(mixers, {"ffn": dense(config)}, layers)


def olmoe(config: Config, _: Config) -> Stack:
    ffn = moe(config, "num_experts", "intermediate_size")
    return uniform(_mixer(config), ffn, config.num_layers())
