"""How a checkpoint is stored: from `quantization_config` to formats of tensor groups.

The config says it by the names of modules, the model's file by groups, kinds and tensors. So
each matrix of each layer is looked up by its module's name, and equal answers are put together;
where layers of one kind are stored differently, the kind is split in two.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from capplan.specs.documents import read_json
from capplan.specs.ffn_tensors import ffn_tensors
from capplan.specs.fields import shown
from capplan.specs.hf.config import Config
from capplan.specs.hf.dialects import Rule, rule_of
from capplan.specs.hf.mtp import FFN_ADAPTER, MIXER_ADAPTER
from capplan.specs.hf.stack import Layer, Part, Stack
from capplan.specs.mixer_tensors import mixer_tensors
from capplan.specs.model import QUANTIZED_GROUPS
from capplan.specs.tensor import Tensor

# Where a model keeps its layers, by how it is wrapped.
_PREFIXES = (
    "model.layers.{}.", "model.language_model.layers.{}.", "language_model.model.layers.{}.",
    "backbone.layers.{}.", "transformer.h.{}.",
)  # fmt: skip
_HEADS = ("lm_head", "language_model.lm_head", "output_layer")
# Module names of a layer's tensors, where the family's reader does not say otherwise.
_CONTAINERS = {
    "attention": "self_attn", "mla": "self_attn", "gated-deltanet": "linear_attn",
    "compressed": "self_attn", "mamba1": "mamba", "mamba2": "mamba", "dense_ffn": "mlp",
    "shared_experts": "mlp.shared_experts", "experts": "mlp.experts.0",
}  # fmt: skip
_LEAVES = {
    "kv_a_proj": ("kv_a_proj_with_mqa",),
    "indexer.q_proj": ("indexer.wq_b",),
    "indexer.k_proj": ("indexer.wk",),
    "beta_alpha_proj": ("in_proj_b", "in_proj_a"),
    "qkvz_proj": ("in_proj_qkv", "in_proj_z"),
}
_LATENT = {"latent_down_proj": "fc1_latent_proj", "latent_up_proj": "fc2_latent_proj"}


@dataclass(frozen=True)
class _Matrix:
    """One matrix of a mixer or ffn: its name in the inventory, its size, where it is kept."""

    name: str
    group: str
    num_params: int
    modules: tuple[str, ...]


def quantised(
    stack: Stack, text: Config, outer: Config, path: Path, dtype: str, tied: bool
) -> tuple[Stack, dict[str, Any] | None]:
    """The stack, its kinds split where need be, and `weights.quantization` of the model's file."""
    config = _config(text, outer, path)
    if config is None:
        return stack, None
    rule = rule_of(config)
    if text.has("expert_dtype") and rule.experts is None:
        text.expect("expert_dtype", "fp4")  # DeepSeek-V4: 32 elements share an 8-bit exponent
        rule = replace(rule, experts="mxfp4")
    try:
        hidden = stack.fields.get("hidden_size") or text.count("hidden_size")
        matrices = dict(_matrices(stack, hidden))
    except ValidationError:
        return stack, None  # the model itself has the same fault and says where it stands
    stored = _look_up(stack, matrices, rule, config)
    split, names = _split(stack, stored)
    formats = {new: (matrices[old], found) for new, (old, found) in names.items() if matrices[old]}
    head = rule.of(_HEADS, "lm_head") if rule.reaches_head and not tied else None
    return split, _summary(formats, head, dtype)


def _config(text: Config, outer: Config, path: Path) -> Config | None:
    """`quantization_config`, or what modelopt writes into a file beside the config."""
    for place in (outer, text):
        if place.data.get("quantization_config") is not None:
            value = place.data["quantization_config"]
            if not isinstance(value, dict):
                message = f"the quantisation {shown(value)} of this checkpoint is not read yet"
                raise place.fault("quantization_config", message)
            return place.nested("quantization_config")
    beside = path.parent / "hf_quant_config.json"
    if path.name != "config.json" or not beside.is_file():
        return None
    found = Config(read_json(beside)).nested("quantization")
    return found.with_defaults(quant_method="modelopt")


def _matrices(stack: Stack, hidden: int) -> Iterator[tuple[str, list[_Matrix]]]:
    """The matrices of each kind that may be quantised."""
    containers = {**_CONTAINERS, **stack.modules}
    for name, part in {**stack.mixers, **stack.ffns}.items():
        tensors = _tensors(name, part, hidden)
        yield (
            name,
            [
                _matrix(tensor, part, containers)
                for tensor in tensors
                if tensor.is_matrix and tensor.group in QUANTIZED_GROUPS
            ],
        )


def _tensors(name: str, part: Part, hidden: int) -> list[Tensor]:
    if part["kind"] in ("dense", "moe"):
        return list(ffn_tensors(name, FFN_ADAPTER.validate_python(part), hidden, 1))
    return list(mixer_tensors(name, MIXER_ADAPTER.validate_python(part), hidden, 1))


