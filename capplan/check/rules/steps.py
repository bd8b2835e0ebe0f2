"""How long steps take, for rules that weigh throughput against waiting."""

from __future__ import annotations

from capplan.check.cases import Case
from capplan.check.rules.traffic import mean_lengths
from capplan.performance.batch import Chunk
from capplan.performance.step import StepModel


def decode_s(model: StepModel, num_decodes: int, context_tokens: int) -> float:
    return model.decode(num_decodes, model.uniform_reads(num_decodes, context_tokens)).total_s


def chunk_s(model: StepModel, tokens: int) -> float:
    """A step of one prompt and nothing else."""
    return model.mixed(0.0, {}, [Chunk(tokens)]).total_s


def mean_context(case: Case) -> int | None:
    """Tokens of a mean finished request of the stated traffic, or None where none is stated."""
    traffic = case.section.traffic
    if traffic is None:
        return None
    prompt, output = mean_lengths(traffic)
    return round(prompt + output)
