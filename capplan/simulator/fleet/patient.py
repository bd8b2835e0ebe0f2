"""Open traffic, patient clients and a router that looks at nothing: replicas that never meet."""

from __future__ import annotations

from math import inf

from capplan.simulator.fleet.records import ClientRecord, End, FleetOutcome, in_order
from capplan.simulator.fleet.router import make_router
from capplan.simulator.fleet.sampling import Sampler
from capplan.simulator.fleet.server import MakeReplica, Server, advance
from capplan.simulator.fleet.settings import FleetSettings
from capplan.simulator.fleet.sources import OpenTraffic
from capplan.simulator.requests import Request

MOST_AHEAD = 256  # requests handed out before the replicas go on


def can_run(source: object, settings: FleetSettings) -> bool:
    """Is what happens at one replica of no interest to anybody else?"""
    alone = settings.num_replicas == 1 or not settings.routing.looks_at_load
    calm = settings.clients.timeout_s == inf and settings.admission.is_open
    return isinstance(source, OpenTraffic) and alone and calm and not settings.failures


def run(source: OpenTraffic, make: MakeReplica, settings: FleetSettings) -> FleetOutcome:
    """The same outcome as the driver's, with far fewer turns."""
    servers = [Server(index, make) for index in range(settings.num_replicas)]
    choose = make_router(settings.routing, settings.seed)
    alone = servers[0] if len(servers) == 1 else None
    sampler, ahead, now = Sampler(), 0, 0.0
    sent: list[Request] = []
    refused: list[ClientRecord] = []
    for request in source:
        if request.arrival_s > sampler.next_s or ahead == MOST_AHEAD:
            while sampler.next_s < request.arrival_s:
                sampler.sample(servers)
            advance(servers, request.arrival_s)
            ahead = 0
        ahead += 1
        sent.append(request)
        server = alone or choose(servers, request)
        server.num_sent += 1
        if server.loop.submit(request) is not None:
            now = request.arrival_s
            refused.append(unanswered(request, now, "refused", server.index))
    while any(server.loop.next_s < inf for server in servers):
        sampler.sample(servers)
    replicas = tuple(server.outcome() for server in servers)
    end_s = max([now, *(life.end_s for r in replicas for life in r.lives)])
    clients = refused + [
        ClientRecord(
            r.id, r.arrival_s, r.first_token_s, r.finish_s, "ok", 1,
            r.prompt_tokens, r.output_tokens, index,
        )
        for index, replica in enumerate(replicas)
        for r in replica.records
    ]  # fmt: skip
    stuck = {id for replica in replicas for life in replica.lives for id in life.unfinished}
    if stuck:
        clients += [unanswered(r, end_s, "unfinished", None) for r in sent if r.id in stuck]
    clients.sort(key=in_order)
    samples = tuple(sampler.samples)
    return FleetOutcome(end_s, 0.0, replicas, tuple(clients), (), samples, frozenset())


def unanswered(request: Request, end_s: float, end: End, replica: int | None) -> ClientRecord:
    sent_s, prompt = request.arrival_s, request.prompt_tokens
    return ClientRecord(request.id, sent_s, None, end_s, end, 1, prompt, 0, replica)
