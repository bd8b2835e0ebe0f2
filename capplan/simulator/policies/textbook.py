"""The schedulers of the papers."""

from __future__ import annotations

from capplan.simulator.policies.policy import Policy
from capplan.simulator.policies.pool import Pool


class StaticBatching(Policy):
    """Request-level scheduling with padding.

    A batch is formed of who waits when the engine is free; prompts are padded to the longest, and
    whoever has finished keeps his slot, computing padding, until the longest output is done.
    Tokens are streamed as they come; what is held back is the slot. The baseline of Yu et al.,
    "Orca", OSDI 2022, section 2.
    """

    name = "static"
    pads = keeps_slots = True
    mixes = False

    def admits(self, engine: Pool) -> bool:
        return not engine.running


class DecodeFirst(Policy):
    """Decode-prioritising: nobody is admitted before all running requests are done.

    Who has finished leaves the batch, so nothing is padded. Agrawal et al., "Sarathi-Serve",
    2403.02310, section 3.1 and algorithm 1, with FasterTransformer as the example.
    """

    name = "decode-first"
    mixes = False

    def admits(self, engine: Pool) -> bool:
        return not engine.running


class Orca(Policy):
    """Iteration-level scheduling with whole prompts beside decodes.

    Yu et al., "Orca", OSDI 2022, section 4: selection by arrival up to the maximum batch size and
    the reserved KV slots. It knows no token budget.
    """

    name = "orca"


class PrefillFirst(Policy):
    """vLLM V0: a step has prompts or decodes, and prompts go first, whole.

    2403.02310, algorithm 2 ("prefill-prioritising"); vLLM 0.4 to 0.7, core/scheduler.py:
    `max_num_batched_tokens` per prompt step, a watermark of 1 % of the blocks at admission,
    the latest request is evicted and computed anew.
    """

    name = "prefill-first"
    mixes = False

    def budget(self, engine: Pool) -> int:
        return engine.config.max_num_batched_tokens

    def longest_prompt(self, engine: Pool) -> int | None:
        return engine.config.max_num_batched_tokens


class ChunkedPrefill(Policy):
    """Stall-free: all decodes, then begun prompts, then new ones, within one token budget.

    2403.02310, algorithm 3; vLLM V1 has the same rule.
    """

    name = "chunked"
    chunked = True

    def budget(self, engine: Pool) -> int:
        return engine.config.max_num_batched_tokens - engine.num_decodes
