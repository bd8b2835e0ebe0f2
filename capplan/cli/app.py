"""The typer application: one function a command, imported only when it runs."""

from __future__ import annotations

import typer

from capplan.cli import check_options as c
from capplan.cli import gpus_options as g
from capplan.cli import options as o
from capplan.cli import simulate_options as s
from capplan.cli.output import output_format

# Plain help: rich markup would cost more than the rest of `capplan --help` together.
app = typer.Typer(
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
    help="Capacity planner and roofline calculator for LLM serving.",
)  # fmt: skip
hardware_app = typer.Typer(rich_markup_mode=None, help="Accelerators of the catalogue.")
models_app = typer.Typer(rich_markup_mode=None, help="Models of the catalogue.")
examples_app = typer.Typer(rich_markup_mode=None, help="Plans to start from.")
app.add_typer(hardware_app, name="hardware")
app.add_typer(models_app, name="models")
app.add_typer(examples_app, name="examples")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"capplan {version('capplan')}")
        except PackageNotFoundError:
            typer.echo("capplan, run from a checkout and not installed")
        raise typer.Exit


def _completion(shell: str | None) -> None:
    if shell is not None:
        from capplan.cli.completion import script

        typer.echo(script(shell))
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_version, is_eager=True
    ),
    show_completion: str = typer.Option(
        None, "--show-completion", metavar="SHELL", is_eager=True, callback=_completion,
        help="Print what makes bash, zsh or fish complete names.",
    ),
) -> None:  # fmt: skip
    """What holds for every command; without one `run` says how to begin."""


@app.command()
def gpus(
    qps: o.Qps = None,
    slo_ttft: o.SloTtft = None,
    slo_tpot: o.SloTpot = None,
    slo_e2e: s.SloE2e = None,
    slo_percentile: s.SloPercentile = None,
    slo_goodput: s.SloGoodput = None,
    prompt_tokens: s.SimulateLengths = None,
    output_tokens: s.SimulateOutputs = None,
    peak_factor: o.PeakFactor = None,
    arrivals: s.Arrivals = None,
    objective: g.ObjectiveName = None,
    verify: g.Verify = True,
    cache: g.Cache = True,
    seed: s.Seed = None,
    engine: o.Engine = None,
    engine_version: o.EngineVersion = None,
    max_num_seqs: o.MaxNumSeqs = None,
    plan: s.PlanFile = None,
    trace: s.Trace = None,
    pp: o.Pp = None,
    expert_parallel: g.ExpertParallel = None,
    growth: g.Growth = None,
    horizon: g.Horizon = None,
    sensitivity: g.Sensitivity = None,
    availability: g.Availability = None,
    mtbf: g.Mtbf = None,
    mttr: g.Mttr = None,
    model: o.Model = None,
    hardware: o.HardwareList = None,
    dtype: o.Dtype = None,
    kv_dtype: o.KvDtype = None,
    tp: o.Tp = None,
    gpu_memory: o.GpuMemory = None,
    gpu_memory_utilization: o.GpuMemoryUtilization = None,
    reserve: o.Reserve = None,
    block_size: o.BlockSize = None,
    max_num_batched_tokens: o.MaxNumBatchedTokens = None,
    async_scheduling: o.AsyncScheduling = None,
    enable_prefix_caching: o.EnablePrefixCaching = None,
    replica_tokens_per_s: o.ReplicaTokensPerS = None,
    spares: o.Spares = None,
    gpus_per_node: o.GpusPerNode = None,
    price: o.Price = None,
    commitment: o.Commitment = None,
    price_factor: o.PriceFactor = None,
    idle_power: o.IdlePower = None,
    emit: o.Emit = None,
    as_json: o.Json = False,
    form: o.Format = None,
) -> int:
    """How many GPUs a model, a traffic and its limits need, and why.

    Bounds first; then the engine's scheduler is simulated to find what a replica sustains within
    all limits, and the fleet that follows is simulated whole. Exit code 1 where no number is
    enough.
    """
    from capplan.cli.gpus import answer
    from capplan.cli.gpus_asked import GpusOptions

    texts = {name: value for name, value in locals().items() if name in GpusOptions._fields}
    return answer(GpusOptions(**texts), as_json, output_format(form), emit)


