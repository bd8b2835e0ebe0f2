"""Which replica gets a request."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable
from collections.abc import Sequence as Items

from capplan.simulator.fleet.server import Server
from capplan.simulator.fleet.settings import Routing
from capplan.simulator.requests import Request

Choose = Callable[[Items[Server], Request], Server]


def load(server: Server) -> tuple[int, int]:
    """Requests that the router waits for; among equals, the longest not chosen (as nginx does)."""
    return server.num_pending, server.last_sent


def least_requests(servers: Items[Server], request: Request) -> Server:  # noqa: ARG001
    best = servers[0]
    fewest, longest_ago = best.num_pending, best.last_sent
    for server in servers:
        pending = server.num_pending
        if pending < fewest or (pending == fewest and server.last_sent < longest_ago):
            best, fewest, longest_ago = server, pending, server.last_sent
    return best


def least_kv(servers: Items[Server], request: Request) -> Server:  # noqa: ARG001
    """Fewest KV blocks held; among equals as `least_requests`."""
    return min(servers, key=lambda server: (server.loop.num_used_blocks, *load(server)))


class RoundRobin:
    def __init__(self) -> None:
        self._turn = -1

    def __call__(self, servers: Items[Server], request: Request) -> Server:  # noqa: ARG002
        later = [server for server in servers if server.index > self._turn]
        chosen = later[0] if later else servers[0]
        self._turn = chosen.index
        return chosen


class Random:
    """One at random, or the less loaded of two."""

    def __init__(self, seed: int, choices: int) -> None:
        self._rng = random.Random(f"{seed} router")
        self._choices = choices

    def __call__(self, servers: Items[Server], request: Request) -> Server:
        if self._choices >= len(servers):
            return least_requests(servers, request)
        if self._choices == 1:
            return servers[int(self._rng.random() * len(servers))]
        return min(self._rng.sample(servers, self._choices), key=load)


MOST_PREFIXES = 100_000  # remembered per replica; the longest not used is forgotten


class PrefixAware:
    """Sticky by the longest prefix sent before, with a guard on load; see `Routing`.

    What a replica was sent is remembered by chains of streams, as `Request.prefix` names them.
    """

    def __init__(self, routing: Routing) -> None:
        self._routing = routing
        # By server: chain of streams -> tokens sent of its last stream.
        self._sent: dict[int, OrderedDict[tuple[str, ...], int]] = {}

    def __call__(self, servers: Items[Server], request: Request) -> Server:
        rule = self._routing
        loads = [server.num_pending for server in servers]
        most, fewest = max(loads), min(loads)
        uneven = (
            most - fewest > rule.balance_abs_threshold
            and most > rule.balance_rel_threshold * fewest
        )
        chosen = least_requests(servers, request)
        if not uneven and request.prefix:
            matched, *_, best = max(
                (self._matched(server, request), -server.num_pending, -server.index, server)
                for server in servers
            )
            if matched > rule.cache_threshold * request.prompt_tokens:
                chosen = best
        self._remember(chosen, request)
        return chosen

    def forget(self, server: Server) -> None:
        """A replica that died comes back with an empty cache."""
        self._sent.pop(server.index, None)

    def _matched(self, server: Server, request: Request) -> int:
        """Prompt tokens that were sent to this server before."""
        sent = self._sent.get(server.index)
        if not sent:
            return 0
        matched = 0
        chain: tuple[str, ...] = ()
        for stream, tokens in request.prefix:
            chain = (*chain, stream)
            known = sent.get(chain, 0)
            matched += min(known, tokens)
            if known < tokens:
                break
        return min(matched, request.prompt_tokens)

    def _remember(self, server: Server, request: Request) -> None:
        segments = list(request.prefix)
        if request.reused:
            segments.append(request.own_segment)
        if not segments:
            return
        sent = self._sent.setdefault(server.index, OrderedDict())
        chain: tuple[str, ...] = ()
        for stream, tokens in segments:
            chain = (*chain, stream)
            sent[chain] = max(sent.pop(chain, 0), tokens)
        while len(sent) > MOST_PREFIXES:
            sent.popitem(last=False)


def make_router(routing: Routing, seed: int) -> Choose:
    if routing.policy == "round-robin":
        return RoundRobin()
    if routing.policy == "random":
        return Random(seed, 1)
    if routing.policy == "random-of-two":
        return Random(seed, 2)
    if routing.policy == "least-kv":
        return least_kv
    if routing.policy == "prefix-aware":
        return PrefixAware(routing)
    return least_requests
