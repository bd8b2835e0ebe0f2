"""Prefix identity from block hashes: an id stands for its block and for all before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from capplan.simulator.requests import Segment

Id = int | str
MAX_SEGMENTS = 200  # of one prompt; what lies beyond is taken as its own


class PrefixTree:
    """Turns chains of ids into few segments: one for each run of blocks that came together first.

    Blocks that were new in one chain form a stream; a later chain shares its beginning and branches
    off into a stream of its own. An id counts together with the block before it, so that files
    whose ids name only the content of a block are read rightly too.

    The tree knows all chains from the start: blocks that occur once are left to their request,
    since nobody will look for them, and what nobody looks for costs a simulation nothing.
    """

    def __init__(self, chains: Iterable[Sequence[Id]], block_tokens: int, name: str) -> None:
        self._block_tokens, self._name = block_tokens, name
        self._nodes: dict[tuple[int, Id], int] = {}  # (node before, id) -> node
        self._streams: list[int] = []  # of each node
        self._depths: list[int] = []  # blocks of its stream up to and with each node
        self._uses: list[int] = []  # chains that pass each node
        self._num_streams = 0
        for ids in chains:
            self._count(ids)

    def prefix(self, ids: Sequence[Id], prompt_tokens: int) -> tuple[Segment, ...]:
        """The shared segments of a prompt, whose chain is one of the tree's."""
        runs: list[list[int]] = []  # stream, blocks
        node, nodes, uses = -1, self._nodes, self._uses
        for block in ids[: -(-prompt_tokens // self._block_tokens)]:
            node = nodes.get((node, block), -1)
            if node < 0 or uses[node] < 2:
                break
            stream, depth = self._streams[node], self._depths[node]
            if runs and runs[-1][0] == stream:
                runs[-1][1] = depth
            else:
                runs.append([stream, depth])
        left, chain = prompt_tokens, []
        for stream, blocks in runs[:MAX_SEGMENTS]:
            tokens = min(left, blocks * self._block_tokens)
            chain.append((f"{self._name}{stream}", tokens))
            left -= tokens
        return tuple(chain)

    def _count(self, ids: Sequence[Id]) -> None:
        node = -1
        for block in ids:
            parent, node = node, self._nodes.get((node, block), -1)
            if node < 0:
                node = self._grow(parent, block)
            self._uses[node] += 1

    def _grow(self, parent: int, block: Id) -> int:
        node = len(self._streams)
        self._nodes[parent, block] = node
        self._uses.append(0)
        # The node made just before is the parent: the same run of new blocks goes on.
        if parent == node - 1 and parent >= 0:
            self._streams.append(self._streams[parent])
            self._depths.append(self._depths[parent] + 1)
        else:
            self._streams.append(self._num_streams)
            self._depths.append(1)
            self._num_streams += 1
        return node
