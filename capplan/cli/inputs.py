"""Option texts become numbers and specifications; what was not said becomes an assumption."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar, get_args

from capplan import units
from capplan.errors import CapplanError, QuantityError, did_you_mean
from capplan.formulas.number_formats import FORMATS, OFFERED_FORMATS
from capplan.planner import question as defaults
from capplan.planner.question import EngineSettings
from capplan.results.assumptions import Assumption
from capplan.specs.catalogue import Found, load_all, load_hardware, load_model
from capplan.specs.hardware import HardwareSpec, PriceTier
from capplan.specs.kv_cache import PACKED_MLA, has_states, has_windows
from capplan.specs.model import ModelSpec

T = TypeVar("T")

MAX_TOKENS = 100_000_000
MAX_COUNT = 100_000
MAX_LIST = 64
MOST_STAGES = 64
MAX_SECONDS = 7 * 86_400.0
MAX_LIFE_S = 100 * 365 * 86_400.0
MAX_RATE_PER_S = 1e9
MAX_BYTES = 10**15

_ALIASES = {
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "fp4": "nvfp4",
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
}


class Inputs:
    """Reads options one by one; ``assumptions`` lists those that were left out."""

    def __init__(self) -> None:
        self.assumptions: list[Assumption] = []

    def assume(self, what: str, value: str, option: str) -> None:
        self.assumptions.append(Assumption(what, value, option))

    def _read(self, option: str, text: str, parse: Callable[[str], T]) -> T:
        try:
            return parse(text)
        except QuantityError as error:
            raise CapplanError(f"{option}: {error.message}", hint=error.hint) from None

    def _bounded(self, option: str, text: str, value: T, most: T, shown: str) -> T:
        if value > most:  # type: ignore[operator]
            short = text if len(text) <= 40 else text[:40] + "..."
            raise CapplanError(f"{option}: `{short}` is out of range", hint=f"at most {shown}")
        return value

    def duration(self, option: str, text: str | None, default_s: float, what: str) -> float:
        """Seconds above zero, at most a week."""
        if text is None:
            self.assume(what, units.format_duration(default_s), option)
            return default_s
        value = self._read(option, text, lambda t: units.parse_duration(t, positive=True))
        return self._bounded(option, text, value, MAX_SECONDS, "a week")

    def long_duration(self, option: str, text: str) -> float:
        """Seconds above zero, at most a century: what machines live for."""
        value = self._read(option, text, lambda t: units.parse_duration(t, positive=True))
        return self._bounded(option, text, value, MAX_LIFE_S, "100 years")

    def rate(self, text: str | None, factor: str | None) -> float:
        """Requests a second at the peak."""
        if text is None:
            rate = defaults.DEFAULT_ARRIVAL_RATE_PER_S
            self.assume("traffic", units.format_rate(rate), "--qps")
        else:
            rate = self._read("--qps", text, lambda t: units.parse_rate(t, positive=True))
        if factor is None:
            self.assume("peak over mean traffic", "1", "--peak-factor")
            peak = rate
        else:
            peak = rate * self.number("--peak-factor", factor, least=1.0, most=1000.0)
        return self._bounded("--qps", text or "", peak, MAX_RATE_PER_S, "1e9 requests/s")

    def number(self, option: str, text: str, *, least: float, most: float) -> float:
        """A plain number within bounds."""
        try:
            value = float(text) if re.fullmatch(r"[0-9.eE+]{1,20}", text, re.ASCII) else None
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise CapplanError(
                f"{option}: `{text[:40]}` is not a number from {least:g} to {most:g}"
            )
        return value

    def tokens(self, option: str, text: str | None, default: int, what: str | None) -> int:
        """No assumption is noted where ``what`` is None."""
        if text is None:
            if what is not None:
                self.assume(what, f"{units.format_tokens(default)} tokens", option)
            return default
        value = self._read(option, text, lambda t: units.parse_tokens(t, positive=True))
        return self._bounded(option, text, value, MAX_TOKENS, f"{MAX_TOKENS:,} tokens")

    def token_list(self, option: str, text: str | None, default: str, what: str) -> tuple[int, ...]:
        """Several token counts, ascending and without repeats."""
        if text is None:
            self.assume(what, default.replace(",", ", "), option)
        parts = (default if text is None else text).split(",")
        if len(parts) > MAX_LIST:
            raise CapplanError(f"{option}: {len(parts):,} values are more than {MAX_LIST}")
        values = {self.tokens(option, part, 0, what) for part in parts}
        return tuple(sorted(values))

    def count(
        self, option: str, text: str | None, default: int, what: str | None, *, least: int = 1
    ) -> int:
        """A whole number; no assumption is noted where ``what`` is None."""
        if text is None:
            if what is not None:
                self.assume(what, str(default), option)
            return default
        if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) or not least <= int(text) <= MAX_COUNT:
            raise CapplanError(
                f"{option}: `{text[:40]}` is not a whole number from {least} to {MAX_COUNT:,}"
            )
        return int(text)

    def given_count(self, option: str, text: str | None) -> int | None:
        """A whole number from 1; None where nothing was given."""
        return None if text is None else self.count(option, text, 1, None)

    def given_tokens(self, option: str, text: str | None) -> int | None:
        return None if text is None else self.tokens(option, text, 0, "")

    def whole(self, option: str, text: str, *, least: int = 0, most: int = 10**8) -> int:
        """A whole number that may be large: requests, seeds."""
        digits = text.replace(",", "")
        if not re.fullmatch(r"[0-9]{1,10}", digits, re.ASCII) or not least <= int(digits) <= most:
            raise CapplanError(
                f"{option}: `{text[:40]}` is not a whole number from {least} to {most:,}"
            )
        return int(digits)

    def share(self, option: str, text: str | None, default: float, what: str) -> float:
        if text is None:
            self.assume(what, units.format_fraction(default), option)
            return default
        return self._read(option, text, lambda t: units.parse_fraction(t, positive=True))

    def size(self, option: str, text: str | None, default: int, what: str) -> int:
        if text is None:
            self.assume(what, units.format_bytes(default, binary=False), option)
            return default
        value = self._read(option, text, units.parse_bytes)
        return self._bounded(option, text, value, MAX_BYTES, "1 PB")

    def price(self, text: str | None) -> float | None:
        if text is None:
            return None
        value = self._read("--price", text, lambda t: units.parse_money(t, positive=True))
        return self._bounded("--price", text, value, 1e6, "$1,000,000")

    def price_tier(self, text: str | None, price: str | None) -> str:
        """A tier of prices that hardware files know."""
        if text is None:
            return defaults.DEFAULT_PRICE_TIER
        if price is not None:
            raise CapplanError(
                "--commitment says nothing beside --price",
                hint="leave one of them out; --price-factor scales either",
            )
        tiers = get_args(PriceTier)
        if text not in tiers:
            near = did_you_mean(text[:40], tiers) or f"one of: {', '.join(tiers)}"
            raise CapplanError(f"--commitment: `{text[:40]}` is not a kind of price", hint=near)
        return text

    def tp(self, text: str | None) -> int | None:
        """None for `auto`."""
        if text is None:
            self.assume("tensor parallelism", "auto: fewest GPUs", "--tp")
        if text is None or text == "auto":
            return None
        return self.count("--tp", text, 1, None)

    def model(self, name: str | None) -> Found[ModelSpec]:
        if name is None:
            name = defaults.DEFAULT_MODEL
            self.assume("model", name, "--model")
        return load_model(checked_name("--model", name))

    def hardware(self, name: str | None) -> Found[HardwareSpec]:
        if name is None:
            name = defaults.DEFAULT_HARDWARE
            self.assume("accelerator", name, "--hardware")
        return load_hardware(checked_name("--hardware", name))

    def hardware_list(self, names: str | None) -> list[Found[HardwareSpec]]:
        if names == "all":
            return load_all(HardwareSpec, "hardware")
        parts = [None] if names is None else [part.strip() for part in names.split(",")]
        if len(parts) > MAX_LIST:
            raise CapplanError(f"--hardware: {len(parts):,} names are more than {MAX_LIST}")
        found = {entry.id: entry for entry in map(self.hardware, parts)}
        return list(found.values())

    def dtype(self, text: str | None, model: ModelSpec) -> str | None:
        """A weight format; None keeps the stored one."""
        if text is None:
            self.assume("weights", f"as stored: {model.stored_format}", "--dtype")
        if text is None or text == "auto":
            return None
        return _format("--dtype", text)

    def kv_dtype(self, text: str | None, model: ModelSpec, dtype: str | None) -> str:
        """A KV format; by default that of the activations."""
        wide = dtype is not None and FORMATS[dtype].bits >= 16
        default = dtype if wide and dtype is not None else model.activation_dtype
        if text is None:
            self.assume("KV cache", default, "--kv-dtype")
        if text is None or text == "auto":
            return default
        if text.lower() == PACKED_MLA:
            return _packed_mla(model)
        return _format("--kv-dtype", text)

    def engine(
        self,
        model: ModelSpec,
        *,
        dtype: str | None,
        kv_dtype: str | None,
        tp: int | None,
        gpu_memory: str | None,
        utilization: str | None,
        reserve: str | None,
        block_size: str | None,
        budget: int = defaults.DEFAULT_MAX_NUM_BATCHED_TOKENS,
        async_scheduling: bool | None = None,
        enable_prefix_caching: bool | None = None,
        bounds_beside: bool = False,
    ) -> EngineSettings:
        """With ``bounds_beside`` a simulated engine's own memory stands in the answer too."""
        beside = ", in the bounds" if bounds_beside else ""
        weights = self.dtype(dtype, model)
        return EngineSettings(
            dtype=weights,
            kv_dtype=self.kv_dtype(kv_dtype, model, weights),
            tp=tp,
            gpu_memory_utilization=self.share(
                "--gpu-memory-utilization",
                utilization,
                defaults.DEFAULT_GPU_MEMORY_UTILIZATION,
                f"share of visible memory for the engine{beside}",
            ),
            reserve_bytes=self.size(
                "--reserve",
                reserve,
                defaults.DEFAULT_RESERVE_BYTES,
                f"runtime and activations a GPU{beside}",
            ),
            block_size=self.tokens(
                "--block-size", block_size, defaults.DEFAULT_BLOCK_SIZE, "KV block"
            ),
            max_num_batched_tokens=budget,
            gpu_memory_bytes=self.gpu_memory(gpu_memory),
            async_scheduling=self.flag(
                "--no-async-scheduling",
                async_scheduling,
                defaults.DEFAULT_ASYNC_SCHEDULING,
                "asynchronous scheduling" if has_windows(model) else None,
            ),
            enable_prefix_caching=self.flag(
                "--no-enable-prefix-caching",
                enable_prefix_caching,
                defaults.DEFAULT_ENABLE_PREFIX_CACHING,
                "prefix caching" if has_states(model) else None,
            ),
        )

    def flag(self, option: str, value: bool | None, default: bool, what: str | None) -> bool:
        """On or off; no assumption is noted where ``what`` is None, as nothing hangs on it."""
        if value is None and what is not None:
            self.assume(what, on_off(default), option)
        return default if value is None else value

    def gpu_memory(self, text: str | None) -> int | None:
        if text is None:
            return None
        value = self._read("--gpu-memory", text, lambda t: units.parse_bytes(t, positive=True))
        return self._bounded("--gpu-memory", text, value, MAX_BYTES, "1 PB")


def on_off(value: bool) -> str:
    return "on" if value else "off"


def checked_name(option: str, name: str) -> str:
    if not name.strip():
        raise CapplanError(f"{option}: the name is empty", hint="is a variable of the shell unset?")
    if len(name) > 4096 or "\0" in name:
        raise CapplanError(f"{option}: `{name[:40]!a}...` is not a name or a path")
    return name


def _packed_mla(model: ModelSpec) -> str:
    if any(mixer.kind != "mla" for mixer in model.mixers.values()):
        raise CapplanError(
            f"--kv-dtype: `{PACKED_MLA}` packs the latents of MLA; {model.name} keeps others",
            hint="use fp8",
        )
    return PACKED_MLA


def _format(option: str, text: str) -> str:
    name = _ALIASES.get(text.lower(), text.lower())
    if name not in FORMATS:
        known = sorted(OFFERED_FORMATS)
        hint = did_you_mean(name[:40], known) or f"one of: {', '.join(known)}"
        raise CapplanError(f"{option}: `{text[:40]}` is not a number format", hint=hint)
    return name