def _matrix(tensor: Tensor, part: Part, containers: dict[str, str]) -> _Matrix:
    group = tensor.group
    container = containers[part["kind"] if group == "attention" else group]
    leaf = tensor.name.removeprefix(f"{group}.")
    if leaf in _LATENT:  # beside the experts, not among the shared ones
        container, leaf = containers["experts"].removesuffix(".experts.0"), _LATENT[leaf]
    given = containers.get(f"{container}.{leaf}", containers.get(leaf))
    leaves = (given,) if given else _LEAVES.get(leaf, (leaf,))
    return _Matrix(
        tensor.name, group, tensor.num_params, tuple(f"{container}.{leaf}" for leaf in leaves)
    )


Stored = tuple[str | None, ...]  # formats of a kind's matrices; None: as the weights' dtype


def _look_up(
    stack: Stack, matrices: dict[str, list[_Matrix]], rule: Rule, config: Config
) -> list[dict[str, Stored]]:
    """For each layer, the formats of its mixer's and its ffn's matrices."""
    found = []
    alike: dict[Layer, dict[str, Stored]] = {}
    for i, layer in enumerate(stack.layers):
        if layer in alike and not rule.tells_layers_apart:
            found.append(alike[layer])
            continue
        prefixes = [prefix.format(i) for prefix in _PREFIXES]

        def stored(matrix: _Matrix, prefixes: list[str] = prefixes) -> str | None:
            formats = {
                rule.of([prefix + module for prefix in prefixes], matrix.group)
                for module in matrix.modules
            }
            if len(formats) > 1:
                name = prefixes[0] + matrix.modules[0]
                message = f"`{name}` and {matrix.modules[1]} differ in format"
                raise config.fault("quant_method", f"{message}; this is not read yet")
            return formats.pop()

        alike[layer] = {
            name: tuple(stored(matrix) for matrix in matrices[name]) for name in layer if name
        }
        found.append(alike[layer])
    return found


def _split(
    stack: Stack, stored: list[dict[str, Stored]]
) -> tuple[Stack, dict[str, tuple[str, Stored]]]:
    """Kinds whose layers are stored differently become several, the most frequent first.

    Returns the new stack, and for each new name the old one and its formats.
    """
    variants: dict[str, Counter[Stored]] = defaultdict(Counter)
    for layer in stored:
        for name, formats in layer.items():
            variants[name][formats] += 1
    renamed: dict[tuple[str, Stored], str] = {}
    for name, counts in variants.items():
        for formats, _ in counts.most_common():
            new = name
            if (name, max(counts, key=lambda f: counts[f])) != (name, formats):
                words = sorted({fmt or "16-bit" for fmt in formats})
                new = f"{name}-{'-'.join(words)}"
                while new in renamed.values() or new in variants:
                    new += "-x"
            renamed[name, formats] = new
    names = {new: (old, formats) for (old, formats), new in renamed.items()}

    def rename(layer: Layer, kinds: dict[str, Stored]) -> Layer:
        mixer, ffn = ((renamed[n, kinds[n]] if n else None) for n in layer)
        return mixer, ffn

    layers = [rename(layer, kinds) for layer, kinds in zip(stack.layers, stored, strict=True)]
    mixers = {new: stack.mixers[old] for new, (old, _) in names.items() if old in stack.mixers}
    ffns = {new: stack.ffns[old] for new, (old, _) in names.items() if old in stack.ffns}
    # Prediction layers are counted from the kinds as the reader gave them.
    split = replace(
        stack, mixers={**stack.mixers, **mixers}, ffns={**stack.ffns, **ffns}, layers=layers
    )
    return split, names


def _summary(
    kinds: dict[str, tuple[list[_Matrix], Stored]], head: str | None, dtype: str
) -> dict[str, Any] | None:
    """The formats by group where they agree, else by kind, else by tensor."""
    sizes: Counter[str] = Counter()
    by_group: dict[str, Counter[str | None]] = defaultdict(Counter)
    for matrices, formats in kinds.values():
        for matrix, fmt in zip(matrices, formats, strict=True):
            by_group[matrix.group][fmt] += matrix.num_params
            if fmt:
                sizes[fmt] += matrix.num_params
    if not sizes:
        return None
    main = max(sizes, key=lambda fmt: sizes[fmt])
    base = {group: max(counts, key=lambda f: counts[f]) for group, counts in by_group.items()}
    if main not in base.values():
        # An exception in each of its groups: let it be the rule where there is most of it.
        base[max(by_group, key=lambda group: by_group[group][main])] = main
    if head:
        base["lm_head"] = head
    others: dict[str, str] = {group: fmt for group, fmt in base.items() if fmt and fmt != main}
    for name, (matrices, formats) in kinds.items():
        others |= _exceptions(name, matrices, [fmt or dtype for fmt in formats], base, dtype)
    groups = [group for group in QUANTIZED_GROUPS if base.get(group) == main]
    return {"format": main, "groups": groups, **({"others": others} if others else {})}


def _exceptions(
    name: str, matrices: list[_Matrix], formats: list[str], base: dict[str, str | None], dtype: str
) -> dict[str, str]:
    """What of a kind is not stored as its groups are."""
    differs = {
        matrix.name: fmt
        for matrix, fmt in zip(matrices, formats, strict=True)
        if fmt != (base[matrix.group] or dtype)
    }
    if len(differs) == len(matrices) and len(set(formats)) == 1:
        return {name: formats[0]}
    return {f"{name}.{tensor}": fmt for tensor, fmt in differs.items()}
