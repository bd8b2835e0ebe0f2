"""What a fleet needs of one replica, whatever its scheduler: the open form of a simulation."""

from __future__ import annotations

from typing import Protocol

from capplan.simulator.requests import Outcome, Request


class ReplicaLoop(Protocol):
    """One replica that others drive: requests go in as time goes on, records come out.

    Finished requests are handed to the `on_finish` that the replica was made with. Time never
    runs backwards: a request submitted or aborted acts on the first pass that is not yet made.
    """

    @property
    def next_s(self) -> float:
        """When the replica would do something next; infinite while it has nothing to do."""
        ...

    @property
    def num_running(self) -> int: ...

    @property
    def num_waiting(self) -> int: ...

    @property
    def num_used_blocks(self) -> int:
        """KV blocks that somebody holds."""
        ...

    def submit(self, request: Request) -> str | None:
        """Take in a request at its `arrival_s`; the reason where it can never be served."""
        ...

    def abort(self, request_id: str) -> bool:
        """Drop a request whose client has gone; False where it is not here any more."""
        ...

    def abort_all(self) -> tuple[Request, ...]:
        """The replica fails: what is in it is lost and given back, cached blocks are gone.

        It may be used on, as one that starts anew at the time reached.
        """
        ...

    def first_token_s(self, request_id: str) -> float | None:
        """When a request in the engine gets its first token, once its step has begun; else None.

        It may lie after the time reached, by the step under way.
        """
        ...

    def advance(self, until_s: float) -> float:
        """Make every pass before `until_s`, but stop after one in which a request finished.

        Returns the time reached, at most `until_s`: what happens before it is known, so that a
        client's answer to a finished request can be submitted. A finish that was told may lie
        after it, by the step under way at `until_s`.
        """
        ...

    def close(self) -> Outcome:
        """The sums of the whole run."""
        ...
