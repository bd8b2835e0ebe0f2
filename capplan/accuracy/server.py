"""The server of a run: its step times, its KV pool and what lies before the engine."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.accuracy.settings import RunSettings
from capplan.accuracy.step_table import StepTable
from capplan.performance.kv_engine import Deployment, KvEngine
from capplan.performance.kv_pool import KvPool
from capplan.performance.rates import derated_rates
from capplan.performance.step import StepModel

# HTTP, tokenizer and detokenizer of a request.
_FRONT_END_S = {
    "vllm": 0.01,
    "sglang": 0.013,
    "tensorrt-llm": 0.02,
    "tgi": 0.014,
    "turbomind": 0.007,
}
_PROMPT_TOKEN_S = 2e-6


@dataclass(frozen=True)
class Server:
    settings: RunSettings
    steps: StepTable
    deployment: Deployment

    def front_end_s(self, prompt_tokens: float) -> float:
        """What a client waits for beside the engine's steps."""
        return _FRONT_END_S[self.settings.engine.kind] + _PROMPT_TOKEN_S * prompt_tokens

    def kv_tokens(self, context_tokens: float, longest_tokens: int) -> tuple[float, str | None]:
        """Tokens that the pool holds in requests of this length, over all attention copies.

        Stages of a pipeline work on batches of their own, which share the pool: each has a part.
        A run that took place had room for its longest request, whatever the estimate; the second
        value says so.
        """
        likely = self._held(self.deployment.pool, context_tokens)
        if likely >= longest_tokens:
            return likely, None
        most = max(self._held(self.deployment.most_pool, context_tokens), longest_tokens)
        return most, f"{most:,.0f} tokens: the estimate of {likely:,.0f} would not have run"

    def _held(self, pool: KvPool, context_tokens: float) -> float:
        length = max(1, round(context_tokens))
        if pool.keeps_nothing:
            return float("inf")
        blocks = pool.decode_blocks(length)
        tokens = length * pool.usable_blocks / blocks if blocks else float("inf")
        return tokens * self.settings.dp / self.settings.pp


# Filled as rows ask for it; specifications are not hashable, their catalogue names are.
_STEPS: dict[tuple[str, str, int, str | None, str], StepTable] = {}


def server_of(settings: RunSettings) -> Server:
    """Raises CapplanError where the accelerator cannot compute in this format."""
    tp = settings.tp * settings.dp
    key = settings.model_id, settings.hardware_id, tp, settings.dtype, settings.kv_dtype
    steps = _STEPS.get(key)
    if steps is None:
        steps = _STEPS[key] = _step_table(settings, tp)
    return Server(settings, steps, _deployment(settings))


def _step_table(settings: RunSettings, tp: int) -> StepTable:
    rates = derated_rates(settings.hardware, tp)
    model = StepModel(
        settings.model,
        settings.hardware,
        rates,
        tp=tp,
        dtype=settings.dtype,
        kv_dtype=settings.kv_dtype,
    )
    return StepTable(model)


def _deployment(settings: RunSettings) -> Deployment:
    engine = KvEngine(
        profile=settings.engine.profile,
        dtype=settings.dtype,
        kv_dtype=settings.kv_dtype,
        tp=settings.tp,
        pp=settings.pp,
        dp=settings.dp,
        memory_share=settings.memory_share,
        max_model_len=settings.max_model_len,
        max_num_seqs=settings.max_num_seqs,
        max_num_batched_tokens=settings.max_num_batched_tokens,
        async_scheduling=settings.async_scheduling,
    )
    return Deployment(settings.model, settings.hardware, engine, settings.tp)
