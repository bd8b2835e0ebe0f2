"""What a plan asks of an engine, in one set of names, before an engine's own words for it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from capplan.errors import CapplanError, did_you_mean
from capplan.formulas.number_formats import FORMATS
from capplan.results.launch import LaunchOption
from capplan.specs.plan_engine import FlagValues

# Formats that engines convert to while loading; the others are those of a checkpoint.
_CONVERTED = ("fp8",)
WIDE_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


@dataclass(frozen=True)
class Wanted:
    """Settings of one replica. None is left to the engine, and noted."""

    model: str
    tp: int
    pp: int
    dp: int
    ep: int
    dcp: int
    flags: FlagValues
    stored_format: str
    activation_dtype: str
    max_context_tokens: int

    @property
    def own_length(self) -> str:
        """Where the plan sets no longest request."""
        return f" (the model's own, {self.max_context_tokens:,} tokens)"

    @property
    def gpus(self) -> int:
        return self.tp * self.pp * self.dp

    @property
    def dtype(self) -> str | None:
        """`bfloat16` as engines write it; None keeps what the checkpoint says."""
        text = self.flags.dtype
        return None if text in (None, "auto") else WIDE_DTYPES.get(str(text).lower(), text)

    @property
    def quantization(self) -> str | None:
        """What the weights are converted to while they load.

        Raises CapplanError for a format that only a checkpoint can have.
        """
        text = self.flags.quantization
        if text is None or text.lower() == self.stored_format:
            return None
        name = text.lower()
        if name in FORMATS and name not in _CONVERTED:
            raise CapplanError(
                f"no engine converts weights to {name} while it loads them",
                hint=f"plan with a checkpoint that is stored in it: `capplan models list` "
                f"names those in {name.partition('-')[0]}",
            )
        return text

    @property
    def kv_dtype(self) -> str | None:
        """`fp8`, `fp8_e4m3`, ...; None where it is that of the activations."""
        text = self.flags.kv_cache_dtype
        if text is None or text.lower() in ("auto", self.activation_dtype):
            return None
        if text.lower() in WIDE_DTYPES or text.lower() in WIDE_DTYPES.values():
            return None if WIDE_DTYPES.get(text.lower(), text) == self.dtype else text
        return text.lower()

    @property
    def kv_format(self) -> str:
        """The same as a number format that sizes are reckoned in."""
        name = self.kv_dtype or self.activation_dtype
        wide = {long: short for short, long in WIDE_DTYPES.items()}
        return "fp8" if re.fullmatch(r"fp8(_e\dm\d)?", name) else wide.get(name, name)


@dataclass
class Words:
    """Options one after another, and what had to be said beside them."""

    options: list[LaunchOption] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # to the engine's defaults

    def add(self, name: str, value: object = None, why: str | None = None) -> None:
        self.options.append(LaunchOption(name, None if value is None else str(value), why))

    def setting(self, name: str, value: object, what: str) -> None:
        """An option where the plan sets it; else a note that it is the engine's to choose."""
        if value is None:
            self.left.append(what)
        else:
            self.add(name, value)

    def switch(self, on: str, off: str | None, value: bool | None, what: str) -> None:
        if value is None:
            self.left.append(what)
        elif value:
            self.add(on)
        elif off is not None:
            self.add(off)


def refuse(what: str, engine: str, hint: str) -> CapplanError:
    return CapplanError(f"{engine} has no option for {what}", hint=hint)


def known(text: str, options: tuple[str, ...], what: str) -> str:
    """One of the values that an option takes; raises CapplanError with the nearest."""
    if text in options:
        return text
    raise CapplanError(
        f"{what}: `{text[:40]}` is not one of {', '.join(options)}",
        hint=did_you_mean(text[:40], options),
    )
