"""The whole review: files, ignores, baseline and the comparison with a revision."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from capplan.check.calibrations import OwnServers
from capplan.check.cases import Case
from capplan.check.changes import fleet_changes
from capplan.check.config import Config, Configs
from capplan.check.discover import find_files
from capplan.check.documents import read_source
from capplan.check.git import Repository
from capplan.check.ignores import Ignore, accept_baseline, sort_out
from capplan.check.rules.catalogue import BY_ID, RULES
from capplan.check.run import CheckedFile, by_place, check_source, fingerprint, summary_of
from capplan.check.source import Source
from capplan.errors import CapplanError
from capplan.results.check import CheckResult, Finding, FleetChange, RuleFacts, Suppressed


@dataclass(frozen=True)
class ReviewRequest:
    """What to check and against what; ``today`` decides which ignores have run out."""

    paths: tuple[str, ...]
    today: date
    config: Config | None = None
    values: dict[str, str] = field(default_factory=dict)
    baseline: Counter[str] | None = None
    base: str | None = None
    own: OwnServers | None = None  # what was learnt from the user's own servers


@dataclass
class _Gathered:
    findings: list[Finding] = field(default_factory=list)
    suppressed: list[Suppressed] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)
    faults: list[CapplanError] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    num_files: int = 0
    num_checked: int = 0


def review(request: ReviewRequest) -> tuple[CheckResult, list[CapplanError]]:
    """The result, and why files that deploy something could not be read.

    Raises CapplanError for paths, configurations and revisions that are not there.
    """
    configs = Configs(request.config, request.own)
    gathered = _Gathered()
    repository = None
    changed: set[Path] | None = None
    if request.base is not None:
        repository = Repository(Path(request.paths[0]), request.base)
        changed = {(repository.root / name).resolve() for name in repository.changed()}
    for path, named in find_files(list(request.paths)):
        gathered.num_files += 1
        config = configs.of(path)
        if config.excludes(str(path)):
            gathered.passed_over.append(path.as_posix())
            continue
        checked = _read(path, named, config, request, gathered)
        if checked is not None:
            _take(checked, config, request, gathered)
    changes: tuple[FleetChange, ...] = ()
    if repository is not None and changed is not None:
        changes = _compare(request, configs, repository, changed, gathered)
    if request.baseline is not None:
        kept, known = accept_baseline(gathered.findings, request.baseline)
        gathered.findings = kept
        gathered.suppressed += known
    return _result(request, gathered, changes), gathered.faults


def _read(
    path: Path, named: bool, config: Config, request: ReviewRequest, gathered: _Gathered
) -> CheckedFile | None:
    try:
        source = read_source(path, _relative(path))
    except CapplanError as fault:
        if named:
            gathered.faults.append(fault)
        gathered.passed_over.append(path.as_posix())
        return None
    return check_source(source, config, request.values)


def _relative(path: Path) -> str:
    """As the current folder sees it: what reviews and annotations are keyed by."""
    try:
        return path.absolute().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_posix()


def _take(
    checked: CheckedFile, config: Config, request: ReviewRequest, gathered: _Gathered
) -> None:
    source = checked.file.source
    if checked.fault is not None:
        gathered.faults.append(checked.fault)
    if not checked.cases:
        gathered.passed_over.append(source.file)
        return
    gathered.num_checked += 1
    gathered.cases += checked.cases
    kept = sort_out(checked.findings, checked.cases, source, config, request.today)
    notes = [_note(source, config, *note) for note in kept.notes]
    gathered.findings += sorted((*kept.kept, *notes), key=by_place)
    gathered.suppressed += kept.suppressed


def _note(source: Source, config: Config, rule: str, ignore: Ignore, message: str) -> Finding:
    line = ignore.line or 1
    text = " ".join(source.line_text(line).split())
    facts = BY_ID[rule]
    return Finding(
        rule, facts.name, facts.severity, message, (), "fix what it accepts, or renew it", (),
        source.file, line, 1, text[:160], "",
        fingerprint(rule, config.relative(source.file), "", text + message),
    )  # fmt: skip


def _compare(
    request: ReviewRequest,
    configs: Configs,
    repository: Repository,
    changed: set[Path],
    gathered: _Gathered,
) -> tuple[FleetChange, ...]:
    """Keep what the change brought; the effect on deployments of the files that it touched."""
    touched = [c for c in gathered.cases if Path(c.deployment.source.file).resolve() in changed]
    before: list[Case] = []
    known: Counter[str] = Counter()
    given = [Path(path).resolve() for path in request.paths]
    for path in sorted(changed):
        if not any(path == place or place in path.parents for place in given):
            continue
        text = repository.text_at(path.relative_to(repository.root.resolve()).as_posix())
        if text is None:
            continue
        shown = _relative(path)
        checked = check_source(Source(shown, text), configs.of(path), request.values)
        before += checked.cases
        known.update(finding.fingerprint for finding in checked.findings)
    new = [f for f in gathered.findings if Path(f.file).resolve() in changed]
    gathered.findings = accept_baseline(new, known)[0]
    return tuple(fleet_changes(before, touched))


def _result(
    request: ReviewRequest, gathered: _Gathered, changes: tuple[FleetChange, ...]
) -> CheckResult:
    return CheckResult(
        findings=tuple(gathered.findings),
        suppressed=tuple(gathered.suppressed),
        deployments=tuple(summary_of(case) for case in gathered.cases),
        changes=changes,
        rules=rule_facts(),
        num_files=gathered.num_files,
        num_files_checked=gathered.num_checked,
        passed_over=tuple(gathered.passed_over),
        base=request.base,
    )


def rule_facts() -> tuple[RuleFacts, ...]:
    return tuple(RuleFacts(r.id, r.name, r.severity, r.summary, r.why) for r in RULES)
