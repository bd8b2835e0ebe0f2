"""KV blocks that have a name, and the free queue of an engine with prefix caching.

A block needs a name only if somebody may look it up: full blocks of shared prompts, all full
blocks of a request that a later one continues, and the blocks of a preempted request. All others
are numbers: so many blank ones at the front of the queue, so many in a run within it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable


class Block:
    """A registered block: found under its key, free while nobody uses it."""

    __slots__ = ("key", "uses")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.uses = 1


class Run:
    """Registered blocks that nobody will ever look up, side by side in the free queue."""

    __slots__ = ("length",)

    def __init__(self, length: int) -> None:
        self.length = length


class BlockTable:
    """Which blocks can be found, and in which order free ones are taken.

    Free blocks are taken from the front. A released block goes to the end if it is registered,
    else to the front; a registered one that is taken cannot be found any more.
    """

    def __init__(self, usable_blocks: int) -> None:
        self.count = usable_blocks  # in the queue
        self._blank = usable_blocks  # at the front
        self._queue: OrderedDict[Block | Run, None] = OrderedDict()
        self._last: Run | None = None  # the end of the queue, where it is a run
        self.found: dict[Hashable, list[Block]] = {}  # oldest first

    def clear(self, usable_blocks: int) -> None:
        """All blocks are free and blank. In place: others hold on to these containers."""
        self.count = self._blank = usable_blocks
        self._queue.clear()
        self._last = None
        self.found.clear()

    def settle(self, free: int) -> None:
        """Take from the front what has been taken since: only so many blocks are free.

        Who holds how many blocks is known without the queue, so this is called only when its
        order matters: before blocks are looked up, held or released.
        """
        blank, taken = self._blank, self.count - free
        while blank < taken:
            entry, _ = self._queue.popitem(last=False)
            if type(entry) is Block:
                self._forget(entry)
                blank += 1
            else:
                assert isinstance(entry, Run)
                blank += entry.length
                if entry is self._last:
                    self._last = None
        self._blank, self.count = blank - taken, free

    def _forget(self, block: Block) -> None:
        copies = self.found[block.key]
        if len(copies) == 1:
            del self.found[block.key]
        else:
            copies.remove(block)

    def add(self, key: Hashable) -> Block:
        """Make a block that somebody holds findable."""
        block = Block(key)
        copies = self.found.get(key)
        if copies is None:
            self.found[key] = [block]
        else:
            copies.append(block)
        return block

    def hold(self, blocks: list[Block]) -> int:
        """Use found blocks; says how many of them were free."""
        idle = 0
        queue = self._queue
        for block in blocks:
            if not block.uses:
                del queue[block]
                idle += 1
            block.uses += 1
        self.count -= idle
        return idle

    def release(self, named: list[Block], nameless: int, unregistered: int) -> int:
        """Release a request's blocks, last first; says how many are free now.

        Its table is: `named` ones, `nameless` registered ones, `unregistered` ones.
        """
        freed = self.release_nameless(nameless, unregistered)
        queue = self._queue
        for block in reversed(named):
            block.uses -= 1
            if not block.uses:
                queue[block] = None
                self._last = None
                freed += 1
                self.count += 1
        return freed

    def release_nameless(self, registered: int, unregistered: int) -> int:
        """Release blocks that nobody will look up; says how many."""
        self._blank += unregistered
        if registered:
            if self._last is None:
                self._last = Run(registered)
                self._queue[self._last] = None
            else:
                self._last.length += registered
        self.count += registered + unregistered
        return registered + unregistered

    @property
    def num_free(self) -> int:
        """Counted anew, to check `count`."""
        runs = sum(entry.length if isinstance(entry, Run) else 1 for entry in self._queue)
        return self._blank + runs
