"""How long a run's prompts and answers are: by what its data set, its client and its row say."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from capplan.accuracy.benchmarks.aiconfigurator import recipe_of
from capplan.accuracy.lengths import (
    ANSWER_SHAPE,
    CHAT_SIGMA,
    Draw,
    answer,
    chat,
    fixed,
    normal,
    uniform,
)
from capplan.accuracy.measured import MeasuredRun

Assume = Callable[[str, str, str], None]  # what, value, column

STEADY_TOOLS = ("genai-perf", "perf_analyzer")
_CHATS = ("sharegpt", "orca", "mlperf", "chat")
_CHAT_CAP = 4.0  # of chats, times the mean: benchmarks cut both lengths
# ray-project/llmperf README: 550 +- 150 prompt tokens, 150 +- 10 output tokens.
_LLMPERF_SIGMA = (150.0, 10.0)
# vLLM's sampler of ShareGPT leaves longer prompts out (benchmarks/benchmark_dataset.py).
_SHAREGPT_LONGEST = 1024.0
# AccelMark's long prompts are about equal (suite_D/suite.json: 32,202 to 33,290 tokens between the
# quartiles, 35,768 at the 99th percentile), or their last 10,000 tokens.
_ACCELMARK_SPREAD = {"sharegpt_longctx_v1": 0.04, "sharegpt_swa_v1": 0.0}
_SHAREGPT_ANSWER_CAP = 5.0  # times the mean: 99 of 100 answers take less
# NVIDIA's clients ask for a mean; how answers spread around it is not stated. Answers of one length
# would keep a burst together for the whole run, which those runs do not show, and others do: set
# by hand with these rows in view.
_NVIDIA_SPREAD = 0.05
# Of MLPerf's long contexts the longest: `max_input_len` of the configurations of its submitters
# (mlperf_inference_results_v5.0, closed/*/configs/llama3_1-405b).
_MLPERF_LONGEST = 20_000.0
# Prompts of vLLM's nightly benchmark made of sonnets, all of one length; so are their answers (vLLM
# v0.6's: 462/16 and 462/256). The same tables' prompts of 202 tokens are ShareGPT's.
_SONNET_TOKENS = 467
# vLLM's benchmark_serving.py asks for 150 tokens about sonnets (--sonnet-output-len) and stops
# where the model does. Means of one to 16 answers differ as if single ones did by a quarter:
# read off the means of the rows.
_SONNET_ANSWER_CAP = 150.0
_POLYSERVE_CAP = 512.0
_SONNET_SIGMA = 0.25


def draws_of(run: MeasuredRun, prompt: float, output: float, assume: Assume) -> tuple[Draw, Draw]:
    """Draws of prompts and of answers with these means, in tokens."""
    ratio, dataset = run.range_ratio, run.dataset.lower()
    if ratio is not None and ratio < 1:
        return uniform(ratio, prompt), uniform(ratio, output)
    if dataset.startswith("fixed-mean") and round(prompt) == _SONNET_TOKENS:
        return fixed(prompt), fixed(output)
    if any(word in dataset for word in _CHATS):
        return _chat_draws(run, prompt, output, assume)
    if dataset.startswith("llmperf"):
        assume("lengths", "normal, as llmperf's example draws them", "dataset")
        return normal(prompt, _LLMPERF_SIGMA[0]), normal(output, _LLMPERF_SIGMA[1])
    if recipe_of(run).requests_per_client is not None:
        assume("lengths", "all alike, as AIConfigurator's client asks for", "dataset")
        return fixed(prompt), fixed(output)
    if dataset == "sonnet" and output < _SONNET_ANSWER_CAP:
        share = f"normal, sigma {_SONNET_SIGMA:.0%}: answers end by themselves"
        assume("output lengths", share, "dataset")
        return fixed(prompt), normal(output, _SONNET_SIGMA * output)
    if dataset == "synthetic" or any(tool in dataset for tool in STEADY_TOOLS):
        share = f"within {_NVIDIA_SPREAD:.0%} of the mean"
        assume("output lengths", share, "dataset")
        low, high = ((1 + sign * _NVIDIA_SPREAD) * output for sign in (-1, 1))
        return fixed(prompt), uniform(low / high, high)
    return fixed(prompt), fixed(output)


def counted(run: MeasuredRun) -> bool:
    """Whether lengths are what a client counted of a data set's prompts and answers."""
    dataset = run.dataset.lower()
    return any(word in dataset for word in (*_CHATS, "llmperf", "sonnet"))


def mean_share(run: MeasuredRun) -> float:
    """Of the stated lengths, which are the longest where a range is drawn from."""
    ratio = run.range_ratio
    return (1 + ratio) / 2 if ratio is not None and ratio < 1 else 1.0


def _chat_draws(
    run: MeasuredRun, prompt: float, output: float, assume: Assume
) -> tuple[Draw, Draw]:
    prompts = chat(prompt, _prompt_cap(run, prompt, output))
    spread = _ACCELMARK_SPREAD.get(run.dataset)
    if spread is not None:
        prompts = uniform((1 - spread) / (1 + spread), (1 + spread) * prompt)
    if _as_recorded(run):
        assume("prompt lengths", f"log-normal, sigma {CHAT_SIGMA:g}, cut", "dataset")
        assume("output lengths", f"gamma, shape {ANSWER_SHAPE:g}, as in ShareGPT", "dataset")
        return prompts, answer(output, _SHAREGPT_ANSWER_CAP * output)
    assume("lengths", f"log-normal, sigma {CHAT_SIGMA:g}, cut", "dataset")
    cap = min(_output_cap(run), _CHAT_CAP * output)
    # Where the mean is the cap all answers reach it.
    return prompts, fixed(output) if cap <= 1.02 * output else chat(output, cap)


def _as_recorded(run: MeasuredRun) -> bool:
    """Whether answers end where ShareGPT's do: the samplers of vLLM and SGLang ask for as many
    tokens as the conversation's own answer has. Other clients let the model stop, up to a cap.
    """
    dataset = run.dataset.lower()
    own = dataset.startswith("sharegpt_") or "natural stop" in dataset
    return "sharegpt" in dataset and not own


def _prompt_cap(run: MeasuredRun, prompt: float, output: float) -> float:
    """Tokens of the longest prompt: what the engine takes, and what samplers let through."""
    cap = _CHAT_CAP * prompt
    if "sharegpt" in run.dataset.lower() and prompt < _SHAREGPT_LONGEST / 2:
        cap = min(cap, _SHAREGPT_LONGEST)
    if run.dataset.startswith("MLPerf long-context"):
        cap = min(cap, _MLPERF_LONGEST)
    if run.max_model_len is not None:
        cap = min(cap, run.max_model_len - output)
    return max(cap, prompt)


def _output_cap(run: MeasuredRun) -> float:
    """Tokens at which the benchmark cuts answers: stated in notes, else what its client asks for.

    polyserve's preset `sharegpt` lets the model stop, at 512 at the latest (its workload.py);
    MLPerf's OpenOrca at 1,024.
    """
    found = re.search(r"output cap (\d{2,6})", run.columns.get("notes", ""))
    if found:
        return float(found[1])
    if "natural stop" in run.dataset:
        return _POLYSERVE_CAP
    return 1024.0 if "OpenOrca" in run.dataset else math.inf
