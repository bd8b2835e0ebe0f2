"""The blocks of the request-by-request path: each by name, in one free queue for all KV groups."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable


class PoolBlock:
    """One block of the pool, by name."""

    __slots__ = ("key", "uses")

    def __init__(self) -> None:
        self.key: Hashable | None = None
        self.uses = 0


class Pool:
    """The free queue and the blocks that can be found, oldest copy first."""

    def __init__(self, usable: int, *, unregistered_first: bool) -> None:
        self.free: OrderedDict[PoolBlock, None] = OrderedDict()
        for _ in range(usable):
            self.free[PoolBlock()] = None
        self.found: dict[Hashable, list[PoolBlock]] = {}
        self.unregistered_first = unregistered_first

    def take(self) -> PoolBlock:
        block, _ = self.free.popitem(last=False)
        if block.key is not None:
            copies = self.found[block.key]
            copies.remove(block)
            if not copies:
                del self.found[block.key]
            block.key = None
        block.uses = 1
        return block

    def clear(self) -> None:
        """All blocks are free and none is found."""
        for block in self.free:
            block.key = None
        self.found.clear()

    def register(self, block: PoolBlock, key: Hashable) -> None:
        block.key = key
        self.found.setdefault(key, []).append(block)

    def hold(self, block: PoolBlock) -> None:
        if not block.uses:
            del self.free[block]
        block.uses += 1

    def release(self, blocks: Iterable[PoolBlock]) -> None:
        for block in blocks:
            block.uses -= 1
            if not block.uses:
                self.free[block] = None
                if block.key is None and self.unregistered_first:
                    self.free.move_to_end(block, last=False)
