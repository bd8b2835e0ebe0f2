"""Prefix caching: what a request finds, what it makes findable, what it leaves behind."""

from __future__ import annotations

from capplan.simulator.blocks import Block, BlockTable
from capplan.simulator.content import KeyBook
from capplan.simulator.sequence import Sequence


class PrefixCache:
    """The named blocks of one replica."""

    def __init__(self, block_size: int, usable_blocks: int) -> None:
        self.block_size = block_size
        self.table = BlockTable(usable_blocks)
        self.book = KeyBook(block_size)
        self.is_shared = False  # a request has come that others may have something in common with

    def take(self, number: int) -> None:
        """Take blocks from the front of the free queue; the caller knows there are as many."""
        self.table.settle(self.table.count - number)

    def find(self, seq: Sequence) -> list[Block]:
        """The blocks that its known tokens hit; at least one token is left to compute.

        As every method here, it goes by the table as it is settled.
        """
        found: list[Block] = []
        limit = (seq.target - 1) // self.block_size
        copies_of = self.table.found.get  # asked once for every block of every prompt
        for key in seq.keys[:limit]:
            copies = copies_of(key)
            if copies is None:
                return found
            found.append(copies[0])
        if seq.num_preemptions:  # its own blocks of earlier lives, findable under a private key
            for position in range(len(seq.keys), limit):
                copies = copies_of((seq.index, position))
                if copies is None:
                    break
                found.append(copies[0])
        return found

    def register(self, seq: Sequence, tokens: int) -> None:
        """Make those of its first blocks findable that are full with `tokens` tokens."""
        blocks = seq.blocks
        for key in seq.keys[len(blocks) : tokens // self.block_size]:
            blocks.append(self.table.add(key))

    def leave(self, seq: Sequence, computed: int, registered: int, *, preempted: bool) -> int:
        """Release its blocks; says how many are free now.

        It holds blocks for `computed` tokens; those full with `registered` tokens are registered.
        """
        size = self.block_size
        full, held = registered // size, -(-computed // size)
        if not (seq.keys or seq.blocks or preempted):
            return self.table.release_nameless(full, held - full)
        if seq.keys:
            self.register(seq, registered)
        if preempted:  # it will look for these when it is resumed
            for position in range(len(seq.blocks), full):
                seq.blocks.append(self.table.add((seq.index, position)))
        named = seq.blocks
        seq.blocks = []
        return self.table.release(named, max(0, full - len(named)), held - max(full, len(named)))
