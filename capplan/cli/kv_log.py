"""`capplan kv --engine-log`: what a pasted start-up log says, in place of options not given."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capplan.cli.inputs import Inputs
from capplan.errors import CapplanError, Location
from capplan.specs.catalogue import load_hardware
from capplan.specs.documents import read_text
from capplan.specs.editions import load_edition, weight_edition
from capplan.specs.engine_log import EngineLog, read_engine_log

if TYPE_CHECKING:
    from capplan.cli.kv_options import KvOptions
    from capplan.specs.editions import WeightEdition
    from capplan.specs.model import ModelSpec

MAX_LOG_BYTES = 64 * 2**20
# Our option by the name of the setting in a log; numbers only.
_NUMBERS = {
    "tp": ("tp", "--tp"),
    "pp": ("pp", "--pp"),
    "max_model_len": ("max_model_len", "--max-model-len"),
    "max_num_seqs": ("max_num_seqs", "--max-num-seqs"),
    "max_num_batched_tokens": ("max_num_batched_tokens", "--max-num-batched-tokens"),
    "block_size": ("block_size", "--block-size"),
    "memory_share": ("gpu_memory_utilization", "--gpu-memory-utilization"),
}
_KV_FORMATS = {"fp8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "fp8_ds_mla": "fp8_ds_mla",
               "int8": "int8", "bfloat16": "bf16", "float16": "fp16"}  # fmt: skip


@dataclass(frozen=True)
class ReadLog:
    """A log, and the ending of its model's name that says how the weights are quantised."""

    log: EngineLog
    ending: str = ""
    names_model: bool = False

    def edition(self, model: ModelSpec) -> WeightEdition | None:
        """How the log says that the weights are stored; None where its model is not used."""
        if not self.names_model:
            return None
        settings = self.log.settings
        stated = f"{settings.get('quantization', '')} {self.ending}".strip()
        return weight_edition(model, stated, settings.get("dtype", ""))


def read_log(path: str) -> EngineLog:
    """Raises CapplanError for a file that cannot be read or says nothing about memory."""
    text = read_text(Path(path), what="a log", most=MAX_LOG_BYTES, strict=False)
    log = read_engine_log(text)
    if log.is_empty:
        cut = f"; {len(log.unread)} lines that name one are cut" if log.unread else ""
        raise CapplanError(
            f"no figure of an engine's memory can be read{cut}",
            location=Location(path),
            hint="paste the start-up log of vLLM, SGLang or TensorRT-LLM, from its first line on",
        )
    return log


def with_log(options: KvOptions, inputs: Inputs, path: str) -> tuple[KvOptions, ReadLog]:
    """The options, those that were not given filled from the log."""
    log = read_log(path)
    found: dict[str, Any] = {}

    def take(field: str, option: str, value: str | None, shown: str | None = None) -> None:
        if value and getattr(options, field) is None:
            found[field] = value
            inputs.assume(field.replace("_", " "), f"{shown or value}, from the log", option)

    take("engine", "--engine", log.engine)
    if options.engine in (None, log.engine):
        take("engine_version", "--engine-version", log.version)
    model, ending = _model(log) if options.model is None else (None, "")
    take("model", "--model", model)
    take("hardware", "--hardware", _known(load_hardware, log.gpu))
    for name, (field, option) in _NUMBERS.items():
        take(field, option, _number(log, name))
    take("kv_dtype", "--kv-dtype", _KV_FORMATS.get(log.settings.get("kv_dtype", "").lower()))
    visible = log.sizes.get("visible")
    if visible and options.gpu_memory is None:
        take("gpu_memory", "--gpu-memory", f"{visible:.0f}B", f"{visible / 2**30:.2f} GiB")
    return options._replace(**found), ReadLog(log, ending, model is not None)


def _number(log: EngineLog, name: str) -> str | None:
    value = log.setting_number(name)
    if value is None and name == "max_model_len":
        value = log.counts.get("needed_length")  # a refusal names it
    if value is None or value <= 0:
        return None
    return f"{value:g}" if name == "memory_share" else str(int(value))


def _model(log: EngineLog) -> tuple[str, str]:
    """The catalogue's name of the log's model, and the ending that names its format."""
    name = log.settings.get("model", "")
    # A path on somebody's disk ends in the model's name.
    for tried in (name, *re.findall(r"[^/]+/[^/]+$", name), name.rstrip("/").rpartition("/")[2]):
        # What a log says is a name, never a file of this machine.
        if tried and not tried.endswith((".yaml", ".yml", ".json")):
            try:
                found, ending = load_edition(tried.strip("./"))
            except CapplanError:
                continue
            return found.id, ending
    said = f"names `{name[:60]}`, which is not in the catalogue" if name else "names no model"
    raise CapplanError(f"the log {said}", hint="give --model: a name, a YAML file or a config.json")


def _known(load: Callable[[str], object], name: str | None) -> str | None:
    for tried in (name, re.sub(r"^(NVIDIA|AMD) ", "", name or "")):
        try:
            if tried:
                load(tried)
                return tried
        except CapplanError:
            continue
    return None