@app.command()
def roofline(
    model: o.Model = None,
    hardware: o.Hardware = None,
    dtype: o.Dtype = None,
    kv_dtype: o.KvDtype = None,
    tp: o.TpOne = None,
    batch: o.Batches = None,
    context: o.Contexts = None,
    plot: o.Plot = None,
    as_json: o.Json = False,
    form: o.Format = None,
) -> int:
    """Where prefill and decode sit under the roof, over batch and context."""
    from capplan.cli.roofline import RooflineOptions, answer

    texts = {name: value for name, value in locals().items() if name in RooflineOptions._fields}
    return answer(RooflineOptions(**texts), plot, as_json, output_format(form))


@app.command()
def kv(
    model: o.Model = None,
    hardware: o.Hardware = None,
    dtype: o.Dtype = None,
    kv_dtype: o.KvDtype = None,
    tp: o.TpOne = None,
    pp: o.Pp = None,
    dcp: o.Dcp = None,
    dp_attention: o.DpAttention = None,
    engine: o.Engine = None,
    engine_version: o.EngineVersion = None,
    engine_log: o.EngineLog = None,
    context: o.Context = None,
    max_model_len: o.MaxModelLen = None,
    gpu_memory: o.GpuMemory = None,
    gpu_memory_utilization: o.KvUtilization = None,
    reserve: o.KvReserve = None,
    block_size: o.BlockSize = None,
    max_num_seqs: o.MaxNumSeqs = None,
    max_num_batched_tokens: o.KvBatchedTokens = None,
    async_scheduling: o.AsyncScheduling = None,
    enable_prefix_caching: o.EnablePrefixCaching = None,
    lengths: o.Lengths = None,
    static_length: o.StaticLength = None,
    plot: o.Plot = None,
    as_json: o.Json = False,
    form: o.Format = None,
) -> int:
    """One GPU's memory item by item, the KV pool in blocks, what fits, and what would make it fit.

    Exit code 1 where the accelerator that was named holds not one sequence of the context, or
    none of --max-model-len; with --engine-log always 0.
    """
    from capplan.cli.kv import answer
    from capplan.cli.kv_options import KvOptions

    texts = {name: value for name, value in locals().items() if name in KvOptions._fields}
    return answer(KvOptions(**texts), plot, as_json, output_format(form))


