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

    Attention data parallelism with `enable_balance` over ``adp_ranks``: while decodes run, prompts
    are held back until every rank has one (`timeout_iters` at most), and then for
    `batching_wait_iters` more, in which others may join (AttentionDpConfig, and what
    `_balance_adp_requests` does). Requests are dealt evenly, so every rank has a prompt when as
    many wait as there are ranks.
    """

    name = "tensorrt-llm"

    def __init__(
        self,
        *,
        enable_chunked_context: bool = False,
        batch_wait_timeout_iters: int = 0,
        batch_wait_max_tokens_ratio: float = 0.0,
        adp_ranks: int = 1,  # 1: no balancing
        adp_timeout_iters: int = 50,
        adp_batching_wait_iters: int = 10,
    ) -> None:
        self.chunked = enable_chunked_context
        self._timeout = batch_wait_timeout_iters
        self._ratio = batch_wait_max_tokens_ratio
        self._unit = 1
        self._waits_since: int | None = None  # decode step of the first pass that held back
        self._ranks = adp_ranks
        self._adp_timeout, self._adp_batching = adp_timeout_iters, adp_batching_wait_iters
        self._balanced_since: int | None = None  # decode step at which every rank had a prompt

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
        if self._ranks > 1 and engine.num_decodes >= self._ranks and self._balances(engine):
            return ()
        self._waits_since = self._balanced_since = None
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

    def _balances(self, engine: Pool) -> bool:
        """Are prompts held back so that all ranks compute some in the same step?"""
        if not engine.waiting:
            return False
        step = engine.step
        if self._waits_since is None:
            self._waits_since = step
        if len(engine.waiting) < self._ranks:
            left = self._adp_timeout - (step - self._waits_since)
        else:
            if self._balanced_since is None:
                self._balanced_since = step
            left = self._adp_batching - (step - self._balanced_since)
        self.hold = max(0, left)
        return left > 0

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
