"""The state of an installation."""

from __future__ import annotations

from capplan.render.screen import Column, Screen, Table
from capplan.results.doctor import DoctorResult


def screen(result: DoctorResult) -> Screen:
    return Screen(
        headline=_headline(result),
        tables=[_checks(result), _versions(result), _catalogue(result)],
        notes=[f"{c.what}: {c.hint}." for c in result.checks if c.hint and not c.holds],
        next_commands=["capplan gpus --qps 100 --slo-ttft 400ms"] if result.healthy else [],
    )


def _headline(result: DoctorResult) -> str:
    failed = sum(not check.holds for check in result.checks)
    if failed:
        return f"{failed} of {len(result.checks)} checks do not hold."
    return f"All {len(result.checks)} checks hold."


def _checks(result: DoctorResult) -> Table:
    columns = (
        Column("holds", "", lambda holds: "✓ holds" if holds else "✗ fails", right=False),
        Column("what", "", right=False),
        Column("expected", "expected"),
        Column("found", "found"),
    )
    rows = [(check.holds, check.what, check.expected, check.found) for check in result.checks]
    return Table("Checks", columns, rows)


def _versions(result: DoctorResult) -> Table:
    columns = (
        Column("name", "", right=False),
        Column("version", "version", right=False),
        Column("note", "", right=False, prose=True),
    )
    rows: list[tuple[str, str, str]] = [
        ("capplan", result.version or "not installed", result.path),
        ("python", result.python_version, result.python_path),
        *(
            (c.name, c.version or "none", f"extra `{c.extra}`" if c.extra else "")
            for c in result.components
        ),
        ("cache", "", result.cache_path or "empty"),
    ]
    return Table("Versions", columns, rows)


def _catalogue(result: DoctorResult) -> Table:
    columns = (
        Column("kind", "", right=False),
        Column("num_files", "files"),
        Column("path", "folder, the first with a name wins", right=False, prose=True),
    )
    rows = [(place.kind, place.num_files, place.path) for place in result.catalogue]
    return Table("Catalogue (CAPPLAN_PATH puts folders before it)", columns, rows)
