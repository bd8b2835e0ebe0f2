"""How long prompts and answers are: a draw of whole tokens from a client's distribution."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from capplan.formulas.limited_means import lognormal_limited_mean

Draw = Callable[[random.Random], int]
# Prompts and answers of chats: about log-normal. Benchmarks cut both at a cap.
CHAT_SIGMA = 0.8
_CHAT_CV = math.sqrt(math.expm1(CHAT_SIGMA**2))
# Answers recorded in ShareGPT: many of a few words, some long. SGLang's client with 1,000 of them
# prints 196 tokens in the mean and, at 12 ms a token, answers that take 0.6 of the mean in the
# median, 4.1 times it at the 99th percentile, with a deviation of 1.1: a gamma of this shape.
ANSWER_SHAPE = 0.8


def fixed(tokens: float) -> Draw:
    """Whole numbers whose mean is ``tokens``."""
    low = math.floor(tokens)
    part = tokens - low
    if part < 1e-9:
        return lambda _: low
    return lambda rng: low + (rng.random() < part)


def uniform(ratio: float, tokens: float) -> Draw:
    """Integers in [ratio x tokens, tokens], as vLLM's and InferenceX's clients draw them."""
    low, high = max(1, int(ratio * tokens)), round(tokens)
    return lambda rng: rng.randint(low, high)


def normal(mean: float, sigma: float) -> Draw:
    return lambda rng: max(1, round(rng.gauss(mean, sigma)))


def chat(mean: float, cap: float) -> Draw:
    """Log-normal, cut at ``cap``; the location is such that the cut numbers have this mean."""
    cap = max(cap, mean)
    location = _location(mean, cap)

    def draw(rng: random.Random) -> int:
        return max(1, round(min(cap, math.exp(rng.gauss(location, CHAT_SIGMA)))))

    return draw


def answer(mean: float, cap: float) -> Draw:
    """Gamma, cut at ``cap``."""
    scale = mean / ANSWER_SHAPE
    return lambda rng: max(1, round(min(cap, rng.gammavariate(ANSWER_SHAPE, scale))))


def _location(mean: float, cap: float) -> float:
    """Of the log-normal that has this mean when it is cut."""
    low, high = math.log(mean) - 3, math.log(mean) + 3
    for _ in range(50):
        middle = (low + high) / 2
        uncut = math.exp(middle + CHAT_SIGMA**2 / 2)
        too_low = lognormal_limited_mean(uncut, _CHAT_CV, cap) < mean
        low, high = (middle, high) if too_low else (low, middle)
    return (low + high) / 2


def with_mean(lengths: Sequence[int], mean: float) -> list[int]:
    """The same spread, with this mean but for rounding; no length below one token."""
    factor = mean * len(lengths) / sum(lengths)
    return [max(1, round(length * factor)) for length in lengths]
