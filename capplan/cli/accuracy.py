"""`capplan accuracy`: predictions for measured runs, and how far off they are."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from capplan.accuracy.measured import read_measured
from capplan.accuracy.predict import CALIBRATION, predict_all
from capplan.accuracy.report import (
    accuracy_result,
    assumed,
    check_columns,
    selected,
    write_predictions,
)
from capplan.cli.environment import environment
from capplan.cli.exit_codes import EXIT_FINE
from capplan.cli.inputs import Inputs, checked_name
from capplan.cli.output import show
from capplan.cli.progress import Progress
from capplan.errors import CapplanError
from capplan.performance.calibration import calibration_words
from capplan.render.new_file import check_folder
from capplan.render.screen import Screen
from capplan.results.accuracy import AccuracyInputs
from capplan.specs.calibration import CalibrationSpec, load_calibration

SCHEMA = "capplan.accuracy/1"
DEFAULT_WORST = 5
MAX_WORST = 1000


class AccuracyOptions(NamedTuple):
    by: str | None
    where: list[str] | None
    core: bool
    worst: str | None
    predictions: str | None
    jobs: str | None
    calibration: str | None


def answer(path: str, options: AccuracyOptions, as_json: bool, form: str) -> int:
    """Predict, compare, print, write predictions where asked, and return the exit code."""
    inputs = Inputs()
    runs = read_measured(Path(path))
    where = _where(options)
    by = tuple(name.strip() for name in (options.by or "").split(",") if name.strip())
    check_columns(runs, by)
    num_worst = inputs.count("--worst", options.worst, DEFAULT_WORST, None, least=0)
    if num_worst > MAX_WORST:
        raise CapplanError(
            f"--worst: {num_worst:,} is more than {MAX_WORST:,}",
            hint="--predictions FILE.csv has every row",
        )
    jobs = inputs.count("--jobs", options.jobs, 0, None) if options.jobs else None
    chosen = selected(runs, where)
    fitted = _calibration(options.calibration, inputs)
    if options.predictions is not None:
        check_folder(Path(options.predictions))
    with Progress("predicting rows") as progress:
        predictions = predict_all(chosen, jobs, fitted, progress)
    result = accuracy_result(chosen, predictions, by, num_worst, fitted)
    if options.predictions is not None:
        write_predictions(predictions, Path(options.predictions))
        environment().stderr.write(f"wrote {options.predictions}\n")
    asked = AccuracyInputs(path, by, where, num_worst, options.calibration)
    assumptions = [*inputs.assumptions, *assumed(found.assumptions for found in predictions)]

    def screen() -> Screen:
        from capplan.render.accuracy import screen as render

        return render(result, asked, assumptions)

    show(SCHEMA, asked, assumptions, result, screen, as_json=as_json, form=form)
    return EXIT_FINE


def _calibration(file: str | None, inputs: Inputs) -> CalibrationSpec | None:
    if file is None:
        return None
    spec = load_calibration(Path(checked_name(CALIBRATION, file)))
    inputs.assume("calibration", calibration_words(spec, file), CALIBRATION)
    return spec


def _where(options: AccuracyOptions) -> dict[str, str]:
    """`gpu=B200` -> {"gpu": "B200"}; --core is core=1."""
    where = {"core": "1"} if options.core else {}
    for text in options.where or []:
        name, sign, value = text.partition("=")
        if not sign:
            raise CapplanError(
                f"--where: `{text[:40]}` is not COLUMN=VALUE", hint="as in --where gpu=B200"
            )
        where[name.strip()] = value.strip()
    return where
