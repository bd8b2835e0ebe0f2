"""The section `traffic:` of a plan: who sends what, and when."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PlainValidator, Strict, WithJsonSchema, model_validator

from capplan.errors import QuantityError
from capplan.specs.fields import Count, CountOrZero, Flag, Fraction, Spec, SpecError, Text, shown
from capplan.specs.length_files import LengthFile, parse_length_file
from capplan.specs.lengths import Lengths, parse_lengths
from capplan.specs.randomness import Arrivals, Pauses, parse_arrivals, parse_pauses
from capplan.specs.rates import (
    MAX_RATE_PER_S,
    ConstantRate,
    Diurnal,
    Factor,
    Positive,
    Rate,
    ServegenRates,
    Span,
    SpanOrZero,
)
from capplan.specs.slos import Slos

# What a class of requests is where nobody says otherwise.
DEFAULT_RATE_PER_S = 4.0  # what one replica of the default question carries within its limits
DEFAULT_PROMPT_TOKENS = 1024
DEFAULT_OUTPUT_TOKENS = 256
DEFAULT_NUM_REQUESTS = 10_000
MAX_TURNS = 200  # of a conversation: each is a link of its chain of prefixes
TraceFormat = Literal[
    "auto", "azure", "burstgpt", "mooncake", "vidur", "llmservingsim", "sharegpt", "vllm-custom",
    "csv", "jsonl",
]  # fmt: skip


def _lengths(value: Any) -> Lengths | LengthFile:
    if isinstance(value, (Lengths, LengthFile)):  # of a spec that is made from another
        return value
    text = _text(value, "lognormal:1024,0.8")
    return parse_length_file(text) if text.startswith("@") else parse_lengths(text)


def _text(value: Any, example: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise QuantityError(f"{shown(value)} is not understood", hint=f"write it like `{example}`")
    return str(value).strip()


_TEXT = WithJsonSchema({"type": ["string", "integer"]})
LengthsField = Annotated[Lengths | LengthFile, PlainValidator(_lengths), _TEXT]
ArrivalsField = Annotated[
    Arrivals, PlainValidator(lambda value: parse_arrivals(_text(value, "gamma:2.5"))), _TEXT
]
PausesField = Annotated[
    Pauses, PlainValidator(lambda value: parse_pauses(_text(value, "exponential:10s"))), _TEXT
]


def _popularity(text: str) -> str:
    if not re.fullmatch(r"uniform|zipf(:\d{1,3}(\.\d+)?)?", text):
        raise QuantityError(f"{shown(text)} is no popularity", hint="write `uniform` or `zipf:1.1`")
    return text


Priority = Annotated[int, Strict(), Field(ge=-(10**9), le=10**9)]


class SystemPrompts(Spec):
    """Prompts that many requests begin with; they stand before the lengths of `prompt`.

    `popularity` is `uniform`, or `zipf:1.1`: the k-th is used in proportion to k^-1.1. `share` of
    the requests have one.
    """

    count: Annotated[Count, Field(le=100_000)] = 1
    tokens: LengthsField
    popularity: Annotated[Text, AfterValidator(_popularity)] = "uniform"
    share: Fraction = 1.0

    @property
    def exponent(self) -> float:
        """Of Zipf's law; 0 is uniform."""
        name, _, exponent = self.popularity.partition(":")
        return 0.0 if name == "uniform" else float(exponent or 1)


class Chat(Spec):
    """Conversations: each turn's prompt is the whole history and the user's own new tokens.

    The lengths of `prompt` and `output` are those of one turn; the next turn is sent
    `think_time` after the answer.
    """

    turns: LengthsField  # a distribution is cut at MAX_TURNS
    think_time: PausesField

    @model_validator(mode="after")
    def _few_turns(self) -> Chat:
        turns = self.turns
        if isinstance(turns, Lengths) and turns.limited_mean(MAX_TURNS + 1) > MAX_TURNS:
            raise SpecError(f"are more than {MAX_TURNS} turns", "turns")
        return self


class ClosedLoop(Spec):
    """A fixed number of users; each sends the next request `think_time` after an answer."""

    users: Annotated[Count, Field(le=1_000_000)]
    think_time: PausesField = Pauses("0s", "fixed", 0.0)
    ramp_up: SpanOrZero = 0.0  # the users begin evenly over this time


class TraceColumns(Spec):
    """What the file calls its fields, where their names do not tell."""

    prompt: Text | None = None
    output: Text | None = None
    time: Text | None = None
    session: Text | None = None

    @property
    def given(self) -> dict[str, str]:
        return {name: value for name, value in self if value is not None}


