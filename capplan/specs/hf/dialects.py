"""The dialects of `quantization_config`: which module is stored in which format.

fp8, compressed-tensors, modelopt, awq, gptq, bitsandbytes and mxfp4; any other method, and any
setting that is not understood, is refused by name.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from capplan.specs.fields import shown
from capplan.specs.hf.config import Config

# 16 or 32 bits in every checkpoint: weights of indexers, and compressors.
_NEVER = ("indexer.weights_proj", "indexers_proj", "kv_gate_proj")
_MOST_PATTERN = 300
_MOST_QUANTIFIERS = 4


class Names:
    """A list of module names, with wildcards and `re:` patterns, as ignore lists have them."""

    def __init__(self, config: Config, field: str, values: Any) -> None:
        if values is None:
            values = []
        if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
            raise config.fault(field, f"`{field}` should be a list of module names")
        self.plain = {v for v in values if not v.startswith("re:") and "*" not in v}
        wild = [v for v in values if not v.startswith("re:") and "*" in v]
        # A pattern that names a module names all that it holds.
        texts = [fnmatch.translate(v) for v in wild]
        texts += [fnmatch.translate(f"{v}.*") for v in wild]
        self.wild = [re.compile(text) for text in texts]
        self.regexes = [_regex(config, field, v[3:]) for v in values if v.startswith("re:")]

        # Whether a layer may be named by its number.
        self.tell_layers_apart = any(re.search(r"\d|\\d|\[", v) for v in values)

    def __contains__(self, module: str) -> bool:
        parts = module.split(".")
        runs = (
            ".".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1)
        )
        return (
            any(run in self.plain for run in runs)
            or any(pattern.match(module) for pattern in self.wild)
            or any(pattern.match(module) for pattern in self.regexes)
        )


def _regex(config: Config, field: str, text: str) -> re.Pattern[str]:
    """A pattern of the config, refused where it could take long: it is somebody else's text."""
    quantifiers = len(re.findall(r"(?<!\\)[*+{]", text))
    if len(text) > _MOST_PATTERN or quantifiers > _MOST_QUANTIFIERS or re.search(r"\)[*+{?]", text):
        raise config.fault(field, f"`{field}`: the pattern {shown(text)} is too involved")
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError):
        raise config.fault(field, f"`{field}`: {shown(text)} is not a pattern") from None


@dataclass(frozen=True)
class _Target:
    """A format and the modules that it reaches; None: all linear layers."""

    format: str
    modules: Names | None


@dataclass(frozen=True)
class Rule:
    """The format of a module, or None where it stays in the weights' dtype."""

    targets: tuple[_Target, ...]
    ignore: Names
    groups: frozenset[str] | None = None  # None: all that have matrices
    reaches_head: bool = False
    experts: str | None = None  # the format of routed experts, where it is another
    listed: dict[str, str] | None = None  # modules by name with their formats, and no others

    @property
    def tells_layers_apart(self) -> bool:
        """Whether layers of one kind may be stored differently."""
        targets = [target.modules for target in self.targets if target.modules is not None]
        return self.listed is not None or any(n.tell_layers_apart for n in (self.ignore, *targets))

    def of(self, modules: Sequence[str], group: str) -> str | None:
        """The format of a module by any of the names that it may have."""
        if self.groups is not None and group not in self.groups:
            return None
        if any(module.endswith(_NEVER) for module in modules):
            return None
        if group == "experts" and self.experts is not None:
            return self.experts
        if any(module in self.ignore for module in modules):
            return None
        if self.listed is not None:
            return next(filter(None, map(self._listed, modules)), None)
        for target in self.targets:
            if target.modules is None or any(module in target.modules for module in modules):
                return target.format
        return None

    def _listed(self, module: str) -> str | None:
        """A list may name a module or one that holds it."""
        assert self.listed is not None
        parts = module.split(".")
        held_by = (".".join(parts[:i]) for i in range(len(parts), 0, -1))
        return next((self.listed[name] for name in held_by if name in self.listed), None)


def rule_of(config: Config) -> Rule:
    """The rule of a `quantization_config`; raises CapplanError where it is not understood."""
    method = config.data.get("quant_method")
    producer = config.data.get("producer")
    if method is None and isinstance(producer, dict) and producer.get("name") == "modelopt":
        method = "modelopt"  # its first releases left the method out
    readers = {
        "fp8": _fp8, "fbgemm_fp8": _fp8, "compressed-tensors": _config_groups,
        "modelopt": _modelopt, "modelopt_fp4": _modelopt, "awq": _awq, "gptq": _gptq,
        "bitsandbytes": _bitsandbytes, "mxfp4": _mxfp4,
    }  # fmt: skip
    if not isinstance(method, str) or method not in readers:
        raise config.fault(
            "quant_method",
            f"the quantisation {shown(method)} of this checkpoint is not read yet",
            hint="give the config of the unquantised model and --dtype",
        )
    return readers[method](config)


def _everywhere(config: Config, fmt: str, field: str, **more: Any) -> Rule:
    return Rule((_Target(fmt, None),), Names(config, field, config.data.get(field)), **more)


def _fp8(config: Config) -> Rule:
    block = config.data.get("weight_block_size")
    if block is not None and block != [128, 128]:
        raise config.fault("weight_block_size", "`weight_block_size` other than [128, 128]")
    experts = None
    if config.data.get("quant_algo") not in (None, "FP8"):
        # FP8 as it was, with the experts in another format (DeepSeek-V4 by modelopt).
        experts = _algorithm(
            config, {"quant_algo": config.data.get("moe_quant_algo")}, "quant_algo"
        )
    field = "ignored_layers" if config.has("ignored_layers") else "modules_to_not_convert"
    return _everywhere(config, "fp8-block128" if block else "fp8", field, experts=experts)


