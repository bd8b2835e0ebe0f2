"""Commands that need measured runs: `accuracy`, `calibrate`."""

from __future__ import annotations

from capplan.cli import measuring_options as m
from capplan.cli import options as o
from capplan.cli.output import output_format


def accuracy(
    measured: m.MeasuredFile,
    by: m.By = None,
    where: m.Where = None,
    core: m.Core = False,
    worst: m.Worst = None,
    predictions: m.Predictions = None,
    jobs: m.Jobs = None,
    calibration: o.Calibration = None,
    as_json: o.Json = False,
    form: o.Format = None,
) -> int:
    """How far predictions are from measured runs: coverage, errors, and the worst rows."""
    from capplan.cli.accuracy import AccuracyOptions, answer

    options = AccuracyOptions(by, where, core, worst, predictions, jobs, calibration)
    return answer(measured, options, as_json, output_format(form))


def calibrate(
    results: m.ResultFiles,
    model: m.RunModel = None,
    hardware: m.RunHardware = None,
    gpus: m.RunGpus = None,
    tp: m.RunTp = None,
    engine: m.RunEngine = None,
    engine_version: o.EngineVersion = None,
    dtype: m.RunDtype = None,
    kv_dtype: m.RunKvDtype = None,
    max_num_seqs: o.MaxNumSeqs = None,
    max_num_batched_tokens: m.RunBatchedTokens = None,
    workload: m.RunWorkload = None,
    concurrency: m.RunConcurrency = None,
    prompt_tokens: m.RunPromptTokens = None,
    output_tokens: m.RunOutputTokens = None,
    output: m.CalibrationOutput = None,
    as_json: o.Json = False,
    form: o.Format = None,
) -> int:
    """Fit the performance model to your own servers' benchmark results.

    Exit code 1 where the calibration does not help on runs that it was not fitted to; then it
    is not written.
    """
    from capplan.cli.calibrate import CalibrateOptions, answer

    options = CalibrateOptions(
        model, hardware, gpus, tp, engine, engine_version, dtype, kv_dtype, max_num_seqs,
        max_num_batched_tokens, workload, concurrency, prompt_tokens, output_tokens,
    )  # fmt: skip
    return answer(results, options, output, as_json, output_format(form))
