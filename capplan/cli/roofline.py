"""`capplan roofline`: from option texts to the answer."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from capplan.cli.calibration import calibration_of
from capplan.cli.environment import environment
from capplan.cli.exit_codes import EXIT_FINE
from capplan.cli.inputs import Inputs
from capplan.cli.output import show
from capplan.errors import CapplanError
from capplan.planner.parallelism import check_tp
from capplan.planner.roofline import roofline
from capplan.render.screen import Screen
from capplan.results.roofline import RooflineInputs, RooflineResult
from capplan.specs.engine_catalogue import DEFAULT_ENGINE

SCHEMA = "capplan.roofline/1"
DEFAULT_BATCHES = "1,8,32,128,256"
MAX_POINTS = 1000
DEFAULT_CONTEXTS = "2048,8192"


class RooflineOptions(NamedTuple):
    model: str | None
    hardware: str | None
    dtype: str | None
    kv_dtype: str | None
    tp: str | None
    batch: str | None
    context: str | None
    calibration: str | None = None


def answer(options: RooflineOptions, plot: str | None, as_json: bool, form: str) -> int:
    """Answer, print, plot to a file where asked, and return the exit code."""
    inputs = Inputs()
    if plot is not None:
        from capplan.render.plot_file import check_file

        check_file(plot)
    asked, result = asked_and_answered(options, inputs)

    def screen() -> Screen:
        from capplan.render.roofline import screen as render

        return render(result, asked, inputs.assumptions)

    if plot is not None:
        from capplan.render.roofline_file import write

        # First: an answer is whole, or there is none.
        write(result, Path(plot))
        environment().stderr.write(f"wrote {plot}\n")
    show(SCHEMA, asked, inputs.assumptions, result, screen, as_json=as_json, form=form)
    return EXIT_FINE


def asked_and_answered(
    options: RooflineOptions, inputs: Inputs
) -> tuple[RooflineInputs, RooflineResult]:
    """The question as shown, and its answer."""
    model, hardware = inputs.model(options.model), inputs.hardware(options.hardware)
    tp = inputs.count("--tp", options.tp, 1, "tensor parallelism")
    check_tp(model.spec, hardware.spec, tp)
    dtype = inputs.dtype(options.dtype, model.spec)
    batches = inputs.token_list("--batch", options.batch, DEFAULT_BATCHES, "decode batches")
    contexts = inputs.token_list("--context", options.context, DEFAULT_CONTEXTS, "contexts")
    if len(batches) * len(contexts) > MAX_POINTS:
        raise CapplanError(
            f"{len(batches)} batches at {len(contexts)} contexts are more than {MAX_POINTS} points",
            hint="shorten --batch or --context",
        )
    kv_dtype = inputs.kv_dtype(options.kv_dtype, model.spec, dtype)
    result = roofline(
        model.spec, hardware.id, hardware.spec,
        tp=tp, dtype=dtype, kv_dtype=kv_dtype, batches=batches, contexts=contexts,
        calibration=calibration_of(
            inputs, options.calibration, model.id, hardware.id, DEFAULT_ENGINE
        ),
    )  # fmt: skip
    asked = RooflineInputs(
        model.id, hardware.id, result.dtype, kv_dtype, tp, batches, contexts, options.calibration
    )
    return asked, result
