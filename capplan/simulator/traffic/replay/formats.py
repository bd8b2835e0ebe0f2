"""Which columns mean what: the published formats by name, then any file with telling names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from capplan.errors import CapplanError, Location, nearest_name


@dataclass(frozen=True, slots=True)
class Format:
    """Names of the fields, in lower case with `_`; the first that a file has counts.

    `time` maps the names of the time to their unit, "" where the value has to tell.
    """

    name: str
    prompt: tuple[str, ...]
    output: tuple[str, ...]
    time: Mapping[str, str] = field(default_factory=dict)


AZURE = Format("azure", ("contexttokens",), ("generatedtokens",), {"timestamp": ""})
BURSTGPT = Format("burstgpt", ("request_tokens",), ("response_tokens",), {"timestamp": "s"})
VIDUR = Format("vidur", ("num_prefill_tokens",), ("num_decode_tokens",), {"arrived_at": "s"})
MOONCAKE = Format("mooncake", ("input_length",), ("output_length",), {"timestamp": "ms"})
LLMSERVINGSIM = Format(
    "llmservingsim", ("input_toks",), ("output_toks",), {"arrival_time_ns": "ns"}
)
_PROMPTS = (
    "prompt_tokens", "num_prompt_tokens", "input_tokens", "num_input_tokens", "input_length",
    "prompt_length", "input_len", "prompt_len", "context_tokens", "prefill_tokens", "isl",
    "prompt", "input",
)  # fmt: skip
_OUTPUTS = (
    "output_tokens", "num_output_tokens", "completion_tokens", "generated_tokens",
    "output_length", "completion_length", "output_len", "decode_tokens", "osl", "output",
    "completion", "response",
)  # fmt: skip
_TIMES = {
    "arrival_s": "s", "arrival_ms": "ms", "arrival_us": "us", "arrival_ns": "ns",
    "arrival_time_s": "s", "arrival_time_ms": "ms", "time_s": "s", "time_ms": "ms",
    "timestamp_s": "s", "timestamp_ms": "ms", "arrival": "s", "arrival_time": "s", "time": "s",
    "timestamp": "s", "ts": "s", "start_time": "s",
}  # fmt: skip
_ALL = (AZURE, BURSTGPT, VIDUR, MOONCAKE, LLMSERVINGSIM)
PUBLISHED = {form.name: form for form in _ALL}
_ANY_PROMPT = (*_PROMPTS, *(name for form in _ALL for name in form.prompt))
_ANY_OUTPUT = (*_OUTPUTS, *(name for form in _ALL for name in form.output))
_ANY_TIME = {**_TIMES, "arrived_at": "s", "arrival_time_ns": "ns"}
CSV = Format("csv", _ANY_PROMPT, _ANY_OUTPUT, _ANY_TIME)
# In JSON lines a bare `timestamp` counts milliseconds in some tools and seconds in others.
JSONL = Format("jsonl", _ANY_PROMPT, _ANY_OUTPUT, {**_ANY_TIME, "timestamp": "?", "ts": "?"})


@dataclass(frozen=True, slots=True)
class Columns:
    """The fields of one file, as it spells them; None where it has none."""

    format: str
    prompt: str | None
    output: str | None
    time: str | None
    time_unit: str  # "" where the first value has to tell, "?" where nothing does
    hash_ids: str | None
    session: str | None


def normal(name: str) -> str:
    """A field's name as the tables above have it.

    >>> normal(" Request tokens")
    'request_tokens'
    """
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def columns_of(
    names: Iterable[str], generic: Format, wanted: str, given: Mapping[str, str], place: Location
) -> Columns:
    """What the fields of a file mean.

    `wanted` is a format's name or "auto"; `given` names fields itself, by role. Raises CapplanError
    where neither prompts nor a given field are found.
    """
    spelt = {normal(name): name for name in names}
    if wanted in PUBLISHED:
        form = PUBLISHED[wanted]
    else:
        known = (f for f in _ALL if f.prompt[0] in spelt and f.output[0] in spelt)
        form = next(known, generic) if wanted == "auto" else generic
    for role, name in given.items():
        if normal(name) not in spelt:
            raise no_such_field(name, role, spelt, place)
    found: dict[str, str | None] = {
        "prompt": _first(form.prompt, spelt),
        "output": _first(form.output, spelt),
        "time": _first(form.time, spelt),
        "hash_ids": spelt.get("hash_ids"),
        "session": _first(("session_id", "conversation_id"), spelt),
    }
    found.update({role: spelt[normal(name)] for role, name in given.items()})
    if found["prompt"] is None:
        raise _no_prompts(form, spelt, place)
    unit = form.time.get(normal(found["time"] or ""), "?")
    return Columns(form.name, **found, time_unit=unit)


def _first(names: Iterable[str], spelt: Mapping[str, str]) -> str | None:
    return next((spelt[name] for name in names if name in spelt), None)


def _no_prompts(form: Format, spelt: Mapping[str, str], place: Location) -> CapplanError:
    if spelt and all(name.replace(".", "").isdigit() for name in spelt):
        hint = "write a line like `arrival_s,prompt_tokens,output_tokens` above it"
        return CapplanError("the first line is no header", hint=hint, location=place)
    return no_lengths("prompt", form.prompt, spelt, place)


def no_lengths(
    role: str, known: tuple[str, ...], spelt: Mapping[str, str], place: Location
) -> CapplanError:
    """Nothing holds the lengths of prompts or outputs."""
    near = next(filter(None, (nearest_name(name, known) for name in spelt)), None)
    advice = f"did you mean `{near}`? " if near else ""
    wanted = f"`{known[0]}`" if len(known) == 1 else f"a known name (`{known[0]}`)"
    own = ", or give `output` (--output-tokens)" if role == "output" else ""
    hint = f"{advice}{_has(spelt)}; name the right one with `columns: {{{role}: ...}}`{own}"
    problem = f"no field holds the {role} lengths: none is called {wanted}"
    return CapplanError(problem, hint=hint, location=place)


def no_such_field(name: str, role: str, spelt: Mapping[str, str], place: Location) -> CapplanError:
    """A field that was asked for, as `role`, and is not there."""
    near = nearest_name(normal(name), spelt)
    hint = f"did you mean `{spelt[near]}`?" if near else _has(spelt)
    return CapplanError(f"there is no field `{name[:40]}` (`{role}`)", hint=hint, location=place)


def outputs_of(form_name: str, generic: Format) -> tuple[str, ...]:
    """The names under which a format has its outputs."""
    return PUBLISHED.get(form_name, generic).output


def _has(spelt: Mapping[str, str]) -> str:
    names = ", ".join(name[:40] for name in list(spelt.values())[:20])
    return f"the file has: {names or 'nothing'}"
