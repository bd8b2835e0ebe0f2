"""Commands that say whether a repository or an installation is in order: `check`, `doctor`."""

from __future__ import annotations

from capplan.cli import check_options as c
from capplan.cli import options as o
from capplan.cli.output import output_format


def check(
    paths: c.Paths = None,
    config: c.Config = None,
    values: c.Values = None,
    formats: c.Formats = None,
    outputs: c.Outputs = None,
    fail_level: c.FailLevel = None,
    strict: c.Strict = False,
    allow_empty: c.AllowEmpty = False,
    baseline: c.Baseline = None,
    write_baseline: c.WriteBaseline = None,
    diff: c.Diff = None,
    verbose: c.Verbose = False,
    quiet: c.Quiet = False,
    list_rules: c.ListRules = False,
    explain: c.Explain = None,
    calibration: o.Calibration = None,
    as_json: o.Json = False,
) -> int:
    """Review the sizing of the deployments in files: manifests, Helm values, compose, scripts.

    Exit code 0 where nothing is at or above --fail-level, 1 where something is, 2 where a file
    cannot be read or none deploys a model.
    """
    from capplan.cli.check import CheckOptions, answer

    options = CheckOptions(
        paths, config, values, formats, outputs, fail_level, strict, allow_empty, baseline,
        write_baseline, diff, verbose, quiet, list_rules, explain, calibration,
        as_json,
    )  # fmt: skip
    return answer(options)


def doctor(as_json: o.Json = False, form: o.Format = None) -> int:
    """Versions, catalogue paths, and a self-test.

    Exit code 1 where a check does not hold.
    """
    from capplan.cli.doctor import answer

    return answer(as_json, output_format(form))
