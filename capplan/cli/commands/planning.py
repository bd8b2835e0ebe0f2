"""Commands that plan a deployment: `gpus`, `roofline`, `kv`."""

from __future__ import annotations

from capplan.cli import gpus_options as g
from capplan.cli import options as o
from capplan.cli import simulate_options as s
from capplan.cli.output import output_format


def gpus(
    qps: o.Qps = None,
    slo_ttft: o.SloTtft = None,
    slo_tpot: o.SloTpot = None,
    slo_itl: s.SloItl = None,
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
    dp_attention: g.DpAttention = None,
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
    calibration: o.Calibration = None,
    emit: o.Emit = None,
    plot: o.Plot = None,
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

    return answer(o.picked(GpusOptions, locals()), as_json, output_format(form), emit, plot)


def roofline(
    model: o.Model = None,
    hardware: o.SomeHardware = None,
    dtype: o.Dtype = None,
    kv_dtype: o.KvDtype = None,
    tp: o.TpOne = None,
    batch: o.Batches = None,
    context: o.Contexts = None,
    kernels: o.Kernels = False,
    calibration: o.Calibration = None,
    plot: o.Plot = None,
    as_json: o.Json = False,
    form: o.Format = None,
) -> int:
    """Where prefill and decode sit under the roof, over batch and context."""
    from capplan.cli.roofline import RooflineOptions, answer

    return answer(o.picked(RooflineOptions, locals()), plot, as_json, output_format(form))


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

    return answer(o.picked(KvOptions, locals()), plot, as_json, output_format(form))
