"""`capplan roofline`: from option texts to the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from capplan.cli.calibration import calibrations_of
from capplan.cli.exit_codes import EXIT_FINE
from capplan.cli.inputs import Inputs
from capplan.cli.output import show
from capplan.cli.plots import PlotOption
from capplan.errors import CapplanError
from capplan.planner.parallelism import check_tp
from capplan.planner.roofline import roofline
from capplan.render.screen import Screen
from capplan.results.roofline import RooflineInputs, RooflineResult
from capplan.specs.engine_catalogue import DEFAULT_ENGINE

if TYPE_CHECKING:  # only where it is drawn
    from capplan.render.plots.chart import Plot

SCHEMA = "capplan.roofline/1"
DEFAULT_BATCHES = "1,8,32,128,256"
MAX_POINTS = 1000
MAX_ACCELERATORS = 6  # as many colours as are told apart
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
    kernels: bool = False


def answer(options: RooflineOptions, plot: str | None, as_json: bool, form: str) -> int:
    """Answer, print, plot where asked, and return the exit code."""
    inputs = Inputs()
    drawing = PlotOption.of(plot, "roofline.svg", as_json=as_json, form=form)
    asked, result = asked_and_answered(options, inputs)

    def screen() -> Screen:
        from capplan.render.roofline import screen as render

        return render(result, asked, inputs.assumptions)

    def plots() -> list[Plot | None]:
        from capplan.render.plots.roofline import roofline_plot

        return [roofline_plot(result.each)]

    drawing.save(plots)
    show(SCHEMA, asked, inputs.assumptions, result, screen, as_json=as_json, form=form)
    return EXIT_FINE


def asked_and_answered(
    options: RooflineOptions, inputs: Inputs
) -> tuple[RooflineInputs, RooflineResult]:
    """The question as shown, and its answer."""
    model, accelerators = inputs.model(options.model), inputs.hardware_list(options.hardware)
    if len(accelerators) > MAX_ACCELERATORS:
        raise CapplanError(
            f"--hardware: {len(accelerators)} roofs are more than {MAX_ACCELERATORS}",
            hint="name those to compare",
        )
    tp = inputs.count("--tp", options.tp, 1, "tensor parallelism")
    for hardware in accelerators:
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
    ids = [hardware.id for hardware in accelerators]
    calibrations = calibrations_of(inputs, options.calibration, model.id, ids, DEFAULT_ENGINE)
    first, *beside = [
        roofline(
            model.spec, hardware.id, hardware.spec,
            tp=tp, dtype=dtype, kv_dtype=kv_dtype, batches=batches, contexts=contexts,
            calibration=calibrations[hardware.id],
            with_kernels=options.kernels,
        )
        for hardware in accelerators
    ]  # fmt: skip
    names = tuple(each.hardware for each in beside)
    asked = RooflineInputs(
        model.id, first.hardware, first.dtype, kv_dtype, tp, batches, contexts,
        options.calibration, names,
    )  # fmt: skip
    return asked, RooflineResult.of(first, beside)
