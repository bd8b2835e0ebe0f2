"""A request inside the engine."""

from __future__ import annotations

from collections.abc import Sequence as Items

from capplan.simulator.blocks import Block
from capplan.simulator.requests import Request, RequestRecord

NO_STEP = -1


class Sequence:
    """Where one request stands.

    A request whose prompt is computed is a decode. Nothing of a decode is touched from step to
    step: before the pass of step s it has computed `s + offset` tokens, it opens a block in the
    steps with `s % block_size == phase`, and its last token is sampled by step `last_step`.
    """

    __slots__ = (
        "admission",
        "arrival_s",
        "blocks",
        "computed",
        "decode_since",
        "end",
        "finish_s",
        "finished",
        "first_scheduled_s",
        "first_token_s",
        "hits",
        "index",
        "keys",
        "landing",
        "last_step",
        "num_preemptions",
        "offset",
        "outputs",
        "phase",
        "priority",
        "prompt",
        "request",
        "starved_at",
        "stops",
        "target",
    )

    def __init__(self, request: Request, index: int, max_model_len: int) -> None:
        self.request = request
        self.index = index  # number of arrival
        self.arrival_s = request.arrival_s
        self.priority = request.priority
        self.prompt = self.target = request.prompt_tokens
        room = max_model_len - self.prompt
        self.end = min(request.output_tokens, room)  # output tokens it will get
        # A stop token is not announced: one more decode is on its way when it shows.
        limit = request.max_tokens
        self.stops = limit is not None and min(limit, room) > self.end
        self.outputs = 0  # output tokens when this life began
        self.computed = 0  # while in the prompt; `target` is what is known and to be computed
        self.admission = 0  # order in the running list
        self.phase = self.last_step = self.starved_at = self.decode_since = NO_STEP
        self.offset = 0
        self.landing = self.finished = False  # landing: the last token is sampled, not taken in
        self.num_preemptions = 0
        self.first_scheduled_s = self.first_token_s = self.finish_s = -1.0
        self.hits: tuple[int, ...] = ()
        self.blocks: list[Block] = []  # the first blocks of its table: those that have a name
        self.keys: Items[int] = ()

    def record(self) -> RequestRecord:
        hits = self.hits
        return RequestRecord(
            self.request.id,
            self.arrival_s,
            self.first_scheduled_s,
            self.first_token_s,
            self.finish_s,
            self.prompt,
            self.end,
            self.num_preemptions,
            hits[0] if hits else 0,
            hits[1:],
        )
