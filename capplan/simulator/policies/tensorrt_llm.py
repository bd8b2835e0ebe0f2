"""TensorRT-LLM's rules as documented; no recorded steps to compare with."""

from __future__ import annotations

from collections.abc import Sequence as Items
from math import inf

from capplan.simulator.policies.policy import Policy
from capplan.simulator.policies.pool import Pool
from capplan.simulator.policies.slot import Chunk


class TensorRtLlm(Policy):
    """In-flight batching: decodes and prompts in one step of at most `max_num_tokens` tokens.

    Which requests are let in is the capacity scheduler's matter. GUARANTEED_NO_EVICT (default):
    the blocks of prompt and announced output must be there, `kv_allocation="max_tokens"`.
    MAX_UTILIZATION: those of the prompt, and the latest request is paused and computed anew when
    blocks run out, `kv_allocation="paged"`. `max_batch_size` is the configuration's
    `max_num_seqs`, `max_num_tokens` its `max_num_batched_tokens`. A prompt that does not fit into
    the step ends the scan unless chunked context is on; chunks are multiples of a block.

    Batch waiting (`batch_wait_timeout_iters`, `batch_wait_max_tokens_ratio`): while decodes run,
    prompts that could be computed are held back until the tokens of prompts and decodes together
    reach ratio * max_num_tokens, or for that many iterations.

    Sources: the pages "Useful Runtime Options" and "Tuning Max Batch Size and Max Num Tokens" of
    the performance guide, "Scheduler" of the PyTorch backend, TorchLlmArgs of the API reference
    (1.1 to 1.4), and what `_torch/pyexecutor/py_executor.py` does in `_waiting_requests`.
    The overlap scheduler is the configuration's `async_scheduling`.
    """

    name = "tensorrt-llm"

    def __init__(
        self,
        *,
        enable_chunked_context: bool = False,
        batch_wait_timeout_iters: int = 0,
        batch_wait_max_tokens_ratio: float = 0.0,
    ) -> None:
        self.chunked = enable_chunked_context
        self._timeout = batch_wait_timeout_iters
        self._ratio = batch_wait_max_tokens_ratio
        self._unit = 1
        self._waits_since: int | None = None  # decode step of the first pass that held back

    def budget(self, engine: Pool) -> int:
        return engine.config.max_num_batched_tokens - engine.num_decodes

    def longest_prompt(self, engine: Pool) -> int | None:
        self._unit = min(engine.block_size, engine.config.max_num_batched_tokens)
        return None if self.chunked else engine.config.max_num_batched_tokens

    def cut(self, wanted: int, left: int) -> int:
        if wanted <= left:
            return wanted
        return left - left % self._unit if self.chunked else 0

    def plan(self, engine: Pool, *, admitting: bool) -> Items[Chunk]:
        self.hold = inf
        if self._timeout and engine.num_decodes and self._waits(engine):
            return ()
        self._waits_since = None
        return super().plan(engine, admitting=admitting)

    def _waits(self, engine: Pool) -> bool:
        """Are prompts held back in this pass?"""
        tokens = self._prompt_tokens(engine)
        enough = self._ratio * engine.config.max_num_batched_tokens
        if not tokens or tokens + engine.num_decodes >= enough:
            return False
        if self._waits_since is None:
            self._waits_since = engine.step
        waited = engine.step - self._waits_since
        self.hold = self._timeout - waited
        return waited < self._timeout

    def _prompt_tokens(self, engine: Pool) -> int:
        """Tokens of the prompts that this pass would compute: whole ones, also where cut."""
        tokens, left = 0, self.budget(engine)
        spare, slots = engine.spare, engine.slots - len(engine.running)
        for seq in (*engine.in_prompt, *engine.waiting):
            if not seq.in_prompt:
                spare -= engine.admission_blocks(seq)
                slots -= 1
            part = self.cut(seq.target - seq.computed, left)
            if part <= 0 or spare < 0 or slots < 0:
                break
            left -= part
            tokens += seq.target
        return tokens