@app.command()
def simulate(
    plan: s.PlanFile = None,
    variant: s.Variant = None,
    model: o.Model = None,
    hardware: o.Hardware = None,
    replicas: s.Replicas = None,
    router: s.Router = None,
    client_timeout: s.ClientTimeout = None,
    client_retries: s.ClientRetries = None,
    max_queue_depth: s.MaxQueueDepth = None,
    tp: o.TpOne = None,
    pp: o.Pp = None,
    dtype: o.Dtype = None,
    kv_dtype: o.KvDtype = None,
    engine: o.Engine = None,
    engine_version: o.EngineVersion = None,
    gpu_memory: o.GpuMemory = None,
    gpu_memory_utilization: o.KvUtilization = None,
    max_num_seqs: o.MaxNumSeqs = None,
    max_num_batched_tokens: o.KvBatchedTokens = None,
    max_model_len: o.MaxModelLen = None,
    block_size: o.BlockSize = None,
    num_gpu_blocks_override: s.NumGpuBlocks = None,
    enable_chunked_prefill: s.EnableChunkedPrefill = None,
    enable_prefix_caching: o.EnablePrefixCaching = None,
    async_scheduling: o.AsyncScheduling = None,
    qps: o.ReplicaQps = None,
    users: s.Users = None,
    think_time: s.ThinkTime = None,
    peak_factor: o.PeakFactor = None,
    arrivals: s.Arrivals = None,
    prompt_tokens: s.SimulateLengths = None,
    output_tokens: s.SimulateOutputs = None,
    trace: s.Trace = None,
    skip_bad_rows: s.SkipBadRows = None,
    num_requests: s.NumRequests = None,
    duration: s.Duration = None,
    seed: s.Seed = None,
    replications: s.Replications = None,
    warmup: s.Warmup = None,
    slo_ttft: o.SloTtft = None,
    slo_tpot: o.SloTpot = None,
    slo_itl: s.SloItl = None,
    slo_e2e: s.SloE2e = None,
    slo_percentile: s.SloPercentile = None,
    slo_goodput: s.SloGoodput = None,
    calibration: o.Calibration = None,
    records: s.Records = None,
    timeline: s.TimelineFile = None,
    plot: o.Plot = None,
    compare_schedulers: s.CompareSchedulers = False,
    exercise: s.Exercise = False,
    as_json: o.Json = False,
    form: o.Format = None,
) -> int:
    """Does the plan hold, step by step, under this traffic and the engine's scheduler?

    Exit code 1 where a limit is missed, where the traffic saturates the deployment, or where too
    few requests were simulated to tell. A plan with `variants:` is shown with all of them side by
    side; the exit code is that of the plan itself.
    """
    texts = dict(locals())
    if exercise:
        from capplan.cli.exercise import answer
    elif compare_schedulers:
        from capplan.cli.schedulers import answer
    else:
        from capplan.cli.simulate import answer

    return answer(texts, as_json, output_format(form))


@app.command()
def pareto(
    sweep: s.Sweep = None,
    values: s.SweepValues = None,
    latency: s.SweepLatency = None,
    plan: s.PlanFile = None,
    variant: s.Variant = None,
    model: o.Model = None,
    hardware: o.Hardware = None,
    replicas: s.Replicas = None,
    tp: o.TpOne = None,
    pp: o.Pp = None,
    dtype: o.Dtype = None,
    kv_dtype: o.KvDtype = None,
    engine: o.Engine = None,
    engine_version: o.EngineVersion = None,
    gpu_memory: o.GpuMemory = None,
    gpu_memory_utilization: o.KvUtilization = None,
    max_num_seqs: o.MaxNumSeqs = None,
    max_num_batched_tokens: o.KvBatchedTokens = None,
    max_model_len: o.MaxModelLen = None,
    block_size: o.BlockSize = None,
    num_gpu_blocks_override: s.NumGpuBlocks = None,
    enable_chunked_prefill: s.EnableChunkedPrefill = None,
    enable_prefix_caching: o.EnablePrefixCaching = None,
    async_scheduling: o.AsyncScheduling = None,
    qps: o.ReplicaQps = None,
    users: s.Users = None,
    think_time: s.ThinkTime = None,
    peak_factor: o.PeakFactor = None,
    arrivals: s.Arrivals = None,
    prompt_tokens: s.SimulateLengths = None,
    output_tokens: s.SimulateOutputs = None,
    trace: s.Trace = None,
    skip_bad_rows: s.SkipBadRows = None,
    num_requests: s.NumRequests = None,
    duration: s.Duration = None,
    seed: s.Seed = None,
    replications: s.Replications = None,
    warmup: s.Warmup = None,
    slo_ttft: o.SloTtft = None,
    slo_tpot: o.SloTpot = None,
    slo_itl: s.SloItl = None,
    slo_e2e: s.SloE2e = None,
    slo_percentile: s.SloPercentile = None,
    slo_goodput: s.SloGoodput = None,
    calibration: o.Calibration = None,
    plot: o.Plot = None,
    as_json: o.Json = False,
    form: o.Format = None,
) -> int:
    """Throughput against latency as one setting moves: the frontier, and where it bends.

    Without --qps, --users or a plan's traffic there are as many users as seats, so that no seat is
    idle and nobody queues. Exit code 1 where no value gives a steady state.
    """
    texts = dict(locals())
    from capplan.cli.pareto import answer

    return answer(texts, as_json, output_format(form))