class Trace(Spec):
    """A recorded file of requests: `docs/traffic.md` lists the formats."""

    file: Text
    format: TraceFormat = "auto"
    columns: TraceColumns | None = None
    speed: Positive = 1.0  # 2 plays it twice as fast
    start: SpanOrZero = 0.0  # of the trace's own time
    end: Span | None = None
    time_unit: Literal["auto", "s", "ms", "us", "ns"] = "auto"
    sort: Flag = False  # rows whose times run backwards: put in order, or an error
    spread: SpanOrZero = 0.0  # equal times are spread at random over this time (Mooncake: 3s)
    skip_bad_rows: Flag = False
    where: Annotated[dict[Text, Text], Field(max_length=20)] = {}  # only rows with these values
    block_tokens: Count = 512  # of one hash id
    sessions: Flag = False  # requests of one session continue from each other's tokens
    characters_per_token: Annotated[float, Strict(), Field(ge=0.1, le=100)] = 4.0

    @model_validator(mode="after")
    def _window(self) -> Trace:
        if self.end is not None and self.end <= self.start:
            raise SpecError("is not after `start`", "end")
        return self


class TrafficClass(Spec):
    """Requests of one kind."""

    name: Annotated[Text, Field(max_length=40)] | None = None
    rate: Rate | None = None
    arrivals: ArrivalsField = Arrivals()
    peak_factor: Factor = 1.0  # multiplies a plain rate
    prompt: LengthsField | None = None
    output: LengthsField | None = None
    max_tokens: Count | None = None  # the limit that clients announce
    priority: Priority = 0  # lower is served first
    system_prompts: SystemPrompts | None = None
    chat: Chat | None = None
    trace: Trace | None = None
    slos: Slos | None = Field(
        default=None, description="Promises to this class alone, for `capplan gpus`."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> TrafficClass:
        if self.peak_factor != 1 and not isinstance(self.rate, ConstantRate | None):
            hint = "give it as `rate.peak_factor`" if isinstance(self.rate, Diurnal) else None
            raise SpecError("belongs to a plain rate, not to a curve", "peak_factor", hint=hint)
        plain_per_s = self.rate.rate if isinstance(self.rate, ConstantRate) else 0.0
        if plain_per_s * self.peak_factor > MAX_RATE_PER_S:
            raise SpecError("is out of range with this `peak_factor`", "rate")
        if isinstance(self.rate, ServegenRates) and "arrivals" in self.model_fields_set:
            raise SpecError("are those of ServeGen's clients here; leave them out", "arrivals")
        if self.trace is not None:
            self._replayed()
        if self.arrivals.kind == "burst" and self.arrivals.size is None and self.rate is not None:
            hint = "write `burst:40` for forty at a time, or leave out `rate`"
            raise SpecError("all at once have no `rate`", "arrivals", hint=hint)
        return self

    def _replayed(self) -> None:
        for field in ("chat", "system_prompts"):
            if getattr(self, field) is not None:
                raise SpecError("and `trace` exclude each other", field)
        if self.arrivals.kind != "burst" and "arrivals" in self.model_fields_set and not self.rate:
            hint = "with a `rate`, requests come at it; without both, as they were recorded"
            raise SpecError("need a `rate` beside a trace", "arrivals", hint=hint)


_OF_A_CLASS = frozenset(TrafficClass.model_fields) - {"name"}


class TrafficSpec(TrafficClass):
    """The whole: one class written here, or several under `classes`."""

    requests: Annotated[Count, Field(le=10**8)] | None = None
    duration: Span | None = None
    seed: CountOrZero = 0
    closed_loop: ClosedLoop | None = None
    classes: Annotated[tuple[TrafficClass, ...], Field(max_length=100)] = ()

    @property
    def parts(self) -> tuple[TrafficClass, ...]:
        """Its classes: those under `classes`, else itself as the only one."""
        return self.classes or (self,)

    @property
    def is_stationary(self) -> bool:
        """Whether it goes on as it began, so that a warm-up can be cut."""
        return all(
            part.trace is None
            and isinstance(part.rate, ConstantRate | None)
            and not (part.arrivals.kind == "burst" and part.arrivals.size is None)
            for part in self.parts
        )

    @model_validator(mode="after")
    def _whole(self) -> TrafficSpec:
        if self.classes and (given := sorted(_OF_A_CLASS & self.model_fields_set)):
            raise SpecError("stands beside `classes`", given[0], hint="write it into each class")
        names = [part.name for part in self.classes]
        for index, name in enumerate(names):
            if name is None and len(names) > 1:
                raise SpecError("is missing", "classes", index, "name")
            if name in names[:index]:
                raise SpecError(f"`{name}` stands twice", "classes", index, "name")
        if self.closed_loop is not None:
            self._closed()
        if self.slos is not None:
            raise SpecError("belong to a class, or to the plan itself", "slos")
        for index, part in enumerate(self.classes):
            if part.slos is not None and part.slos.goodput is not None:
                raise SpecError(
                    "is a promise of the whole plan", "classes", index, "slos", "goodput"
                )
        return self

    def _closed(self) -> None:
        for field in ("rate", "classes"):
            if getattr(self, field):
                hint = "users send when they have their answer, at no rate of their own"
                raise SpecError("and `closed_loop` exclude each other", field, hint=hint)
        if self.arrivals != Arrivals():
            raise SpecError("and `closed_loop` exclude each other", "arrivals")
        if self.chat and "think_time" in self.closed_loop.model_fields_set:  # type: ignore[union-attr]
            raise SpecError("is that of `chat`", "closed_loop", "think_time")
