"""`capplan check`: review what a repository deploys; the exit code is the verdict."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

from capplan.check.baseline import read_baseline, write_baseline
from capplan.check.calibrations import OwnServers, read_own_servers
from capplan.check.config import Configs, read_config
from capplan.check.review import ReviewRequest, review, rule_facts
from capplan.cli.environment import environment
from capplan.cli.exit_codes import EXIT_ERROR, EXIT_FINE, EXIT_NO
from capplan.cli.inputs import checked_name
from capplan.cli.version import installed_version
from capplan.errors import UNWRITABLE, CapplanError, did_you_mean
from capplan.results.check import SEVERITIES, CheckInputs, CheckResult

SCHEMA = "capplan.check/1"
FORMATS = ("text", "json", "sarif", "junit", "github", "markdown")
DOCS = "https://github.com/capplan/capplan/blob/main/docs/rules.md"


class CheckOptions(NamedTuple):
    paths: list[str] | None
    config: str | None
    values: list[str] | None
    formats: list[str] | None
    outputs: list[str] | None
    fail_level: str | None
    strict: bool
    allow_empty: bool
    baseline: str | None
    write_baseline: str | None
    diff: str | None
    verbose: bool
    quiet: bool
    list_rules: bool
    explain: str | None
    calibration: str | None
    as_json: bool


def answer(options: CheckOptions) -> int:
    """Check, write every format that was asked for, and return the exit code.

    0: nothing at or above the fail level; 1: something; 2: a file could not be read, or there
    was nothing to check.
    """
    if options.list_rules or options.explain is not None:
        return _explain(options.explain)
    shown, files = _targets(options)
    paths = tuple(options.paths or ["."])
    fixed = read_config(Path(options.config)) if options.config is not None else None
    config = fixed or Configs().of(
        Path(paths[0]) / "x" if Path(paths[0]).is_dir() else Path(paths[0])
    )
    level = _level(options.fail_level or config.spec.fail_level)
    baseline = options.baseline or _beside(config.file, config.spec.baseline)
    request = ReviewRequest(
        paths=paths,
        today=_today(),
        config=fixed,
        values=_values(options.values),
        baseline=read_baseline(Path(baseline)) if baseline is not None else None,
        base=options.diff,
        own=_own_servers(options.calibration),
    )
    result, faults = review(request)
    _say_if_unused(request.own, result)
    inputs = CheckInputs(
        paths, config.file, level, options.strict, options.diff, baseline, request.values,
        options.calibration,
    )  # fmt: skip
    if options.write_baseline is not None:
        num = write_baseline(Path(options.write_baseline), result.findings)
        environment().stderr.write(f"wrote {num} findings to {options.write_baseline}\n")
    for form, path in files:
        _write(Path(path), _render(form, result, inputs, colour=False, quiet=False))
    env = environment()
    env.stdout.write(_render(shown, result, inputs, colour=env.colour, quiet=options.quiet))
    return _verdict(options, result, faults, level)


def _verdict(
    options: CheckOptions, result: CheckResult, faults: list[CapplanError], level: str
) -> int:
    env = environment()
    if options.verbose:
        for name in result.passed_over:
            env.stderr.write(f"passed over: {name}\n")
    for fault in faults:
        env.stderr.write(f"error: {fault.message}\n")
        if fault.location is not None:
            env.stderr.write(f"  --> {fault.location}\n")
        if fault.hint is not None:
            env.stderr.write(f"hint: {fault.hint}\n")
    if faults:
        return EXIT_ERROR
    if not result.deployments and not result.changes and not options.allow_empty:
        env.stderr.write(
            f"error: {result.num_files} files, none of which deploys a model\n"
            "hint: name other paths, or pass --allow-empty\n"
        )
        return EXIT_ERROR
    if options.write_baseline is not None:
        return EXIT_FINE
    strict = options.strict and any(finding.rule == "CP001" for finding in result.findings)
    return EXIT_NO if strict or result.num_at_or_above(level) else EXIT_FINE


def _render(
    form: str, result: CheckResult, inputs: CheckInputs, *, colour: bool, quiet: bool
) -> str:
    if form == "json":
        from capplan.render.json_output import document, to_plain

        return document(SCHEMA, to_plain(inputs), (), result) + "\n"
    if form == "sarif":
        from capplan.render.check_sarif import sarif

        return sarif(result, installed_version() or "0", DOCS)
    if form == "junit":
        from capplan.render.check_junit import junit

        return junit(result, inputs.fail_level)
    if form == "github":
        from capplan.render.check_github import github

        return github(result)
    if form == "markdown":
        from capplan.render.check_markdown import markdown

        return markdown(result)
    from capplan.render.check_text import text

    return text(result, colour=colour, quiet=quiet)


def _targets(options: CheckOptions) -> tuple[str, list[tuple[str, str]]]:
    """The format for stdout, and formats with their files (`sarif=out.sarif`)."""
    shown = "json" if options.as_json else None
    files: list[tuple[str, str]] = []
    for option, text in [
        *(("--format", text) for text in options.formats or ()),
        *(("--output", text) for text in options.outputs or ()),
    ]:
        form, equals, path = text.partition("=")
        if form not in FORMATS:
            hint = did_you_mean(form[:40], FORMATS) or f"one of: {', '.join(FORMATS)}"
            raise CapplanError(f"{option}: `{form[:40]}` is not a format", hint=hint)
        if equals and path:
            files.append((form, path))
        elif option == "--output" or equals:
            raise CapplanError(f"{option}: `{text[:40]}` names no file", hint=f"write {form}=FILE")
        elif shown is not None and shown != form:
            hint = f"write one to a file: --output {form}=FILE"
            raise CapplanError("--format: stdout takes one format", hint=hint)
        else:
            shown = form
    return shown or "text", files


def _level(text: str | None) -> str:
    if text is not None and text not in SEVERITIES:
        hint = did_you_mean(text[:40], SEVERITIES) or "one of: error, warning, info"
        raise CapplanError(f"--fail-level: `{text[:40]}` is not a level", hint=hint)
    return text or "error"


def _values(texts: list[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise CapplanError(f"--set: `{text[:60]}` is not NAME=VALUE", hint="as in --set TP=4")
        found[name.removeprefix(".")] = value
    return found


def _own_servers(file: str | None) -> OwnServers | None:
    return None if file is None else read_own_servers(checked_name("--calibration", file))


def _say_if_unused(own: OwnServers | None, result: CheckResult) -> None:
    """A repository may hold no such deployment today; silence would look like agreement."""
    if own is not None and all(found.calibration != own.file for found in result.deployments):
        environment().stderr.write(
            f"note: {own.file} is of {own.spec.hardware}, on which nothing here is deployed\n"
        )


def _today() -> date:
    """Today, or the day of SOURCE_DATE_EPOCH: the same bytes on any day."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if epoch.isdigit() and len(epoch) < 12:
        return datetime.fromtimestamp(int(epoch), UTC).date()
    return date.today()


def _beside(config: str | None, name: str | None) -> str | None:
    return None if config is None or name is None else str(Path(config).parent / name)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise CapplanError(f"{path} cannot be written: {reason}", hint=UNWRITABLE) from None


def _explain(rule: str | None) -> int:
    """One rule, or all."""
    facts = rule_facts()
    env = environment()
    if rule is None:
        width = max(len(fact.name) for fact in facts)
        for fact in facts:
            env.stdout.write(f"{fact.id}  {fact.severity:7}  {fact.name:{width}}  {fact.summary}\n")
        return EXIT_FINE
    wanted = rule.upper()
    for fact in facts:
        if wanted in (fact.id, fact.name.upper()):
            env.stdout.write(
                f"{fact.id} {fact.name} ({fact.severity})\n{fact.summary}\n\n{fact.why}\n"
            )
            return EXIT_FINE
    names = [*(fact.id for fact in facts), *(fact.name for fact in facts)]
    hint = did_you_mean(rule[:40], names) or "see --list-rules"
    raise CapplanError(f"there is no rule `{rule[:40]}`", hint=hint)
