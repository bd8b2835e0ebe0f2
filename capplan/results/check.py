"""`capplan check`: what was found, where, and by which arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

SEVERITIES = ("info", "warning", "error")


@dataclass(frozen=True, slots=True)
class Finding:
    """One judgement. ``line`` and ``column`` count from 1; ``fingerprint`` survives moved lines.

    ``arithmetic`` are the steps with their numbers; ``fix`` is one change that would do;
    ``assumed`` is what was taken as given.
    """

    rule: str
    name: str
    severity: str
    message: str
    arithmetic: tuple[str, ...]
    fix: str | None
    assumed: tuple[str, ...]
    file: str
    line: int
    column: int
    snippet: str
    deployment: str
    fingerprint: str

    def reaches(self, level: str) -> bool:
        """Whether it is as severe as ``level``, or more."""
        return SEVERITIES.index(self.severity) >= SEVERITIES.index(level)


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding that was accepted, and by what: comment, config or baseline."""

    finding: Finding
    by: str
    reason: str
    until: str | None


@dataclass(frozen=True, slots=True)
class CheckedDeployment:
    """What was understood of a deployment; None where a file does not say it.

    ``calibration``: the file by which its times are predicted.
    """

    file: str
    line: int
    name: str
    shape: str
    engine: str
    engine_version: str | None
    model: str | None
    hardware: str | None
    tp: int | None
    pp: int | None
    num_gpus_per_replica: int | None
    num_replicas: int | None
    num_gpus: int | None
    usd_per_hour: float | None
    kv_pool_tokens: int | None
    calibration: str | None
    unresolved: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FleetChange:
    """What a change does to one deployment; 0 and None are no change or not known."""

    deployment: str
    file: str
    what: str  # added | removed | changed
    num_gpus_before: int | None
    num_gpus_after: int | None
    hardware_before: str | None
    hardware_after: str | None
    usd_per_month_before: float | None
    usd_per_month_after: float | None
    ttft_name: str | None  # TTFT P99 | mean TTFT
    ttft_s_before: float | None
    ttft_s_after: float | None
    kv_pool_tokens_before: int | None
    kv_pool_tokens_after: int | None


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """A rule, for listings and for SARIF."""

    id: str
    name: str
    severity: str
    summary: str
    why: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Everything of one run, in the order of files and lines."""

    findings: tuple[Finding, ...]
    suppressed: tuple[Suppressed, ...]
    deployments: tuple[CheckedDeployment, ...]
    changes: tuple[FleetChange, ...]
    rules: tuple[RuleFacts, ...]
    num_files: int
    num_files_checked: int
    passed_over: tuple[str, ...]
    base: str | None

    def count(self, severity: str) -> int:
        return sum(finding.severity == severity for finding in self.findings)

    def num_at_or_above(self, level: str) -> int:
        return sum(finding.reaches(level) for finding in self.findings)


@dataclass(frozen=True, slots=True)
class CheckInputs:
    """The question as it was understood."""

    paths: tuple[str, ...]
    config: str | None
    fail_level: str
    strict: bool
    base: str | None
    baseline: str | None
    values: dict[str, str]
    calibration: str | None
