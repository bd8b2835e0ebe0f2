"""One GPU's memory, item by item, each with the range that logs show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemoryTerm:
    """What one item takes: least, usual and most; equal where it is computed, not estimated.

    ``rows`` counts the logged figures behind an estimate, 0 behind a computed item.
    """

    name: str
    low_bytes: float
    likely_bytes: float
    high_bytes: float
    rows: int
    source: str

    @property
    def is_estimate(self) -> bool:
        return self.low_bytes < self.high_bytes


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Visible memory = the terms + the pool, at their usual values.

    The pool's range takes the terms as independent: their deviations add in squares. A negative
    pool is an engine that does not start.
    """

    engine: str
    memory_share: float
    memory_share_option: str
    visible_bytes: float
    max_num_seqs: int
    max_num_batched_tokens: int
    block_size: int
    stage: int  # the pipeline stage that has least room
    terms: tuple[MemoryTerm, ...]
    pool_low_bytes: float
    pool_bytes: float
    pool_high_bytes: float

    def term(self, name: str) -> MemoryTerm | None:
        return next((term for term in self.terms if term.name == name), None)

    def size(self, name: str) -> float:
        """The usual size of a term; 0 where the engine's rule does not know it."""
        term = self.term(name)
        return term.likely_bytes if term else 0.0

    @property
    def overhead_bytes(self) -> float:
        """All that is neither weights, nor left free, nor pool."""
        return sum(t.likely_bytes for t in self.terms if t.name not in ("weights", "left free"))
