"""A request inside a loop of this package."""

from __future__ import annotations

from capplan.simulator.policies.config import LoopConfig
from capplan.simulator.requests import Request
from capplan.simulator.sequence import Sequence


class Slot(Sequence):
    """`Sequence`, and what a policy may want to know of it."""

    in_prompt = False
    evicted_s = -1.0  # when its last token before an eviction was there

    def __init__(self, request: Request, index: int, config: LoopConfig) -> None:
        super().__init__(request, index, config.max_model_len)
        self.reserved = config.reserved_blocks(request)
        room = config.max_model_len - self.prompt
        # The limit that the engine knows; it does not know when a stop token comes.
        self.announced = max(self.end, min(request.max_tokens or self.end, room))


# Prompt tokens that one request gets in the next step.
Chunk = tuple[Slot, int]
