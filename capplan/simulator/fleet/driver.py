"""Clients, router and replicas on one clock.

What comes from outside (requests, time-outs, retries, failures) is a heap of events. Before an
event at time t acts, every replica has made its passes before t and none at or after it, and what
finished up to t is known. A step that runs at t has been decided before t: its finishes are told
early, and wait for their time. Equal times: finishes first, new requests last, events between in
the order in which they were made.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace
from math import ceil, inf, nextafter

from capplan.simulator.fleet.calls import Backoff, Call
from capplan.simulator.fleet.records import (
    IN_ORDER,
    ClientRecord,
    End,
    FleetOutcome,
    LostAttempt,
    new_record,
)
from capplan.simulator.fleet.router import PrefixAware, make_router
from capplan.simulator.fleet.server import MakeReplica, Server
from capplan.simulator.fleet.settings import Failure, FleetSettings
from capplan.simulator.fleet.sources import Source
from capplan.simulator.requests import RequestRecord

# (time, rank among equal times, number, what happens, to whom)
Event = tuple[float, int, int, Callable[..., None], tuple[object, ...]]


class Driver:
    """One simulation; `run` may be called once."""

    def __init__(self, source: Source, make: MakeReplica, settings: FleetSettings) -> None:
        self.source, self.settings = source, settings
        self.clients, self.admission = settings.clients, settings.admission
        keeps_pace = settings.admission.max_queue_wait_s < inf
        self.guarded = not settings.admission.is_open
        # Is there nobody who looks at more of a replica than at its finishes?
        patient = self.clients.timeout_s == source.lookahead_s == inf
        lags = patient and not (self.guarded or settings.routing.looks_inside)
        self.servers = [
            Server(index, make, keeps_pace=keeps_pace, lags=lags)
            for index in range(settings.num_replicas)
        ]
        self.listed = list(self.servers)  # those that the router takes to be up
        self.choose = make_router(settings.routing, settings.seed)
        self.backoff = Backoff(settings.clients, settings.seed)
        # Only after a time-out is there something in a cache that the next attempt may find.
        self.names_prompts = self.clients.retries > 0 and self.clients.timeout_s < inf
        self.now = 0.0
        self.records: list[ClientRecord] = []
        self.lost: list[LostAttempt] = []
        self.unwanted: set[str] = set()
        self._events: list[Event] = []
        self._num_events = 0
        self._pending: dict[str, Call] = {}  # by the id of the attempt
        self._num_sent = 0
        self._reached_s = -inf  # all passes before it are made
        self._on_time_out = self._time_out  # one object, to be recognised
        for failure in settings.failures:
            self._at(failure.at_s, self._fail, failure)

    def run(self) -> FleetOutcome:
        events, source, interrupted = self._events, self.source, False
        try:
            while True:
                while events and events[0][3] is self._on_time_out and not self._is_due(events[0]):
                    heappop(events)
                event_s, request_s = events[0][0] if events else inf, source.next_s
                until = event_s if event_s <= request_s else request_s
                if until > self._reached_s:
                    if self._advance(until, exactly=event_s <= request_s):
                        continue  # a finish that may set off something earlier
                    self._reached_s = until
                if until == inf:
                    break
                self.now = until
                if event_s <= request_s:
                    _, _, _, act, arguments = heappop(events)
                    act(*arguments)
                else:
                    self._send(Call(source.take(), request_s))
        except KeyboardInterrupt:
            interrupted = True
        return self._outcome(interrupted)

    # Time.

    def _at(self, time_s: float, act: Callable[..., None], *arguments: object) -> None:
        self._num_events += 1
        heappush(self._events, (time_s, 1, self._num_events, act, arguments))

    def _advance(self, until: float, *, exactly: bool) -> bool:
        """Let the replicas make their passes before `until`; True where that led to new events.

        But for `exactly`, those in which nobody will have finished may stay behind.
        """
        if self.source.lookahead_s < inf:
            return self._advance_in_step(until)
        for server in self.servers:
            if server.up and (exactly or server.quiet_s <= until):
                server.advance(until)
                records = server.records
                while len(records) > server.taken_in:
                    if records[server.taken_in].finish_s > until:
                        break
                    self._finish(server)
                server.look_ahead()
        return False

    def _advance_in_step(self, until: float) -> bool:
        """The one that is furthest back first, and no further than the others allow.

        A pass of another replica at t ends after t, so that nothing which its finishes set off
        comes before `lookahead_s` after t.
        """
        coming = [
            (server.loop.next_s, server.index)
            for server in self.servers
            if server.up and server.loop.next_s < until
        ]
        heapify(coming)
        while coming:
            server = self.servers[coming[0][1]]
            limit = until
            if len(coming) > 1:
                other_s = min(coming[1:3])[0]
                limit = min(until, nextafter(other_s + self.source.lookahead_s, inf))
            told = len(server.records)
            server.loop.advance(limit)
            if len(server.records) > told:
                for record in server.records[told:]:
                    self._num_events += 1
                    what = (self._finish_of, (server, record))
                    heappush(self._events, (record.finish_s, 0, self._num_events, *what))
                return True
            next_s = server.loop.next_s
            if next_s < until:
                heapreplace(coming, (next_s, server.index))
            else:
                heappop(coming)
        return False

    def _finish_of(self, server: Server, record: RequestRecord) -> None:
        """A finish that was told early has its time, unless the replica died before."""
        if server.taken_in < len(server.records) and server.records[server.taken_in] is record:
            self._finish(server)

    def _finish(self, server: Server) -> None:
        """The oldest finish of a replica that nobody has looked at."""
        record = server.take_in()
        call = self._pending.pop(record.id, None)
        if call is None:
            self.unwanted.add(record.id)
        else:
            server.num_pending -= 1
            self._end(call, "ok", record.finish_s, server.index, record)

    # What clients do.

    def _send(self, call: Call) -> None:
        """The next attempt of a call, now."""
        call.num_attempts += 1
        call.attempt_s = self.now
        call.server = None
        if not self.listed:
            return self._lose(call, "failed")
        request = call.attempt(self.now, named=self.names_prompts)
        server = self.choose(self.listed, request)
        call.server = server
        self._num_sent += 1
        server.num_sent += 1
        server.last_sent = self._num_sent
        if not server.up:  # and the router does not know yet: connection refused
            return self._lose(call, "failed")
        if self.guarded and not server.admits(self.admission):
            return self._lose(call, "rejected")
        if server.submit(request) is not None:
            return self._end(call, "refused", self.now, server.index)
        self._pending[request.id] = call
        call.attempt_id = request.id
        server.num_pending += 1
        if self.clients.timeout_s < inf:
            due_s = self.now + self.clients.timeout_s
            self._at(due_s, self._on_time_out, call, call.num_attempts)
        return None

    def _is_due(self, event: Event) -> bool:
        """Does anybody still wait for what this time-out is about, as far as is known?"""
        call, number = event[4]
        assert isinstance(call, Call)
        assert isinstance(number, int)
        return call.waits_for(number) and not self._has_begun(call, event[0])

    def _has_begun(self, call: Call, by_s: float) -> bool:
        """Is the answer under way, where that is what the client wants?"""
        if self.clients.timeout_on != "ttft" or call.server is None:
            return False
        first_s = call.server.first_token_s(call.attempt_id)
        return first_s is not None and first_s <= by_s

    def _time_out(self, call: Call, number: int) -> None:
        if not call.waits_for(number) or self._has_begun(call, self.now):
            return
        server = call.server
        assert server is not None
        del self._pending[call.attempt_id]
        server.num_pending -= 1
        if self.clients.cancels:
            server.loop.abort(call.attempt_id)
        self._lose(call, "timed out")

    def _lose(self, call: Call, end: End) -> None:
        """An attempt without an answer: send again, or give up."""
        index = call.server.index if call.server else None
        call.attempt_id = ""
        self.lost.append(
            LostAttempt(call.request.id, call.num_attempts, index, call.attempt_s, self.now, end)
        )
        clients = self.clients
        if call.num_attempts > clients.retries or end not in clients.retry_on:
            self._end(call, end, self.now, None)
            return
        wait_s = self.backoff.wait_s(call.num_attempts)
        if end == "rejected":
            wait_s = max(wait_s, self.admission.retry_after_s)
        self._at(self.now + wait_s, self._send, call)

    def _end(
        self,
        call: Call,
        end: End,
        end_s: float,
        index: int | None,
        answer: RequestRecord | None = None,
    ) -> None:
        call.attempt_id = ""
        request = call.request
        first_s, got = (answer.first_token_s, answer.output_tokens) if answer else (None, 0)
        self.records.append(
            new_record(
                ClientRecord,
                (
                    request.id, call.sent_s, first_s, end_s, end, call.num_attempts,
                    request.prompt_tokens, got, index,
                ),
            )
        )  # fmt: skip
        self.source.ended(request, end_s, answer is None)

    # Failures.

    def _fail(self, failure: Failure) -> None:
        server = self.servers[failure.replica]
        server.die()
        self._next_health_check(server)
        if failure.recovers_s < inf:
            self._at(failure.recovers_s, self._recover, server)
        for call in [call for call in self._pending.values() if call.server is server]:
            del self._pending[call.attempt_id]
            self._lose(call, "failed")
        server.num_pending = 0

    def _recover(self, server: Server) -> None:
        server.come_back()
        if isinstance(self.choose, PrefixAware):
            self.choose.forget(server)
        self._next_health_check(server)

    def _next_health_check(self, server: Server) -> None:
        interval_s = self.settings.routing.health_check_interval_s
        check_s = ceil(self.now / interval_s) * interval_s if interval_s else self.now
        self._at(max(check_s, self.now), self._check_health, server)

    def _check_health(self, server: Server) -> None:
        server.listed = server.up
        self.listed = [server for server in self.servers if server.listed]

    # Results.

    def _outcome(self, interrupted: bool) -> FleetOutcome:
        for call in self._pending.values():
            self._end(call, "unfinished", self.now, None)
        if not interrupted:
            self.now = max([self.now, *(server.close() for server in self.servers)])
        self.records.sort(key=IN_ORDER)
        return FleetOutcome(
            end_s=self.now,
            measured_from_s=self.source.measured_from_s,
            replicas=tuple(server.outcome() for server in self.servers),
            clients=tuple(self.records),
            lost=tuple(self.lost),
            unwanted=frozenset(self.unwanted),
            interrupted=interrupted,
        )