def _mxfp4(config: Config) -> Rule:
    more = {"groups": frozenset({"experts"})}
    return _everywhere(config, "mxfp4", "modules_to_not_convert", **more)


def _awq(config: Config) -> Rule:
    config.expect("bits", 4)
    return _everywhere(config, _int4(config, config.data), "modules_to_not_convert")


def _gptq(config: Config) -> Rule:
    config.refuse("dynamic")
    fmt = "int8" if config.count("bits") == 8 else _int4(config, config.data)
    return _everywhere(config, fmt, "modules_to_not_convert")


def _int4(config: Config, data: dict[str, Any]) -> str:
    """AWQ and GPTQ keep 4-bit zero points, symmetric or not."""
    bits, group = data.get("bits"), data.get("group_size")
    formats = {128: "int4", 64: "int4-group64", 32: "int4-group32"}
    if bits != 4 or type(group) is not int or group not in formats:
        message = f"{shown(bits)} bits in groups of {shown(group)} are not read yet"
        raise config.fault("group_size", message)
    return formats[group]


def _bitsandbytes(config: Config) -> Rule:
    field = "llm_int8_skip_modules"
    four, eight = config.flag("load_in_4bit", False), config.flag("load_in_8bit", False)
    if four == eight:
        raise config.fault("load_in_4bit", "one of `load_in_4bit` and `load_in_8bit` should hold")
    if eight:
        return _everywhere(config, "int8", field)
    double = config.flag("bnb_4bit_use_double_quant", False)
    return _everywhere(config, "nf4-double" if double else "nf4", field)


def _modelopt(config: Config) -> Rule:
    field = "exclude_modules" if config.has("exclude_modules") else "ignore"
    ignore = Names(config, field, config.data.get(field))
    if config.has("quantized_layers"):
        listed = _listed(config)
        return Rule((), ignore, listed=listed, reaches_head=True)
    if config.has("config_groups"):
        return _config_groups(config)
    fmt = _algorithm(config, config.data, "quant_algo")
    return Rule((_Target(fmt, None),), ignore, reaches_head=True)


def _listed(config: Config) -> dict[str, str]:
    layers = config.nested("quantized_layers")
    found = {}
    for name, settings in layers.data.items():
        if not isinstance(settings, dict):
            raise layers.fault(name, f"`{name}` should be a mapping of fields")
        found[name] = _algorithm(layers, settings, name)
    return found


def _algorithm(config: Config, settings: dict[str, Any], field: str) -> str:
    formats = {
        "FP8": "fp8", "FP8_PB_WO": "fp8-block128", "FP8_PER_CHANNEL_PER_TOKEN": "fp8",
        "NVFP4": "nvfp4", "W4A16_NVFP4": "nvfp4-weight-only", "MXFP8": "mxfp8",
        "INT8_SQ": "int8", "W4A8_MXFP4_FP8": "mxfp4",
    }  # fmt: skip
    name = settings.get("quant_algo")
    if not isinstance(name, str) or name not in formats:
        raise config.fault(field, f"the quantisation {shown(name)} is not read yet")
    if formats[name].startswith("nvfp4") and settings.get("group_size", 16) != 16:
        raise config.fault(field, "NVFP4 in groups other than 16 is not read yet")
    return formats[name]


def _config_groups(config: Config) -> Rule:
    """compressed-tensors: a scheme of weights for each list of targets."""
    groups = config.nested("config_groups")
    targets = []
    for name in groups.data:
        group = groups.nested(name)
        if not group.has("weights"):
            continue
        names = group.data.get("targets")
        linear = names is None or names == ["Linear"]
        modules = None if linear else Names(group, "targets", names)
        targets.append(_Target(_scheme(group), modules))
    if not targets:
        raise config.fault("config_groups", "`config_groups` quantises no weights")
    ignore = Names(config, "ignore", config.data.get("ignore"))
    return Rule(tuple(targets), ignore, reaches_head=True)


def _scheme(group: Config) -> str:
    weights = group.nested("weights")
    kind, bits, size = (weights.data.get(k) for k in ("type", "num_bits", "group_size"))
    symmetric = weights.flag("symmetric", True)
    weight_only = not group.has("input_activations")
    strategy = weights.data.get("strategy")
    if strategy == "block":
        fits = weights.data.get("block_structure") == [128, 128]
        if kind == "float" and bits == 8 and fits:
            return "fp8-block128"
    elif size is None and bits == 8 and kind in ("float", "int"):
        return "fp8" if kind == "float" else "int8"
    else:
        schemes: dict[tuple[Any, ...], str] = {
            ("float", 4, 16): "nvfp4-weight-only" if weight_only else "nvfp4",
            ("float", 4, 32): "mxfp4",
            ("float", 8, 32): "mxfp8",
            ("int", 4, 128): "int4-symmetric" if symmetric else "int4",
            ("int", 4, 32): "int4-symmetric-group32" if symmetric else "int4-group32",
        }
        scheme = (kind, bits, size)
        if all(isinstance(part, (str, int)) for part in scheme) and scheme in schemes:
            return schemes[scheme]
    message = f"{shown(bits)} bits of {shown(kind)} in groups of {shown(size)}"
    raise weights.fault("num_bits", f"the quantisation {message} is not read yet")
