"""A client's request over all of its attempts."""

from __future__ import annotations

import random

from capplan.simulator.fleet.server import Server
from capplan.simulator.fleet.settings import Clients
from capplan.simulator.requests import Request


class Call:
    """What a client has asked for, and the attempt that is under way."""

    __slots__ = ("attempt_id", "attempt_s", "num_attempts", "request", "sent_s", "server")

    def __init__(self, request: Request, sent_s: float) -> None:
        self.request = request
        self.sent_s = sent_s  # the first attempt
        self.num_attempts = 0
        self.attempt_s = sent_s
        self.attempt_id = ""  # as the engine knows it; empty while nobody works on it
        self.server: Server | None = None

    def waits_for(self, number: int) -> bool:
        """Is this attempt still without an end?"""
        return self.num_attempts == number and self.attempt_id != ""

    def attempt(self, now: float, *, named: bool) -> Request:
        """What is sent: the request itself, later copies of it.

        `named`: a copy asks for the same prompt, so that it finds in the prefix cache what an
        earlier attempt has computed.
        """
        request, number = self.request, self.num_attempts
        if number == 1 and not named:
            return request
        prefix = request.prefix
        if named and (number > 1 or not request.reused):
            shared = min(sum(tokens for _, tokens in prefix), request.prompt_tokens)
            own = request.prompt_tokens - shared
            if own:
                prefix = (*prefix, (request.own_segment[0], own))
        name = request.id if number == 1 else f"{request.id}#{number}"
        return request._replace(id=name, arrival_s=now, prefix=prefix)


class Backoff:
    """The pause before the next attempt."""

    def __init__(self, clients: Clients, seed: int) -> None:
        self._clients = clients
        self._rng = random.Random(f"{seed} backoff")

    def wait_s(self, num_attempts: int) -> float:
        """After so many attempts, the last of them in vain."""
        clients = self._clients
        if clients.backoff == "none":
            return 0.0
        if clients.backoff == "fixed":
            return clients.backoff_s
        most = min(clients.backoff_max_s, clients.backoff_s * 2.0 ** (num_attempts - 1))
        return self._rng.uniform(0.0, most) if clients.jitter else most
