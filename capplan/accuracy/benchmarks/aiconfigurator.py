"""Runs of AIConfigurator's own recipes: its generator writes the server, its client the load.

NVIDIA's gap-analysis rows name engines in the versions of Dynamo's containers, for which
github.com/ai-dynamo/aiconfigurator generates servers (src/aiconfigurator/generator: rule_plugin,
config/backend_templates) and measures them: src/aiconfigurator/eval/benchmarks, from 2026-03 on
backend_templates/benchmark.
"""

from __future__ import annotations

from dataclasses import dataclass

from capplan.accuracy.engines import engine_of
from capplan.accuracy.measured import MeasuredRun

_BENCH_SCRIPT = "2026-03-03"  # the day that `eval` was removed; bench_run.sh sends 50 a client
_SPARE_TOKENS = 1500  # rule_plugin/trtllm.rule: max_num_tokens = max_batch_size + isl + 1500
_FREE_FRACTION = 0.8  # backend_templates/trtllm, free_gpu_memory_fraction
# Releases 0.7.0 and 0.8.0, until 0.9.0: sizes that were asked for do not reach the configuration
# (config/backend_config_mapping.yaml), whose template has these, without padding.
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_SIZES_LOST = ("2026-03-11", "2026-05-19")


@dataclass(frozen=True)
class Recipe:
    """What generator and client set where others have a default; None or empty: not set.

    ``requests_per_client`` have all the same lengths; a warm-up of two a client ends before them
    (genai_perf_runner.py, bench_run.sh: deviations of 0, `ignore_eos`).
    """

    requests_per_client: int | None = None
    max_num_tokens: int | None = None
    memory_share: float | None = None
    enable_mixed_chunk: bool = False
    cuda_graph_sizes: tuple[int, ...] = ()  # the only ones, unpadded
    notes: tuple[str, ...] = ()


def recipe_of(run: MeasuredRun) -> Recipe:
    """Of TensorRT-LLM and SGLang.

    Of vLLM's rows some were answered faster than their prompts are computed, which prompts that are
    sent once do not allow: which client made them is not known.
    """
    if "aiconfigurator gap-analysis" not in run.columns.get("notes", ""):
        return Recipe()
    engine = engine_of(run).kind
    if engine == "sglang":
        # rule_plugin/sglang.rule; the template of 0.5.6.post2 is younger. `--max-prefill-tokens`
        # (isl + 1500) is in it too, and not taken: 448 clients with 100 tokens each had 350
        # requests running, more than two prompts a step start.
        note = "AIConfigurator's recipe: --enable-mixed-chunk"
        return Recipe(10, enable_mixed_chunk=True, notes=(note,))
    if engine != "tensorrt-llm":
        return Recipe()
    first, end = _SIZES_LOST
    sizes = _SIZES if first <= run.source_date < end else ()
    note = f"AIConfigurator's recipe: CUDA graphs for {', '.join(map(str, _SIZES))} requests alone"
    return Recipe(
        50 if run.source_date >= _BENCH_SCRIPT else 10,
        (run.concurrency or 0) + round(run.isl or 0) + _SPARE_TOKENS,
        _FREE_FRACTION,
        cuda_graph_sizes=sizes,
        notes=(note,) if sizes else (),
    )
