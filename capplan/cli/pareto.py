"""`capplan pareto`: one setting swept, from option texts to the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capplan.cli.exit_codes import EXIT_FINE, EXIT_INTERRUPTED, EXIT_NO
from capplan.cli.inputs import Inputs
from capplan.cli.output import show
from capplan.cli.plots import PlotOption
from capplan.cli.progress import Progress
from capplan.cli.simulation import MEASURES, Asked, ask
from capplan.errors import CapplanError, did_you_mean
from capplan.planner.parallelism import allowed_tps
from capplan.planner.pareto import SWEEPS, pareto, serving_at
from capplan.planner.simulate import SimulateQuestion
from capplan.render.screen import Screen
from capplan.results.pareto import ParetoInputs
from capplan.specs.percentiles import DEFAULT_SLO_PERCENTILE
from capplan.specs.plan import read_plan

if TYPE_CHECKING:  # only where it is drawn
    from capplan.render.plots.chart import Plot

SCHEMA = "capplan.pareto/1"
DEFAULT_VALUES = {
    "max_num_seqs": "8,16,32,64,128,256,512",
    "max_num_batched_tokens": "512,1024,2048,4096,8192,16384",
    "replicas": "1,2,4,8",
}
DEFAULT_USERS = 64
# Shares of the rate that is served where as many users as seats keep the engine busy.
LOADS = (0.1, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
MAX_VALUES = 64


def answer(texts: Mapping[str, Any], as_json: bool, form: str) -> int:
    """Sweep, print, plot to a file where asked, and return the exit code."""
    inputs = Inputs()
    drawing = PlotOption.of(texts["plot"], "pareto.png", as_json=as_json, form=form)
    sweep = _choice("--sweep", texts["sweep"], SWEEPS, "max_num_seqs")
    latency = _choice("--latency", texts["latency"], MEASURES, "ttft")
    said = any(texts[name] is not None for name in ("plan", "qps", "users", "trace"))
    follow = not said and sweep == "max_num_seqs"
    if sweep == "tp" and texts["tp"] is None:
        texts = {**texts, "tp": _widest(texts)}
    base = ask(texts, inputs, users=None if said or sweep in ("qps", "replicas") else DEFAULT_USERS)
    values = _values(texts, sweep, base, inputs)
    limits = base.question.limits
    own = next((limit for limit in limits if limit.key == latency), None)
    judged = own or next(iter(limits), None)
    percentile = judged.percentile if judged else DEFAULT_SLO_PERCENTILE
    swept = f"--{sweep.replace('_', '-')}"
    inputs.assumptions = [a for a in inputs.assumptions if a.option != swept]
    with Progress("simulating") as progress:
        result = pareto(
            _question_at(texts, base, sweep, follow=follow), values,
            latency=latency, percentile=percentile, progress=progress,
        )  # fmt: skip
    limit_s = own.limit_s if own else None
    asked = ParetoInputs(sweep, tuple(values), latency, percentile, limit_s, follow, base.inputs)

    def screen() -> Screen:
        from capplan.render.pareto import screen as render

        return render(result, asked, inputs.assumptions)

    def plots() -> list[Plot | None]:
        from capplan.render.plots.pareto import pareto_plot

        return [pareto_plot(result, asked)]

    drawing.save(plots)
    show(SCHEMA, asked, inputs.assumptions, result, screen, as_json=as_json, form=form)
    if result.interrupted:
        return EXIT_INTERRUPTED
    return EXIT_FINE if result.frontier else EXIT_NO


def _choice(option: str, text: str | None, known: tuple[str, ...], default: str) -> str:
    found = default if text is None else text.strip().replace("-", "_")
    if found not in known:
        hint = did_you_mean(found[:40], known) or f"one of: {', '.join(known)}"
        raise CapplanError(f"{option}: `{found[:40]}` cannot be swept or plotted", hint=hint)
    return found


def _question_at(
    texts: Mapping[str, Any], base: Asked, sweep: str, *, follow: bool
) -> Callable[[float], SimulateQuestion]:
    """The question of one value: the same seeds, one setting changed."""

    def at(value: float) -> SimulateQuestion:
        if sweep == "qps" or follow:
            changed = dict(texts) if follow else {**texts, "qps": repr(value), "users": None}
            users = int(value) if follow else None
            base_at = ask(changed, Inputs(), users=users).question
        else:
            base_at = base.question
        serving = serving_at(base_at.serving, sweep, value)
        fleet = replace(base_at.fleet, num_replicas=serving.num_replicas)
        return replace(base_at, serving=serving, fleet=fleet)

    return at


def _values(texts: Mapping[str, Any], sweep: str, base: Asked, inputs: Inputs) -> list[float]:
    """As given, or the usual ones, in rising order."""
    text = texts["values"]
    option = "--values"
    if text is None and sweep == "tp":
        deployment = base.question.serving.deployment
        allowed = [float(tp) for tp in allowed_tps(deployment.model, deployment.hardware)]
        found = [tp for tp in allowed if _fits(base, tp)]
        left_out = "" if len(found) == len(allowed) else "; below, it does not fit"
        inputs.assume("tp", ", ".join(f"{v:g}" for v in found) + left_out, option)
        return found
    if text is None and sweep == "qps":
        return _loads(texts, inputs)
    if text is None:
        text = DEFAULT_VALUES[sweep]
        inputs.assume(sweep, text.replace(",", ", "), option)
    parts = text.split(",")
    if len(parts) > MAX_VALUES:
        raise CapplanError(f"{option}: {len(parts):,} values are more than {MAX_VALUES}")
    if sweep == "qps":
        return sorted({inputs.rate(part.strip(), "1") for part in parts})
    most = 1024 if sweep in ("tp", "replicas") else 10**6
    return sorted({float(inputs.whole(option, p.strip(), least=1, most=most)) for p in parts})


def _widest(texts: Mapping[str, Any]) -> str:
    """The largest tensor-parallel degree: where anything fits, it does there."""
    probe = Inputs()
    plan = read_plan(Path(texts["plan"]))[0] if texts["plan"] else None
    model = probe.model(texts["model"] or (plan.model if plan else None))
    hardware = probe.hardware(texts["hardware"] or (plan.hardware if plan else None))
    return str(max(allowed_tps(model.spec, hardware.spec), default=1))


def _fits(base: Asked, tp: float) -> bool:
    try:
        return bool(serving_at(base.question.serving, "tp", tp).config.usable_blocks)
    except CapplanError:
        return False


def _loads(texts: Mapping[str, Any], inputs: Inputs) -> list[float]:
    """Shares of what a busy engine serves."""
    from capplan.planner.simulate import simulate_plan

    probe = ask({**texts, "qps": None, "plan": texts["plan"]}, Inputs(), users=256).question
    capacity = simulate_plan(probe).result.requests_per_s
    found = [float(f"{share * capacity:.3g}") for share in LOADS]
    shown = f"{LOADS[0]:.0%} to {LOADS[-1]:.0%} of the {capacity:.3g} req/s of 256 busy users"
    inputs.assume("qps", shown, "--values")
    return found
