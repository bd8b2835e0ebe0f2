"""A request inside the engine."""

from __future__ import annotations

from collections.abc import Sequence as Items

from capplan.simulator.blocks import Block
from capplan.simulator.requests import Request, RequestRecord

NO_STEP = -1
new_record = tuple.__new__


class Sequence:
    """Where one request stands.

    A request whose prompt is computed is a decode. Nothing of a decode is touched from step to
    step: before the pass of step s it has computed `s + offset` tokens, it opens a block in the
    steps with `s % block_size == phase`, and its last token is sampled by step `last_step`.
    """

    # Defaults on the class: most of them are overwritten once or never.
    outputs = 0  # output tokens when this life began
    computed = 0  # while in the prompt; `target` is what is known and to be computed
    admission = 0  # order in the running list
    offset = 0
    phase = last_step = starved_at = decode_since = NO_STEP
    landing = False  # the last token is sampled, not taken in
    finished = False
    stops = False  # a stop token is not announced: one more decode is on its way when it shows
    num_preemptions = 0
    first_scheduled_s = first_token_s = finish_s = -1.0
    first_hit = 0  # tokens found cached at the first admission, and at later ones
    later_hits: tuple[int, ...] = ()
    keys: Items[int] = ()
    blocks: list[Block]  # the first blocks of its table: those that have a name

    def __init__(self, request: Request, index: int, max_model_len: int) -> None:
        self.request = request
        self.index = index  # number of arrival
        # By place: fields by name cost more, and this is done for every request.
        _, self.arrival_s, prompt, asked, limit, self.priority, _, _, _ = request
        self.prompt = self.target = prompt
        self.asked = asked
        room = max_model_len - prompt
        self.end = asked if asked < room else room  # output tokens it will get
        if limit is not None:
            self.stops = min(limit, room) > self.end

    @property
    def hits(self) -> tuple[int, ...]:
        """Tokens found cached, by admission."""
        return () if self.first_scheduled_s < 0 else (self.first_hit, *self.later_hits)

    def record(self) -> RequestRecord:
        # Not by the class's own __new__: this is called for every request.
        return new_record(
            RequestRecord,
            (
                self.request[0],
                self.arrival_s,
                self.first_scheduled_s,
                self.first_token_s,
                self.finish_s,
                self.prompt,
                self.end,
                self.num_preemptions,
                self.first_hit,
                self.later_hits,
            ),
        )
