"""KV groups of hybrid models: block tables with holes, window release, lookups per kind.

One pool and one free queue serve all groups. Position i of a group's table covers the tokens
i * block_size up to (i + 1) * block_size - 1 and holds a block or nothing; a state group's
position holds the state after these tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from math import lcm

from capplan.simulator.block_pool import Pool, PoolBlock
from capplan.simulator.config import KvGroup, SchedulerConfig

INFINITE = 10**12


Table = list[PoolBlock | None]


class GroupTables:
    """The block tables of one request, one per group."""

    def __init__(self, num_groups: int) -> None:
        self.tables: list[Table] = [[] for _ in range(num_groups)]
        self.registered = [0] * num_groups  # positions looked at for registration
        self.next_registration = 0  # tokens below which no position is to be looked at
        self.quiet_until = 0  # tokens up to which no block is to be taken or released
        self.junction = 0  # a longer prefix that only some kinds of groups have kept

    def held(self) -> list[int]:
        return [sum(block is not None for block in table) for table in self.tables]


class GroupManager:
    """Allocation, release, registration and lookup over all groups."""

    def __init__(self, config: SchedulerConfig) -> None:
        self.config = config
        self.groups = config.kv_groups or (KvGroup("full", config.block_size),)
        self.single = len(self.groups) == 1
        self.align = config.mamba_cache_mode == "align"
        self.boundary = lcm(*(group.block_size for group in self.groups))
        self.pool = Pool(
            config.usable_blocks, unregistered_first=config.rules.unregistered_blocks_first
        )
        self.fresh_states: set[PoolBlock] = set()  # registered in this pass
        self.kinds: dict[KvGroup, list[int]] = {}
        for index, group in enumerate(self.groups):
            self.kinds.setdefault(group, []).append(index)
        tokens = config.max_num_batched_tokens * (2 if config.async_scheduling else 1)
        self.caps = [
            -(-min(g.window - 1 + tokens, config.max_model_len) // g.block_size) + 1
            if g.window
            else INFINITE
            for g in self.groups
        ]

    def sparse(self, group: KvGroup) -> bool:
        """A state group that keeps single states only."""
        return group.kind == "mamba" and self.align

    def skipped(self, group: KvGroup, computed: int) -> int:
        """Positions at the start that no later token reads."""
        if group.kind == "sliding":
            return max(0, computed - group.window + 1) // group.block_size
        if group.kind == "mamba":
            return max(0, computed - 1) // group.block_size
        return 0

    # Running requests.

    def release_unread(self, own: GroupTables, processed: int) -> None:
        """Give back what is out of the window of `processed` tokens, last position first."""
        for group, table in zip(self.groups, own.tables, strict=True):
            for position in range(min(self.skipped(group, processed), len(table)) - 1, -1, -1):
                block = table[position]
                if block is None:
                    if group.kind == "sliding":
                        break
                    continue  # the state before may lie many empty positions back
                table[position] = None
                self.pool.release([block])

    def missing(self, own: GroupTables, tokens: int) -> int:
        """Blocks to take so that `tokens` tokens have a place."""
        total = 0
        for group, table in zip(self.groups, own.tables, strict=True):
            need = max(0, -(-tokens // group.block_size) - len(table))
            total += min(1, need) if self.sparse(group) else need
        return total

    def extend(self, own: GroupTables, tokens: int) -> None:
        for group, table in zip(self.groups, own.tables, strict=True):
            need = -(-tokens // group.block_size) - len(table)
            if need > 0 and self.sparse(group):
                table += [None] * (need - 1)
                need = 1
            for _ in range(need):
                table.append(self.pool.take())
        own.quiet_until = self._quiet_until(own)

    def _quiet_until(self, own: GroupTables) -> int:
        """Up to this number of tokens nothing changes in any table."""
        ends = []
        for group, table in zip(self.groups, own.tables, strict=True):
            size = group.block_size
            ends.append(len(table) * size)
            if group.kind == "full":
                continue
            # The first position that still holds a block leaves the window next.
            oldest = next((i for i, block in enumerate(table) if block is not None), len(table))
            reach = group.window - 1 if group.kind == "sliding" else 1
            ends.append((oldest + 1) * size + reach - 1)
        return min(ends)

    def release(self, own: GroupTables) -> None:
        for table in own.tables:
            self.pool.release([block for block in reversed(table) if block is not None])
            table.clear()
        own.registered = [0] * len(self.groups)
        own.quiet_until = own.next_registration = 0

    def register(
        self, own: GroupTables, tokens: int, keys: list[list[Hashable]], prompt: int
    ) -> None:
        """Make blocks that are full with `tokens` tokens findable, where the group keeps them."""
        if tokens < own.next_registration:
            return
        if not self.single:
            tokens -= tokens % self.boundary
        marks = [(prompt - 1) // self.boundary * self.boundary]
        marks.append(own.junction // self.boundary * self.boundary)
        for index, group in enumerate(self.groups):
            table = own.tables[index]
            size = group.block_size
            for position in range(own.registered[index], min(tokens // size, len(table))):
                own.registered[index] = position + 1
                block = table[position]
                if block is None or block.key is not None:
                    continue
                if group.kind != "full" and not self._kept(group, position, marks):
                    continue
                self.pool.register(block, (group, index, keys[index][position]))
                if group.kind == "mamba":
                    self.fresh_states.add(block)
        own.next_registration = min(
            (done + 1) * group.block_size
            for done, group in zip(own.registered, self.groups, strict=True)
        )

    def _kept(self, group: KvGroup, position: int, marks: list[int]) -> bool:
        """Does the retention interval keep this position of a sliding or state group?"""
        size, interval = group.block_size, self.config.prefix_cache_retention_interval
        depth = self._depth(group)
        if interval != 0:
            period = max(1, (interval if interval else self.boundary) // size)
            if interval is None and group.kind == "mamba":
                period = 1
            if position % period >= period - depth:
                return True
            if interval is None:
                return False
        return any(mark // size - depth <= position < mark // size for mark in marks)

    @staticmethod
    def _depth(group: KvGroup) -> int:
        """Positions in front of a boundary that a continuation from there reads."""
        if group.kind == "mamba":
            return 1
        return max(1, -(-(group.window - 1) // group.block_size))

    # Admissions.

    def admission_need(
        self, hits: list[Table], hit: int, tokens: int, *, whole_prompt: bool
    ) -> int:
        """Free blocks that an admission with these hits asks for."""
        total = 0
        for index, group in enumerate(self.groups):
            found = hits[index]
            skipped = self.skipped(group, hit)
            places = -(-tokens // group.block_size)
            if whole_prompt and group.kind == "sliding":
                places = min(places, self.caps[index])
            need = max(0, places - max(skipped, len(found)))
            if self.sparse(group):
                need = min(1, max(0, places - len(found)))
                skipped = 0
            total += need + sum(b is not None and not b.uses for b in found[skipped:])
        return total

    def admit(self, own: GroupTables, hits: list[Table], hit: int, tokens: int) -> None:
        """All groups take their hits, then their new blocks."""
        for index, group in enumerate(self.groups):
            skipped = self.skipped(group, hit)
            table = [None] * min(skipped, len(hits[index])) + hits[index][skipped:]
            for block in table:
                if block is not None:
                    self.pool.hold(block)
            own.tables[index] = table
            own.registered[index] = len(table)
        own.next_registration = 0
        self.extend(own, tokens)

    # Lookup.

    def lookup(
        self, keys: list[list[Hashable]], limit: int, own: GroupTables
    ) -> tuple[int, list[Table]]:
        """The longest prefix of at most `limit` tokens that all groups have kept."""
        order = sorted(self.kinds, key=lambda group: group.kind != "full")
        results: dict[KvGroup, tuple[int, list[Table]]] = {}
        hit, longest = limit, 0
        while True:
            current = hit
            for kind in order:
                if kind.kind == "full" and kind in results:
                    current = min(current, results[kind][0])
                    continue
                results[kind] = self._find(kind, keys, current)
                current = results[kind][0]
                longest = max(longest, current)
            one_round = len(order) == 1 or (len(order) == 2 and order[0].kind == "full")
            if one_round or current == hit:
                break
            hit = current
        tables: list[Table] = [[] for _ in self.groups]
        for kind, (_, found) in results.items():
            for index, table in zip(self.kinds[kind], found, strict=True):
                tables[index] = table[: current // kind.block_size]
        own.junction = longest if longest > current and not self.single else 0
        return current, tables

    def _find(
        self, kind: KvGroup, keys: list[list[Hashable]], limit: int
    ) -> tuple[int, list[Table]]:
        members, size = self.kinds[kind], kind.block_size

        def at(position: int) -> list[PoolBlock | None] | None:
            copies = [self.pool.found.get((kind, i, keys[i][position])) for i in members]
            return [c[0] for c in copies if c] if all(copies) else None

        places = limit // size
        found: list[list[PoolBlock | None] | None] = [None] * places
        if kind.kind == "full":
            length = 0
            while length < places and (here := at(length)):
                found[length] = here
                length += 1
            length = length * size // self.boundary * self.boundary // size
        else:
            length = self._find_backwards(kind, at, found)
        empty: list[PoolBlock | None] = [None] * len(members)
        columns = [here or empty for here in found[:length]]
        return length * size, [[column[n] for column in columns] for n in range(len(members))]

    def _find_backwards(
        self,
        kind: KvGroup,
        at: Callable[[int], list[PoolBlock | None] | None],
        found: list[list[PoolBlock | None] | None],
    ) -> int:
        """Sliding and state groups: the last boundary with enough positions in front of it."""
        size, depth, run = kind.block_size, self._depth(kind), 0
        for position in range(len(found) - 1, -1, -1):
            here = at(position)
            if here is None:
                run = 0
                continue
            if not run and (position + 1) * size % self.boundary:
                continue
            found[position] = here
            run += 1
            if run >= depth:
                return position + run
        if kind.kind == "mamba":
            return 0
        return run * size // self.boundary * self.boundary // size
