"""One row of logged facts, read: the model, the GPU, the engine's family, the settings.

What cannot be read is a reason, not an exception: the benchmark lists it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from capplan.errors import CapplanError
from capplan.specs.catalogue import load_hardware
from capplan.specs.editions import WeightEdition, load_edition, weight_edition
from capplan.specs.engine import EngineSpec
from capplan.specs.engine_catalogue import engine_at, load_engine
from capplan.specs.hardware import HardwareSpec
from capplan.specs.model import ModelSpec

GIB = 2**30
_KV_FORMATS = {"fp8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "int8": "int8", "": None}
# vLLM on these is another package, which no profile describes.
PLUGINS = re.compile(r"\bascend\b|\bgaudi\b|\btpu\b", re.IGNORECASE)


class NotEvaluated(Exception):  # noqa: N818 - a reason, not a fault
    """Why a row says nothing about a measure."""


@dataclass(frozen=True)
class Row:
    cells: dict[str, str]

    def text(self, key: str) -> str:
        return (self.cells.get(key) or "").strip()

    def number(self, key: str) -> float | None:
        try:
            return float(self.text(key))
        except ValueError:
            return None

    def count(self, key: str) -> int | None:
        value = self.number(key)
        return None if value is None else int(value)

    @property
    def id(self) -> str:
        return self.text("id")

    @cached_property
    def _edition(self) -> tuple[ModelSpec, str, str]:
        if self.text("model_inferred") == "1":
            raise NotEvaluated("the log does not name the model")
        name = re.sub(r"\s*\(.*", "", self.text("model")).strip()
        if not name:
            raise NotEvaluated("the log does not name the model")
        if " + " in name or self.text("spec_decode"):
            raise NotEvaluated("a drafter or adapters share the memory")
        try:
            found, ending = load_edition(name)
        except CapplanError:
            raise NotEvaluated(f"`{name}` is not in the catalogue") from None
        return found.spec, ending, found.id

    @property
    def model(self) -> ModelSpec:
        return self._edition[0]

    @property
    def model_id(self) -> str:
        return self._edition[2]

    @cached_property
    def edition(self) -> WeightEdition:
        model, ending, _ = self._edition
        stated = f"{self.text('quant')} {ending}".strip()
        if not stated and re.search(r"\d.?bit", self.text("model")):
            raise NotEvaluated("the edition's number format is not stated")
        edition = weight_edition(model, stated, self.text("dtype"))
        if edition is None:
            raise NotEvaluated(f"the bytes of `{stated}` are not known")
        if edition.kernel is None and model.stored_format == "mxfp4":
            return WeightEdition(edition.format, edition.groups, self.engine.mxfp4_kernel)
        return edition

    @cached_property
    def engine(self) -> EngineSpec:
        """The row's own version; `0.2x` is one of the twenties; without one, the date decides."""
        name, text = self.text("engine"), self.text("version")
        if PLUGINS.search(f"{text} {self.text('gpu')}"):
            raise NotEvaluated("a platform plugin of vLLM, without a profile")
        decade = re.search(r"\b0\.2x", text)
        version = re.search(r"\d+\.\d+(\.\d+)?", text)
        try:
            if "(V0" in text:
                return load_engine(name, "0.7")
            if "(V1" in text and text.startswith("0.7"):
                return load_engine(name, "0.8")
            if version and not decade:
                return load_engine(name, version[0])
            return engine_at(name, self.text("date")[:7] if not decade else "9999-12")
        except CapplanError as error:
            raise NotEvaluated(error.message) from None

    @cached_property
    def tp(self) -> int:
        tp = self.count("tp")
        if tp is None:
            raise NotEvaluated("the parallelism is not stated")
        return tp

    @property
    def pp(self) -> int:
        return self.count("pp") or 1

    @property
    def dcp(self) -> int:
        found = re.search(r"dcp=(\d+)", self.text("ep_dp_dcp"))
        return int(found[1]) if found else 1

    @cached_property
    def kv_format(self) -> str:
        stated = self.text("kv_cache_dtype").lower()
        if stated not in _KV_FORMATS:
            raise NotEvaluated(f"KV format `{stated}`")
        wide = "fp32" if self.edition.format == "fp32" else "bf16"
        return _KV_FORMATS[stated] or wide

    @cached_property
    def hardware(self) -> HardwareSpec | None:
        """The catalogue's GPU of exactly this name and memory, or None."""
        text = re.sub(r"\s*\(.*", "", re.sub(r"^\d+x ", "", self.text("gpu"))).strip()
        if not text or "+" in text:
            return None
        size = re.search(r"(\d+) ?GB", text)
        for name in (text, re.sub(r"\s*\d+ ?GB.*", "", text)):
            try:
                spec = load_hardware(name).spec
            except CapplanError:
                continue
            marketed = spec.memory.marketed / 1e9
            if size is None or abs(marketed / float(size[1]) - 1) < 0.08:
                return spec
        return None

    @cached_property
    def memory_bytes(self) -> float:
        """What the log prints of the GPU's memory; the catalogue's figure where it does not."""
        stated = self.number("gpu_mem_gib")
        if stated is not None and self.text("engine") != "sglang":
            return stated * GIB
        if self.hardware is not None:
            return float(self.hardware.visible_memory_bytes)
        if stated is not None:
            return stated * GIB
        raise NotEvaluated("the GPU's memory is not stated")

    @cached_property
    def stated_share(self) -> float | None:
        share = self.number("gpu_memory_utilization")
        return self.number("mem_fraction_static") if share is None else share

    @property
    def logged_pool_gib(self) -> float | None:
        """The printed pool of one GPU; TensorRT-LLM prints what is free, of which it takes 0.9."""
        if (k := self.number("sgl_k_gb")) is not None:
            return k + (self.number("sgl_v_gb") or 0.0)
        if (kv := self.number("sgl_kv_gb")) is not None:
            return kv
        pool = self.number("kv_avail_gib")
        if pool is not None and self.engine.budget_rule == "share-of-free-after-load":
            return pool * self.engine.memory_share(1)
        return pool

    @property
    def printed_tokens(self) -> int | None:
        """The size of the cache in tokens, in whatever form the version prints it."""
        block = self.count("block_size") or self.engine.defaults.block_size
        blocks = self.count("gpu_blocks")
        return (
            self.count("kv_tokens")
            or (blocks * block if blocks else None)
            or self.count("sgl_tokens")
            or self.count("err_kv_tokens")
        )

    @property
    def max_model_len(self) -> int | None:
        """The longest request; newer versions print concurrency for it. None: the model's own."""
        keys = ("max_model_len", "max_conc_len", "err_max_seq_len")
        return next((length for key in keys if (length := self.count(key))), None)

    @property
    def known_memory_bytes(self) -> float:
        """Memory where it is known; else none, which is the class of small GPUs."""
        try:
            return self.memory_bytes
        except NotEvaluated:
            return 0.0
