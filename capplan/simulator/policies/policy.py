"""What makes a scheduler: when prompts are computed, how much of them, and who is admitted."""

from __future__ import annotations

from collections.abc import Sequence as Items
from math import inf

from capplan.simulator.blocks import Block
from capplan.simulator.policies.pool import Pool
from capplan.simulator.policies.slot import Chunk, Slot

UNLIMITED = 1 << 60
NO_BLOCKS: list[Block] = []


class Policy:
    """First come first served. Subclasses say what is theirs; one object serves one replica."""

    name = ""
    mixes = True  # prompts and decodes share a step; else a step of prompts stalls the decodes
    chunked = False  # a prompt may be cut
    pads = False  # the prompts of a step are padded to the longest
    keeps_slots = False  # who has finished stays in the batch until everybody has
    remembers_evicted = False  # an evicted request may find its prompt's blocks again
    # After a plan without chunks: decode steps after which to be asked again, if nobody
    # arrives or leaves before.
    hold: float = inf

    def budget(self, engine: Pool) -> int:  # noqa: ARG002
        """Prompt tokens that the next step may carry."""
        return UNLIMITED

    def longest_prompt(self, engine: Pool) -> int | None:  # noqa: ARG002
        """Tokens of the longest prompt that can be computed; None without limit."""
        return None

    def admits(self, engine: Pool) -> bool:  # noqa: ARG002
        """May somebody be admitted in this pass?"""
        return True

    def reads_in(self, engine: Pool) -> int:  # noqa: ARG002
        """Decode steps until arrivals are read; 0: in this pass."""
        return 0

    def fits(self, engine: Pool, seq: Slot, found: list[Block]) -> bool:
        """Are the blocks there that the request takes when it is admitted?"""
        spare = engine.spare
        if found:
            spare -= sum([not block.uses for block in found])
        if engine.running:
            spare -= engine.watermark_blocks
        return engine.admission_blocks(seq) - len(found) <= spare

    def plan(self, engine: Pool, *, admitting: bool) -> Items[Chunk]:
        """The prompts that the next step computes: those begun first, then new ones."""
        left = self.budget(engine)
        chunks: list[Chunk] = []
        for seq in engine.in_prompt:
            tokens = self.cut(seq.target - seq.computed, left)
            if tokens <= 0:
                break
            chunks.append((seq, tokens))
            left -= tokens
        waiting, cache = engine.waiting, engine.cache
        if not (admitting and waiting and self.admits(engine)):
            return chunks
        found = NO_BLOCKS
        while waiting and left > 0 and len(engine.running) < engine.slots:
            seq = waiting[0]
            if cache:
                found = cache.find(seq)
            tokens = self.cut(seq.target - len(found) * engine.block_size, left)
            if tokens <= 0 or not self.fits(engine, seq, found):
                break
            engine.admit(seq, found)
            chunks.append((seq, tokens))
            left -= tokens
        return chunks

    def cut(self, wanted: int, left: int) -> int:
        """What a prompt gets of a budget; 0 where it cannot be cut."""
        if wanted <= left:
            return wanted
        return left if self.chunked else 0

    def victim(self, engine: Pool) -> Slot:
        """Who is evicted when decodes lack a block: the last one admitted."""
        return next(seq for seq in reversed(engine.running) if not seq.landing)

    def put_back(self, engine: Pool, seq: Slot) -> None:
        """Where an evicted request waits: at the front."""
        engine.waiting.appendleft(seq)

    def evicted(self, engine: Pool) -> None:
        """Decodes lacked blocks, some had to go."""
