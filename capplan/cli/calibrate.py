"""`capplan calibrate`: from result files to a calibration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from capplan.accuracy.calibration_report import calibrate
from capplan.accuracy.calibration_runs import CalibrationRuns, gather
from capplan.accuracy.load import load_of
from capplan.accuracy.measured import CellError, run_of_cells
from capplan.accuracy.report import assumed
from capplan.accuracy.settings import settings_of
from capplan.cli.environment import environment
from capplan.cli.exit_codes import EXIT_FINE, EXIT_NO
from capplan.cli.files import checked_path, write_new
from capplan.cli.inputs import Inputs
from capplan.cli.output import show
from capplan.errors import CapplanError
from capplan.render.new_file import check_new_file
from capplan.render.screen import Screen
from capplan.results.assumptions import Assumption
from capplan.results.calibration import CalibrateInputs
from capplan.specs.calibration import yaml_text

SCHEMA = "capplan.calibrate/1"
# What stands in for a column of every run, where it is not called so itself.
_OPTIONS = {
    "gpu": "--hardware", "num_gpus": "--gpus", "weight_dtype": "--dtype",
    "isl": "--prompt-tokens", "osl": "--output-tokens",
}  # fmt: skip

_TOKENS = ("isl", "osl", "max_num_batched_tokens")
_ANY_RUN = {"id": "any", "model": "any", "gpu": "any", "workload": "closed"}


class CalibrateOptions(NamedTuple):
    """Columns of the measured-run schema; each holds for every run and wins over the files."""

    model: str | None
    gpu: str | None
    num_gpus: str | None
    tp: str | None
    engine: str | None
    engine_version: str | None
    weight_dtype: str | None
    kv_dtype: str | None
    max_num_seqs: str | None
    max_num_batched_tokens: str | None
    workload: str | None
    concurrency: str | None
    isl: str | None
    osl: str | None


def answer(
    results: list[str], options: CalibrateOptions, output: str | None, as_json: bool, form: str
) -> int:
    """Fit, print, write the file where asked and where it helps, and return the exit code."""
    given = _given(options)
    _need_numpy()
    if output is not None:
        check_new_file(output, "--output", (".yaml", ".yml"))
    gathered = gather([checked_path(name) for name in results], given)
    result, spec = calibrate(gathered)
    asked = CalibrateInputs(tuple(results), given, output)
    if output is not None and result.helps:
        write_new(Path(output), yaml_text(spec))
        environment().stderr.write(f"wrote {output}\n")
        result = replace(result, written=output)
    elif output is not None:
        environment().stderr.write(f"not written: {output}: it would not help\n")

    assumptions = _assumed(gathered)

    def screen() -> Screen:
        from capplan.render.calibrate import screen as render

        return render(result, asked, assumptions)

    show(SCHEMA, asked, assumptions, result, screen, as_json=as_json, form=form)
    return EXIT_FINE if result.helps else EXIT_NO


def _given(options: CalibrateOptions) -> dict[str, str]:
    """By column; raises CapplanError for what no cell may be."""
    given = {name: value for name, value in options._asdict().items() if value is not None}
    for name in _TOKENS:  # `1k`; a table has plain numbers, means with a fraction among them
        if given.get(name, "")[-1:].isalpha():
            given[name] = str(Inputs().tokens(_option(name), given[name], 0, None))
    try:
        run_of_cells(Path(), 0, _ANY_RUN | given)
    except CellError as fault:
        raise CapplanError(
            f"{_option(fault.column)}: `{fault.value}`: {fault.what}",
            hint="`capplan calibrate --help` has what each option takes",
        ) from None
    return given


def _option(column: str) -> str:
    return _OPTIONS.get(column) or f"--{column.replace('_', '-')}"


def _assumed(gathered: CalibrationRuns) -> list[Assumption]:
    """What the results leave open of their servers and loads."""
    options = {name: _option(name) for name in CalibrateOptions._fields}
    rows = [(*settings_of(run).assumptions, *load_of(run).assumptions) for run in gathered.runs]
    return assumed(rows, options)


def _need_numpy() -> None:
    from importlib.util import find_spec

    if find_spec("numpy") is None:
        raise CapplanError(
            "calibration needs numpy", hint="install the extra: pip install 'capplan[fit]'"
        )
