"""What makes one fleet better than another: money, GPUs, watts or latency."""

from __future__ import annotations

import math
from typing import Literal, get_args

from capplan.planner.fleet import Fleet, fleet_of
from capplan.planner.money import price_of
from capplan.planner.question import Question
from capplan.planner.sizing.candidates import Candidate

Objective = Literal["cost", "gpus", "watts", "latency"]
OBJECTIVES = get_args(Objective)
Rank = tuple[float, ...]


def usd_per_hour(question: Question, fleet: Fleet) -> float | None:
    price = price_of(question.hardware, question.fleet)
    if price is None:
        return None
    return price.usd_per_gpu_hour * question.fleet.price_factor * fleet.num_bought


def peak_power_w(question: Question, fleet: Fleet) -> float | None:
    board = question.hardware.board
    return None if board is None else board.tdp * fleet.num_bought


def rank(candidate: Candidate, num_replicas: int, objective: Objective, e2e_s: float) -> Rank:
    """Lower is better; it never falls as replicas are added."""
    question = candidate.question
    fleet = fleet_of(question, num_replicas, candidate.gpus_per_replica)
    ties = (fleet.num_gpus, fleet.num_bought, candidate.gpus_per_replica)
    if objective == "gpus":
        return ties
    if objective == "latency":
        return (e2e_s, *ties)
    of = usd_per_hour if objective == "cost" else peak_power_w
    value = of(question, fleet)
    return (math.inf if value is None else value, *ties)
