"""Open traffic, patient clients and a router that looks at nothing: replicas that never meet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
from capplan.simulator.fleet.router import make_router
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
    """Is what happens at one replica of no interest to anybody else?"""
    alone = settings.num_replicas == 1 or not settings.routing.looks_at_load
    calm = settings.clients.timeout_s == inf and settings.admission.is_open
    return isinstance(source, OpenTraffic) and alone and calm and not settings.failures


def run(source: OpenTraffic, make: MakeReplica, settings: FleetSettings) -> FleetOutcome:
    """The same outcome as the driver's, each replica for itself."""
    servers = [Server(index, make) for index in range(settings.num_replicas)]
    sent: list[list[Request]] = [[] for _ in servers]
    lives: list[Outcome] = []
    interrupted = False
    try:
        if len(servers) == 1:
            lives.append(whole_life(servers[0].loop, noting(source, sent[0])))
        else:
            choose = make_router(settings.routing, settings.seed)
            for request in source:
                sent[choose(servers, request).index].append(request)
            for server in servers:
                lives.append(whole_life(server.loop, sent[server.index]))
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


def whole_life(loop: ReplicaLoop, requests: Iterable[Request]) -> Outcome:
    if isinstance(loop, ClosedForm):
        return loop.run(requests)
    for request in requests:
        while loop.next_s < request.arrival_s:
            loop.advance(request.arrival_s)
        loop.submit(request)
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
