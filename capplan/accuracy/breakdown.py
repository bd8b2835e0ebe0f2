"""What a predicted row is made of: the parts of its steps, weighed as the client sees them."""

from __future__ import annotations

from dataclasses import fields

from capplan.accuracy.emulate import emulate
from capplan.accuracy.load import load_of
from capplan.accuracy.measured import MeasuredRun
from capplan.accuracy.predict import calibrated_server
from capplan.accuracy.settings import settings_of
from capplan.accuracy.step_record import MeanStep, StepRecord
from capplan.formulas.kv import tokens_held
from capplan.performance.batch import Batch, StepTime
from capplan.performance.step import StepModel
from capplan.results.accuracy import StepPart
from capplan.specs.calibration import CalibrationSpec


def parts_of(run: MeasuredRun, calibration: CalibrationSpec | None = None) -> tuple[StepPart, ...]:
    """Seconds of the run, of mean TTFT and of mean TPOT by part of the step time.

    TTFT has a part more: what lies before the engine.
    """
    settings, load = settings_of(run), load_of(run)
    server, _ = calibrated_server(settings, calibration)
    record = StepRecord()
    measured = emulate(settings, load, server, record)
    of_replica = measured.num_requests // settings.num_replicas
    names = [field.name for field in fields(StepTime)]
    sums = {name: [0.0, 0.0, 0.0] for name in names}
    for step in record.mean_steps(of_replica):
        time = server.model.time(batch_of(server.model, step))
        for name in names:
            seconds = getattr(time, name)
            for i, weight in enumerate((step.run_weight, step.ttft_weight, step.tpot_weight)):
                sums[name][i] += weight * seconds
    has_tpot = "tpot_mean_ms" in measured.metrics
    front_end = 0.0 if load.kind == "static" else server.front_end_s(load.mean_prompt_tokens)
    return (
        *(
            StepPart(name.removesuffix("_s"), run_s, ttft_s, tpot_s if has_tpot else None)
            for name, (run_s, ttft_s, tpot_s) in sums.items()
        ),
        StepPart("front end", 0.0, front_end, None),
    )


def batch_of(model: StepModel, step: MeanStep) -> Batch:
    """A bin's mean step as the performance model takes it."""
    num, windows = step.num_decodes, model.windows
    mean = int(step.context_tokens / num) if num else 0
    tokens, reads = step.chunk_tokens, step.chunk_reads
    found = step.chunk_loaded_tokens
    return Batch(
        num,
        {w: num * tokens_held(mean, w) for w in windows},
        prefill_tokens=tokens,
        num_prefills=step.num_chunks,
        prefill_reads={w: reads if w is None else min(reads, tokens * w) for w in windows},
        prefill_kv_tokens={
            w: tokens + (found if w is None else min(found, step.num_chunks * w)) for w in windows
        },
    )