@app.command("emit")
def emit_plan(
    plan: o.PlanArgument,
    form: o.EmitFormat = None,
    variant: s.Variant = None,
    repository: o.Repository = None,
    read_rate: o.ReadRate = None,
) -> int:
    """A plan as a command line or a manifest."""
    from capplan.cli.emit import answer

    return answer(plan, form, variant, repository, read_rate)


@app.command(
    "explain",
    context_settings={
        "allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": [],
    },
)  # fmt: skip
def explain_command(context: typer.Context) -> int:
    """How an answer comes about, figure by figure.

    `capplan explain gpus|roofline|kv|simulate` takes that command's options. For every figure: why
    it matters, the picture, the formula, its numbers, and a check; `--format text|markdown` or
    `--json`.
    """
    from capplan.cli.explain_options import explained

    return explained(context)


@hardware_app.command("list")
def hardware_list(as_json: o.Json = False, form: o.Format = None) -> int:
    """All accelerators."""
    from capplan.cli.catalogue import list_hardware

    return list_hardware(as_json, output_format(form))


@hardware_app.command("show")
def hardware_show(name: o.HardwareName, as_json: o.Json = False, form: o.Format = None) -> int:
    """One accelerator, with the sources of its figures."""
    from capplan.cli.catalogue import show_hardware

    return show_hardware(name, as_json, output_format(form))


@models_app.command("list")
def models_list(as_json: o.Json = False, form: o.Format = None) -> int:
    """All models."""
    from capplan.cli.catalogue import list_models

    return list_models(as_json, output_format(form))


@models_app.command("show")
def models_show(name: o.ModelName, as_json: o.Json = False, form: o.Format = None) -> int:
    """One model: its layers, and its parameters and bytes by tensor group."""
    from capplan.cli.catalogue import show_model

    return show_model(name, as_json, output_format(form))


@models_app.command("import")
def models_import(config: o.ConfigFile, name: o.Name = None, output: o.Output = None) -> int:
    """Write a Hugging Face config.json as a YAML file of the catalogue."""
    from capplan.cli.catalogue import import_model

    return import_model(config, name, output)


@app.command()
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


@app.command()
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


@app.command()
def schema(name: c.SchemaName = None) -> int:
    """JSON Schemas: of plan.yaml and .capplan.yaml for editors, of every output of --json."""
    from capplan.cli.schema import answer

    return answer(name)


@app.command()
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
    as_json: o.Json = False,
) -> int:
    """Review the sizing of the deployments in files: manifests, Helm values, compose, scripts.

    Exit code 0 where nothing is at or above --fail-level, 1 where something is, 2 where a file
    cannot be read or none deploys a model.
    """
    from capplan.cli.check import CheckOptions, answer

    options = CheckOptions(
        paths, config, values, formats, outputs, fail_level, strict, allow_empty, baseline,
        write_baseline, diff, verbose, quiet, list_rules, explain, as_json,
    )  # fmt: skip
    return answer(options)


@app.command()
def doctor(as_json: o.Json = False, form: o.Format = None) -> int:
    """Versions, catalogue paths, and a self-test.

    Exit code 1 where a check does not hold.
    """
    from capplan.cli.doctor import answer

    return answer(as_json, output_format(form))


@examples_app.command("list")
def examples_list(as_json: o.Json = False, form: o.Format = None) -> int:
    """All examples."""
    from capplan.cli.examples import list_examples

    return list_examples(as_json, output_format(form))


@examples_app.command("copy")
def examples_copy(name: o.ExampleName, output: o.ExampleOutput = None) -> int:
    """Write an example as a file of your own; nothing is overwritten."""
    from capplan.cli.examples import copy_example

    return copy_example(name, output)
