"""What each term of the step model buys: the fit without it."""

from __future__ import annotations

from collections.abc import Callable, Container
from copy import copy
from dataclasses import replace

import numpy as np
from performance_fit import Linear, Problem, fit
from performance_folds import leave_out
from performance_params import Name, World, is_common
from performance_rows import Evaluator

from capplan.performance.attention_time import AttentionCosts
from capplan.performance.kernel_rates import KernelRate
from capplan.performance.step import StepModel

Change = Callable[[StepModel], None]


def _rates(model: StepModel, change: Callable[[KernelRate], KernelRate]) -> None:
    model.__dict__["_products"] = tuple(replace(p, rate=change(p.rate)) for p in model._products)
    model.__dict__["_experts"] = tuple(replace(e, rate=change(e.rate)) for e in model._experts)


def no_fixed_times(model: StepModel) -> None:
    _rates(model, lambda rate: replace(rate, fixed_s=0.0))
    model.__dict__["attention"] = replace(model.attention, decode_fixed_s=0.0, prefill_fixed_s=0.0)
    model.__dict__["_elementwise"] = replace(model._elementwise, fixed_s=0.0, sampling_fixed_s=0.0)


def no_overlap(model: StepModel) -> None:
    _rates(model, lambda rate: replace(rate, norm=1.0))


def full_overlap(model: StepModel) -> None:
    _rates(model, lambda rate: replace(rate, norm=20.0))


def no_elementwise(model: StepModel) -> None:
    model.__dict__["_elementwise"] = replace(
        model._elementwise, fixed_s=0.0, s_per_token=0.0, sampling_fixed_s=0.0,
        sampling_s_per_row=0.0,
    )  # fmt: skip


def no_collectives(model: StepModel) -> None:
    model.rates = replace(model.rates, all_reduce=None, exchange=None, hop=None)


def no_host(model: StepModel) -> None:
    model.engine = replace(model.engine, step_s=0.0, sequence_s=0.0)


def no_launches(model: StepModel) -> None:
    model.engine = replace(model.engine, launch_s_per_layer=0.0)


def no_front_end(model: StepModel) -> None:
    model.engine = replace(model.engine, front_end_s=0.0, prompt_token_s=0.0)


def only_active_experts(model: StepModel) -> None:
    model.__dict__["_experts"] = tuple(
        replace(e, num_experts=e.experts_per_token) for e in model._experts
    )


def no_attention(model: StepModel) -> None:
    nothing: dict[int | None, float] = {}
    model.__dict__["attention"] = AttentionCosts(
        nothing, nothing, 0.0, nothing, nothing, 0.0, 0.0, 0.0, 0.0
    )


TERMS: dict[str, Change] = {
    "no fixed time of kernels": no_fixed_times,
    "compute and streaming add up": no_overlap,
    "compute and streaming overlap wholly": full_overlap,
    "no elementwise kernels": no_elementwise,
    "no collectives": no_collectives,
    "no host time": no_host,
    "no launches": no_launches,
    "no front end": no_front_end,
    "experts: only the active ones are read": only_active_experts,
    "no attention": no_attention,
}
# Parameters that are held at their priors.
LIMITS: dict[str, Callable[[Name], bool]] = {
    "constants of a generation's own": lambda name: not is_common(name),
    "constants of expert kernels": lambda name: name[0] == "moe",
}


class _Changed(Evaluator):
    """An evaluator whose models lack a term."""

    def __init__(self, evaluator: Evaluator, change: Change) -> None:
        super().__init__(evaluator.rows)
        self._change = change

    def sums(
        self, world: World, change: Change | None = None, only: Container[int] | None = None
    ) -> np.ndarray:
        return super().sums(world, change or self._change, only)


def ablate(linear: Linear) -> None:
    """Medians as fitted and with source x generation left out, without some of the constants; as
    fitted, without a term: two steps from the full model's parameters."""
    problem, names = linear.problem, linear.names
    spread = dict(zip(names, linear.sigma.tolist(), strict=True))
    theta = dict(zip(names, linear.at.tolist(), strict=True))
    use = ~problem.suspect
    print(f"{'without':42s}  TPOT  throughput  TTFT, and left out")
    _line("the full model", problem, linear.errors, leave_out(linear, "generation").errors)
    nothing = problem.errors({})
    _line("any fit: kernels and first guesses", problem, nothing, nothing)
    for title, drop in LIMITS.items():
        less = linear.without(drop)
        found = problem.errors(less.refit(use))
        _line(title, problem, found, leave_out(less, "generation").errors)
    for title, change in TERMS.items():
        changed = copy(problem)
        changed.evaluator = _Changed(problem.evaluator, change)
        _line(title, problem, changed.errors(fit(changed, spread, theta, use, steps=2)))


def _line(title: str, problem: Problem, *errors: np.ndarray) -> None:
    cells = [
        np.median(np.abs(np.expm1(found[problem.kind == kind])))
        for found in errors
        for kind in ("TPOT", "throughput", "TTFT")
    ]
    print(f"{title:42s} {'  '.join(f'{value:6.1%}' for value in cells)}", flush=True)
