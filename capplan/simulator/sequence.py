"""A request inside the engine."""

from __future__ import annotations

from collections.abc import Sequence as Items
from operator import attrgetter

from capplan.simulator.blocks import Block
from capplan.simulator.requests import Request, RequestRecord

NO_STEP = -1
new_record = tuple.__new__
by_admission = attrgetter("admission")  # the order of the running list


class Sequence:
    """Where one request stands.

    A request whose prompt is computed is a decode. Nothing of a decode is touched from step to
    step: before the pass of step s it has computed `s + offset` tokens, it opens a block in the
    steps with `s % block_size == phase`, and its last token is sampled by step `last_step`.
    """

    # Slots, and no defaults on the class: both make attributes much faster.
    __slots__ = (
        "admission",  # order in the running list
        "arrival_s",
        "asked",  # output tokens
        "blocks",  # the first blocks of its table: those that have a name
        "computed",  # while in the prompt; `target` is what is known and to be computed
        "decode_since",
        "end",  # output tokens it will get
        "finish_s",
        "finished",
        "first_hit",  # tokens found cached at the first admission, and at later ones
        "first_scheduled_s",
        "first_token_s",
        "index",  # number of arrival
        "keys",
        "landing",  # the last token is sampled, not taken in
        "last_step",
        "later_hits",
        "num_preemptions",
        "offset",
        "outputs",  # output tokens when this life began
        "phase",
        "priority",
        "prompt",
        "request",
        "starved_at",
        "stops",  # a stop token is not announced: one more decode is on its way when it shows
        "target",
    )
    blocks: list[Block]

    def __init__(self, request: Request, index: int, max_model_len: int) -> None:
        # By place: fields by name cost more, and this is done for every request.
        _, self.arrival_s, prompt, asked, limit, self.priority, _, _, _ = request
        room = max_model_len - prompt
        self.request = request
        self.index = index
        self.prompt = self.target = prompt
        self.asked = asked
        self.end = asked if asked < room else room
        self.stops = limit is not None and min(limit, room) > self.end
        self.outputs = self.computed = self.admission = self.offset = 0
        self.num_preemptions = self.first_hit = 0
        self.phase = self.last_step = self.starved_at = self.decode_since = NO_STEP
        self.landing = self.finished = False
        self.first_scheduled_s = self.first_token_s = self.finish_s = -1.0
        self.keys: Items[int] = ()
        self.later_hits: tuple[int, ...] = ()

    @property
    def hits(self) -> tuple[int, ...]:
        """Tokens found cached, by admission."""
        return () if self.first_scheduled_s < 0 else (self.first_hit, *self.later_hits)

    def outputs_before(self, step: int) -> int:
        """Output tokens that it has before step `step`."""
        if self.last_step == NO_STEP:
            return self.outputs
        return min(self.end, self.end - (self.last_step - step + 1))

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


def steps_with_blocks(opening: Items[int], steps: int, step: int, decodes: int, free: int) -> int:
    """How many of the next `steps`, from `step` on, find the blocks that decodes open in them.

    `opening` counts the decodes by phase.
    """
    size = len(opening)
    cycles = free // decodes  # of `size` steps each, in which every decode opens one
    done = min(steps, cycles * size)
    free -= cycles * decodes
    while done < steps and opening[(step + done) % size] <= free:
        free -= opening[(step + done) % size]
        done += 1
    return done
