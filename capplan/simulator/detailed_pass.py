"""A request of the request-by-request path, and what a pass gives to it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from capplan.simulator.content import KeyBook
from capplan.simulator.groups import GroupManager, GroupTables
from capplan.simulator.requests import Request
from capplan.simulator.sequence import Sequence


class DetailedSequence(Sequence):
    """A request with its block tables, and with what is under way for it."""

    placeholders = 0  # tokens that steps in flight sample for it
    inflight = 0  # tokens of it in steps in flight
    drafts = 0  # held for its next pass
    verifications = 0
    in_prompt = False

    def __init__(
        self,
        request: Request,
        index: int,
        max_model_len: int,
        manager: GroupManager,
        books: list[KeyBook],
    ) -> None:
        super().__init__(request, index, max_model_len)
        room = max_model_len - self.prompt
        self.limit = min(request.max_tokens or request.output_tokens, room)
        self.own = GroupTables(len(manager.groups))
        self.block_keys: list[list[Hashable]] = []
        if manager.config.enable_prefix_caching:
            lookahead = manager.config.num_hash_lookahead_tokens
            self.block_keys = [book.own_keys(request, lookahead) for book in books]

    @property
    def known(self) -> int:
        return self.prompt + self.outputs


@dataclass(slots=True)
class Scheduled:
    """What one request got in one step."""

    seq: DetailedSequence
    tokens: int
    drafts: int = 0
    dummies: bool = False  # drafts that are always rejected
    samples: bool = False
    life: int = 0  # preemptions before: a later one makes the result stale
    context: int = 0  # at the end of the step
    decode: bool = False  # one token after its prompt


@dataclass(slots=True)
class Pass:
    """One scheduling pass."""

    items: dict[DetailedSequence, Scheduled] = field(default_factory=dict)
    admitted: dict[str, int] = field(default_factory=dict)
    preempted: list[DetailedSequence] = field(default_factory=list)
    carried_prefill: bool = False
