"""Commands that take a plan: `simulate`, `pareto`, `emit`; and `explain`."""

from __future__ import annotations

import typer

from capplan.cli import options as o
from capplan.cli import simulate_options as s
from capplan.cli.output import output_format


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


def explain_command(context: typer.Context) -> int:
    """How an answer comes about, figure by figure.

    `capplan explain gpus|roofline|kv|simulate` takes that command's options. For every figure: why
    it matters, the picture, the formula, its numbers, and a check; `--format text|markdown` or
    `--json`.
    """
    from capplan.cli.explain_options import explained

    return explained(context)
