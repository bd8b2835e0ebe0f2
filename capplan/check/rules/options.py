"""Options themselves: removed, ignored, unknown, or set to what cannot be."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.check.cases import Case
from capplan.check.deployment import parse_number
from capplan.check.flag_history import BY_FLAG, Change
from capplan.check.flag_tables.tables import TABLES
from capplan.check.flags import Flag
from capplan.check.rules.rule import Remark, rule
from capplan.errors import nearest_name
from capplan.specs.engine import version_key

_COUNTS = ("tp", "pp", "dp", "max_num_seqs", "max_num_batched_tokens", "block_size")
_FREE_TOKENS = ("auto", "-1")


def _changes(case: Case) -> Iterator[tuple[Flag, Change]]:
    if case.engine == "vllm":
        for flag in case.deployment.flags:
            change = BY_FLAG.get(flag.name or "")
            if change is not None:
                yield flag, change


def _since(case: Case, version: str | None) -> bool:
    known = case.engine_version
    return known is not None and version is not None and version_key(known) >= version_key(version)


@rule("CP029", "flag-removed", "error", "an option that this engine version no longer has")
def flag_removed(case: Case) -> Iterator[Remark]:
    """An unknown option ends the server before it starts. Said where the version is known by the
    image's tag."""
    for flag, change in _changes(case):
        if _since(case, change.removed) and not flag.from_mapping:
            yield Remark(
                f"--{change.flag} is gone from vLLM {change.removed} on; this is "
                f"{case.engine_version}",
                flag,
                (change.source,),
                change.instead,
            )


@rule("CP030", "flag-ignored", "warning", "an option without effect in this engine version")
def flag_ignored(case: Case) -> Iterator[Remark]:
    """An option that does nothing reads as if something were limited, swapped or scheduled that is
    not. Where the version is not known, options that newer versions have removed are named too."""
    unknown = case.engine_version is None
    for flag, change in _changes(case):
        if _since(case, change.removed) and not flag.from_mapping:
            continue
        if _since(case, change.ignored) and not (case.is_v0 and change.ignored == "0.8"):
            yield Remark(
                f"--{change.flag} has no effect from vLLM {change.ignored} on",
                flag,
                (change.source,),
                change.instead,
            )
        elif unknown and change.removed is not None and not case.deployment.partial:
            yield Remark(
                f"--{change.flag} ends vLLM from {change.removed} on; the image has no version",
                flag,
                (change.source,),
                change.instead,
            )


@rule("CP031", "flag-unknown", "warning", "an option that the engine does not know")
def flag_unknown(case: Case) -> Iterator[Remark]:
    """An abbreviation that fits two options, or a name next to a real one, is refused by the
    engine's parser. Options that are only missing from our list are not mentioned."""
    table = TABLES.get(case.engine)
    for flag in case.deployment.flags if table is not None else ():
        if flag.name is not None or flag.from_mapping or table is None:
            continue
        name = flag.written.lstrip("-").replace("_", "-")
        if flag.candidates and table.abbreviates:
            shown = ", ".join(f"--{c}" for c in flag.candidates[:4])
            yield Remark(f"`{flag.written}` could be {shown}", flag, (), "write the name out")
            continue
        near = nearest_name(name, table.names()) if len(name) > 3 else None
        if near is not None and _close(name, near, flag):
            yield Remark(
                f"{case.engine} has no option `{flag.written}`", flag, (), f"did you mean --{near}?"
            )


def _close(name: str, near: str, flag: Flag) -> bool:
    """One dash too few, or a slip of a letter or two in a long name."""
    if not flag.written.startswith("--"):
        return name == near
    short, long = sorted((name, near), key=len)
    differ = sum(a != b for a, b in zip(short, long, strict=False)) + len(long) - len(short)
    return differ <= 2 and len(name) > 6


@rule("CP032", "value-invalid", "error", "a value that the engine refuses")
def value_invalid(case: Case) -> Iterator[Remark]:
    """Shares are above 0 and at most 1, degrees and counts are whole numbers from 1. The engine's
    parser or its configuration stops at anything else."""
    for flag in case.deployment.flags:
        if flag.meaning is None or not flag.certain or not flag.text or flag.value is None:
            continue
        fault = _fault(flag)
        if fault is not None:
            yield Remark(
                f"{flag.name}: `{flag.text[:40]}` {fault}", flag, (), "give a value that it takes"
            )


def _fault(flag: Flag) -> str | None:
    number = parse_number(flag.text)
    if flag.meaning == "memory_share":
        if number is None:
            return "is not a number"
        return None if 0 < number <= 1 else "is not above 0 and at most 1"
    if flag.meaning in _COUNTS:
        if flag.name == "chunked-prefill-size" and number == -1:
            return None
        if number is None or number != int(number):
            return "is not a whole number"
        return None if number >= 1 else "is below 1"
    if flag.meaning == "max_model_len" and flag.text not in _FREE_TOKENS:
        if number is None:
            return "is not a number of tokens"
        return None if number >= 1 else "is below 1"
    return None


RULES = (flag_removed, flag_ignored, flag_unknown, value_invalid)
