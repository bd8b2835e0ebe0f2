"""vLLM V1 inside a benchmark's own program: it has other defaults there than as a server.

`EngineArgs._set_default_max_num_seqs_and_batched_tokens_args` (vllm/engine/arg_utils.py) looks the
defaults up by the way in. `LLM` reads more tokens a step than the server on the same GPU; an
`AsyncEngineArgs` engine of one's own is neither, and has those of `SchedulerConfig`.
"""

from __future__ import annotations

from capplan.accuracy.engines import Engine
from capplan.accuracy.measured import MeasuredRun
from capplan.specs.hardware import HardwareSpec

_OWN_ENGINE = (128, 2048)  # SchedulerConfig.DEFAULT_MAX_NUM_SEQS, DEFAULT_MAX_NUM_BATCHED_TOKENS
_LARGE_BYTES = 70 * 2**30  # of GPU memory, from which `LLM` reads more; A100 is left out
_LLM_TOKENS, _LLM_TOKENS_LARGE = 8192, 16384


def in_process_limits(
    run: MeasuredRun, engine: Engine, hardware: HardwareSpec, server: tuple[int, int]
) -> tuple[int, int]:
    """Sequences and tokens of a step by default; ``server`` is what a server would have."""
    notes = run.columns.get("settings_notes", "")
    if engine.scheduler != "vllm-v1" or not notes.startswith("in-process engine"):
        return server
    if run.workload in ("poisson", "constant-rate", "closed"):
        return _OWN_ENGINE
    large = hardware.visible_memory_bytes >= _LARGE_BYTES and "a100" not in hardware.name.lower()
    return server[0], _LLM_TOKENS_LARGE if large else _LLM_TOKENS
