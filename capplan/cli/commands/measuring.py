"""Commands that need measured runs: `accuracy`, `calibrate`."""

from __future__ import annotations

from capplan.cli import options as o
from capplan.cli.output import output_format


def accuracy(
    measured: o.MeasuredFile,
    by: o.By = None,
    where: o.Where = None,
    core: o.Core = False,
    worst: o.Worst = None,
    predictions: o.Predictions = None,
    jobs: o.Jobs = None,
    calibration: o.Calibration = None,
    as_json: o.Json = False,
    form: o.Format = None,
) -> int:
    """How far predictions are from measured runs: coverage, errors, and the worst rows."""
    from capplan.cli.accuracy import AccuracyOptions, answer

    options = AccuracyOptions(by, where, core, worst, predictions, jobs, calibration)
    return answer(measured, options, as_json, output_format(form))


def calibrate(
    results: o.ResultFiles,
    model: o.RunModel = None,
    hardware: o.RunHardware = None,
    gpus: o.RunGpus = None,
    tp: o.RunTp = None,
    engine: o.RunEngine = None,
    engine_version: o.EngineVersion = None,
    dtype: o.RunDtype = None,
    kv_dtype: o.RunKvDtype = None,
    max_num_seqs: o.MaxNumSeqs = None,
    max_num_batched_tokens: o.RunBatchedTokens = None,
    workload: o.RunWorkload = None,
    concurrency: o.RunConcurrency = None,
    prompt_tokens: o.RunPromptTokens = None,
    output_tokens: o.RunOutputTokens = None,
    output: o.CalibrationOutput = None,
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
