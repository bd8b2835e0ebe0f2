"""Open traffic and patient clients: nothing that happens later depends on an answer.

Where the router looks at nothing, the replicas never meet, and each has its whole life at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Items
from itertools import chain
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
from capplan.simulator.requests import Outcome, Request, RequestRecord


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
    return PatientFleet(make, settings).run(source)


class PatientFleet:
    """Replicas and what they were sent: in pieces, or all at once."""

    def __init__(self, make: MakeReplica, settings: FleetSettings) -> None:
        number, routing = settings.num_replicas, settings.routing
        lags = not routing.looks_inside
        self.servers = [Server(index, make, lags=lags) for index in range(number)]
        self.sent: list[list[Request]] = [[] for _ in self.servers]
        self.refused: list[str] = []  # of those that were sent in pieces
        self._lives: list[Outcome] = []
        self._choose = make_router(routing, settings.seed) if number > 1 else the_first
        self._by_load = number > 1 and routing.looks_at_load
        self._num_sent = 0

    def run(self, source: Iterable[Request]) -> FleetOutcome:
        """All at once, until everybody has ended; until now where that is interrupted."""
        interrupted = False
        try:
            if self._by_load:
                self.send(source)
                self.finish()
            elif len(self.servers) == 1:
                self._lives.append(whole_life(self.servers[0].loop, noting(source, self.sent[0])))
            else:
                for request in source:
                    self.sent[self._choose(self.servers, request).index].append(request)
                for server in self.servers:
                    self._lives.append(whole_life(server.loop, self.sent[server.index]))
        except KeyboardInterrupt:
            interrupted = True
        return self._outcome(interrupted)

    def send(self, requests: Iterable[Request]) -> None:
        """Hand out these after those before, each at its time, as far as the passes go by then."""
        if self._by_load:
            for request in requests:
                self._send(request)
            return
        until_s = 0.0
        for request in requests:
            self._submit(self._choose(self.servers, request), request)
            until_s = request.arrival_s
        for server in self.servers:
            server.advance(until_s)

    def _send(self, request: Request) -> None:
        """By load, when all that was finished by its time is known."""
        now, servers = request.arrival_s, self.servers
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
        server = self._choose(servers, request)
        self._num_sent += 1
        server.last_sent = self._num_sent
        self._submit(server, request)

    def _submit(self, server: Server, request: Request) -> None:
        self.sent[server.index].append(request)
        if server.submit(request) is None:
            server.num_pending += 1
        else:
            self.refused.append(request.id)

    def records(self) -> Iterator[RequestRecord]:
        """Of everybody who has finished so far."""
        return chain.from_iterable(server.records for server in self.servers)

    def finish(self) -> None:
        """When no more will be sent: until everybody has ended."""
        self._lives += [rest_of_life(server.loop) for server in self.servers]

    def _outcome(self, interrupted: bool) -> FleetOutcome:
        sent, lives = self.sent, self._lives
        lasts = [requests[-1].arrival_s for requests in sent if requests]
        now = max([0.0, *lasts, *(life.end_s for life in lives)])
        clients: list[ClientRecord] = []
        replicas = []
        for index, server in enumerate(self.servers):
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


def the_first(servers: Items[Server], request: Request) -> Server:  # noqa: ARG001
    return servers[0]


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
