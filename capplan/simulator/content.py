"""Keys of full blocks: equal numbers mean equal tokens up to the end of the block."""

from __future__ import annotations

from collections.abc import Hashable
from collections.abc import Sequence as Items

from capplan.simulator.requests import Request, Segment

MAX_CHAINS = 4096  # kept at a time: system prompts come again and again, conversations do not
MAX_NUMBERS = 200_000  # kept before those that nobody can ask for any more are forgotten


class KeyBook:
    """Numbers for block contents of one block size."""

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size
        self._numbers: dict[tuple[object, ...], int] = {}  # by (number of the block before, ...)
        self._next = 0
        self.limit = MAX_NUMBERS
        self._chains: dict[tuple[Segment, ...], list[int]] = {(): []}

    def keys(self, request: Request) -> Items[int]:
        """Keys of the blocks of this request that another request may have or look for."""
        if not request.prefix and not request.reused:
            return ()
        chain = self._shared(request)
        if request.reused:
            chain.append(request.own_segment)
        return self._of_chain(tuple(chain))

    def own_keys(self, request: Request, lookahead: int) -> list[Hashable]:
        """Keys of all its blocks; with `lookahead`, a key covers the next token as well."""
        chain = (*self._shared(request), request.own_segment)
        keys: list[Hashable] = list(self._of_chain(chain))
        if not lookahead:
            return keys
        total, size = sum(tokens for _, tokens in chain), self._block_size
        ends = [(position + 1) * size for position in range(len(keys))]
        return [
            (key, *_pieces(chain, end, end + 1))
            for key, end in zip(keys, ends, strict=True)
            if end < total
        ]

    @staticmethod
    def _shared(request: Request) -> list[Segment]:
        """The shared segments, cut to the prompt."""
        left, chain = request.prompt_tokens, []
        for stream, tokens in request.prefix:
            if left and tokens:
                chain.append((stream, min(tokens, left)))
                left -= chain[-1][1]
        return chain

    def _of_chain(self, chain: tuple[Segment, ...]) -> list[int]:
        known = self._chains.get(chain)
        if known is None:
            if len(self._chains) > MAX_CHAINS:
                self._chains = {(): []}
            known = self._extended(chain)
            self._chains[chain] = known
        return known

    def _extended(self, chain: tuple[Segment, ...]) -> list[int]:
        """The keys of all segments but the last are known or computed first."""
        size = self._block_size
        keys = list(self._of_chain(chain[:-1]))
        total = sum(tokens for _, tokens in chain)
        stream, length = chain[-1]
        start = total - length  # where the last segment begins
        key = keys[-1] if keys else -1
        for end in range((len(keys) + 1) * size, total + 1, size):
            begin = end - size
            if begin >= start:
                piece: tuple[object, ...] = (key, stream, begin - start)
            else:
                piece = (key, *_pieces(chain, begin, end))
            known = self._numbers.get(piece)
            if known is None:
                known = self._numbers[piece] = self._next
                self._next += 1
            key = known
            keys.append(key)
        return keys

    def __len__(self) -> int:
        """Numbers that are kept."""
        return len(self._numbers)

    def forget(self, alive: set[Hashable]) -> None:
        """Keep the numbers of `alive` blocks and of all that stand before these, and no others.

        Alive is what can be found or may still be registered. A block of which the one before is
        gone can be found again when that one is computed anew, so that one keeps its number, too.
        """
        kept: dict[tuple[object, ...], int] = {}
        for piece, number in reversed(self._numbers.items()):  # followers come later
            if number in alive:
                kept[piece] = number
                alive.add(piece[0])
        self._numbers = dict(reversed(kept.items()))
        self._chains = {(): []}
        self.limit = max(self.limit, 2 * len(self._numbers))


def _pieces(chain: tuple[Segment, ...], begin: int, end: int) -> list[tuple[str, int, int]]:
    """(stream, first token, tokens) of the positions from `begin` to `end`."""
    found = []
    at = 0
    for stream, tokens in chain:
        first, last = max(begin, at), min(end, at + tokens)
        if first < last:
            found.append((stream, first - at, last - first))
        at += tokens
    return found
