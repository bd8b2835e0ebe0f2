"""Open traffic and patient clients: nothing that happens later depends on an answer.

Where the router looks at nothing, the replicas never meet, and each has its whole life at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Items
from math import inf
from typing import Protocol, runtime_checkable

from capplan.simulator.fleet.records import (
    IN_ORDER,
    ClientRecord,
    End,
    FleetOutcome,
    ReplicaOutcome,
    new_record,
)
from capplan.simulator.fleet.router import Choose, make_router
from capplan.simulator.fleet.server import MakeReplica, Server
from capplan.simulator.fleet.settings import FleetSettings
from capplan.simulator.fleet.sources import OpenTraffic
from capplan.simulator.loop import ReplicaLoop
from capplan.simulator.requests import Outcome, Request


@runtime_checkable
class ClosedForm(Protocol):
    """A replica that can be given all of its requests at once, which is quicker."""

    def run(self, requests: Iterable[Request]) -> Outcome: ...


def can_run(source: object, settings: FleetSettings) -> bool:
    """Does nobody wait, refuse or fail?"""
    calm = settings.clients.timeout_s == inf and settings.admission.is_open
    return isinstance(source, OpenTraffic) and calm and not settings.failures


def run(source: OpenTraffic, make: MakeReplica, settings: FleetSettings) -> FleetOutcome:
    """The same outcome as the driver's, in fewer turns."""
    lags = not settings.routing.looks_inside
    servers = [Server(index, make, lags=lags) for index in range(settings.num_replicas)]
    sent: list[list[Request]] = [[] for _ in servers]
    lives: list[Outcome] = []
    interrupted = False
    try:
        if len(servers) == 1:
            lives.append(whole_life(servers[0].loop, noting(source, sent[0])))
        else:
            choose = make_router(settings.routing, settings.seed)
            if settings.routing.looks_at_load:
                route_by_load(servers, source, choose, sent)
                lives += [rest_of_life(server.loop) for server in servers]
            else:
                for request in source:
                    sent[choose(servers, request).index].append(request)
                lives += [whole_life(server.loop, sent[server.index]) for server in servers]
    except KeyboardInterrupt:
        interrupted = True
    lasts = [requests[-1].arrival_s for requests in sent if requests]
    now = max([0.0, *lasts, *(life.end_s for life in lives)])
    clients: list[ClientRecord] = []
    replicas = []
    for index, server in enumerate(servers):
        life = tuple(lives[index : index + 1])
        replicas.append(ReplicaOutcome(life, tuple(server.records), len(sent[index])))
        clients += answered(server)
        if len(server.records) < len(sent[index]):
            clients += unanswered(server, sent[index], life, now)
    clients.sort(key=IN_ORDER)
    return FleetOutcome(
        end_s=now,
        measured_from_s=0.0,
        replicas=tuple(replicas),
        clients=tuple(clients),
        lost=(),
        unwanted=frozenset(),
        interrupted=interrupted,
    )


def noting(requests: Iterable[Request], sent: list[Request]) -> Iterator[Request]:
    for request in requests:
        sent.append(request)
        yield request


def route_by_load(
    servers: Items[Server], requests: Iterable[Request], choose: Choose, sent: Items[list[Request]]
) -> None:
    """Hand out every request at its time, when all that was finished by then is known."""
    for number, request in enumerate(requests, 1):
        now = request.arrival_s
        for server in servers:
            if server.quiet_s > now:
                continue
            server.advance(now)
            records, taken = server.records, server.taken_in
            while taken < len(records) and records[taken].finish_s <= now:
                taken += 1
            server.num_pending -= taken - server.taken_in
            server.taken_in = taken
            server.look_ahead()
        server = choose(servers, request)
        server.last_sent = number
        sent[server.index].append(request)
        if server.submit(request) is None:
            server.num_pending += 1


def whole_life(loop: ReplicaLoop, requests: Iterable[Request]) -> Outcome:
    if isinstance(loop, ClosedForm):
        return loop.run(requests)
    for request in requests:
        while loop.next_s < request.arrival_s:
            loop.advance(request.arrival_s)
        loop.submit(request)
    return rest_of_life(loop)


def rest_of_life(loop: ReplicaLoop) -> Outcome:
    """Until all is done."""
    while loop.next_s < inf:
        loop.advance(inf)
    return loop.close()


def answered(server: Server) -> list[ClientRecord]:
    index = server.index
    return [
        new_record(
            ClientRecord,
            (
                r.id, r.arrival_s, r.first_token_s, r.finish_s, "ok", 1, r.prompt_tokens,
                r.output_tokens, index,
            ),
        )
        for r in server.records
    ]  # fmt: skip


def unanswered(
    server: Server, sent: list[Request], lives: tuple[Outcome, ...], now: float
) -> Iterator[ClientRecord]:
    """What the engine refused, and what stayed in it."""
    refused = {rejection.id for life in lives for rejection in life.rejected}
    done = {record.id for record in server.records}
    for request in sent:
        id, sent_s, prompt = request.id, request.arrival_s, request.prompt_tokens
        end: End = "refused" if id in refused else "unfinished"
        if id in refused:
            yield ClientRecord(id, sent_s, None, sent_s, end, 1, prompt, 0, server.index)
        elif id not in done:
            yield ClientRecord(id, sent_s, None, now, end, 1, prompt, 0, None)
