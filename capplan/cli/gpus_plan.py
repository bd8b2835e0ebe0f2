"""`capplan gpus --plan` and `--trace`: what a file says, with options laid over it."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any, NamedTuple

from capplan import units
from capplan.cli.gpus_asked import GpusOptions
from capplan.cli.inputs import Inputs, checked_name
from capplan.cli.traffic import TrafficOptions, folder_of, traffic_mapping, traffic_spec
from capplan.errors import CapplanError
from capplan.formulas.number_formats import FORMATS
from capplan.planner.sizing.course import Recorded
from capplan.planner.sizing.demand import Demand
from capplan.simulator.traffic.build import requests_of
from capplan.specs.documents import Document
from capplan.specs.plan import Plan, read_plan
from capplan.specs.rates import ConstantRate
from capplan.specs.slos import SloLimit
from capplan.specs.traffic import TrafficSpec


class Planned(NamedTuple):
    """Options that the plan has filled in, its traffic, and that as it would be written again."""

    options: GpusOptions
    demand: Demand
    traffic: dict[str, Any]


def planned(options: GpusOptions, inputs: Inputs) -> Planned:
    """Raises CapplanError."""
    plan: Plan | None = None
    document: Document | None = None
    if options.plan is not None:
        plan, document = read_plan(Path(checked_name("--plan", options.plan)))
    asked = TrafficOptions(
        qps=options.qps,
        users=None,
        think_time=None,
        peak_factor=options.peak_factor,
        arrivals=options.arrivals,
        prompt_tokens=options.prompt_tokens,
        output_tokens=options.output_tokens,
        trace=options.trace,
        skip_bad_rows=None,
        num_requests=None,
        duration=None,
        seed=None,
    )
    spec = traffic_spec(asked, plan, document, inputs)
    folder = folder_of(options.plan, asked)
    demand = _demand(spec, folder, inputs)
    filled = _filled(options, plan) if plan is not None else options
    return Planned(filled, demand, _from_here(traffic_mapping(asked, document, inputs), folder))


def _from_here(section: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Names of files, which count from the plan, as they are called from here."""

    def of(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: of(key, each) for key, each in value.items()}
        if isinstance(value, list):
            return [of(name, each) for each in value]
        if name == "file" and isinstance(value, str):
            return str(folder / value)
        if isinstance(value, str) and value.startswith("@"):
            return f"@{folder / value[1:]}"
        return value

    found: dict[str, Any] = of("traffic", section)
    return found


def _demand(spec: TrafficSpec, folder: Path, inputs: Inputs) -> Demand:
    """A trace without a rate is sized for its busiest minutes, its requests coming at random."""
    if spec.classes or spec.trace is None or spec.rate is not None:
        return Demand(spec, folder)
    times = array("d", (each.arrival_s for each in requests_of(spec, 0, folder).requests()))
    recorded = Recorded(spec, folder, times)
    if not recorded.peak_per_s:
        raise CapplanError(
            f"all requests of the trace {spec.trace.file} come at one moment",
            hint="give the rate at which they are to come: --qps",
        )
    rate, span = recorded.peak_per_s, units.format_duration(recorded.window_s, digits=3)
    said = f"{units.format_rate(rate, digits=3)}: its busiest {span}, of {len(times):,} requests"
    inputs.assume("rate of the trace", said, "--qps")
    at_rate = {"rate": ConstantRate.model_construct(kind="constant", rate=rate)}
    return Demand(spec.model_copy(update=at_rate), folder, recorded)


def _filled(options: GpusOptions, plan: Plan) -> GpusOptions:
    """Every option that was not given, as the plan would have it."""
    flags, degrees = plan.engine.settings, plan.deployment
    said = degrees.model_fields_set
    found: dict[str, Any] = {
        "model": plan.model,
        "hardware": plan.hardware,
        "engine": plan.engine.name,
        "engine_version": plan.engine.version,
        "dtype": _weights(flags.quantization, flags.dtype),
        "kv_dtype": flags.kv_cache_dtype,
        "max_num_seqs": _text(flags.max_num_seqs),
        "max_num_batched_tokens": _text(flags.max_num_batched_tokens),
        "gpu_memory_utilization": _text(flags.gpu_memory_utilization),
        "block_size": _text(flags.block_size),
        "enable_prefix_caching": flags.enable_prefix_caching,
        "async_scheduling": flags.async_scheduling,
        "tp": str(degrees.tp) if "tp" in said else None,
        "pp": str(degrees.pp) if "pp" in said else None,
        "expert_parallel": "on" if degrees.ep > 1 and degrees.dp == 1 else None,
        "dp_attention": str(degrees.dp) if "dp" in said else None,
        "spares": _text(degrees.spares),
        **_growth(plan),
        "price": None if degrees.price is None else f"${degrees.price:.9g}",
        **_slos(plan),
    }
    return options._replace(
        **{n: v for n, v in found.items() if getattr(options, n) is None and v is not None}
    )


def _growth(plan: Plan) -> dict[str, str | None]:
    growth = plan.growth
    return {} if growth is None else {"growth": growth.rate, "horizon": growth.horizon}


def _slos(plan: Plan) -> dict[str, str | None]:
    slos = plan.slos
    if slos is None:
        return {}
    return {
        "slo_ttft": _limit(slos.ttft),
        "slo_tpot": _limit(slos.tpot),
        "slo_itl": _limit(slos.itl),
        "slo_e2e": _limit(slos.e2e),
        "slo_percentile": f"{slos.percentile:g}",
        "slo_goodput": _text(slos.goodput),
    }


def _limit(limit: SloLimit | None) -> str | None:
    if limit is None:
        return None
    own = "" if limit.percentile is None else f"p{limit.percentile:g}:"
    return f"{own}{limit.limit:.9g}s"


def _text(value: float | None) -> str | None:
    return None if value is None else f"{value:.9g}"


def _weights(quantization: str | None, dtype: str | None) -> str | None:
    if quantization is not None:
        return quantization if quantization.lower() in FORMATS else "auto"
    return dtype
