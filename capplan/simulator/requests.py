"""What goes into a simulation and what comes out of it: requests and their records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# (stream, tokens): tokens 0.. of a named stream. Two requests share tokens where their chains of
# streams are equal from the start.
Segment = tuple[str, int]


class Request(NamedTuple):
    """One request as it arrives; a tuple, because millions of them are made.

    `prefix` says which tokens at the start of the prompt others may have too; the rest of the
    prompt and the output are its own. `reused` says that a later request continues from the own
    tokens as well (a conversation): it names them as the segment `own_segment`.
    """

    id: str
    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    max_tokens: int | None = None  # announced limit; a stop token ends the request earlier
    priority: int = 0  # lower is served first
    prefix: tuple[Segment, ...] = ()
    reused: bool = False
    accepted_drafts: tuple[int, ...] = ()  # speculation: accepted at the i-th verification

    @property
    def own_segment(self) -> Segment:
        """The own part of prompt and output, as a later request continues from it."""
        shared = min(sum(tokens for _, tokens in self.prefix), self.prompt_tokens)
        return f"of {self.id}", self.prompt_tokens + self.output_tokens - shared


class RequestRecord(NamedTuple):
    """A finished request. Times in seconds on the simulation's clock."""

    id: str
    arrival_s: float
    first_scheduled_s: float
    first_token_s: float
    finish_s: float
    prompt_tokens: int
    output_tokens: int
    num_preemptions: int
    cached_tokens: int  # prefix hit at the first admission
    resume_cached_tokens: tuple[int, ...]  # hits at the later ones

    @property
    def ttft_s(self) -> float:
        return self.first_token_s - self.arrival_s

    @property
    def e2e_s(self) -> float:
        return self.finish_s - self.arrival_s

    @property
    def tpot_s(self) -> float | None:
        """Undefined for a single token."""
        if self.output_tokens < 2:
            return None
        return (self.finish_s - self.first_token_s) / (self.output_tokens - 1)


@dataclass(frozen=True, slots=True)
class Rejection:
    """A request that the engine refuses, and why."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """A whole simulation. `end` says how it ended: every request finished, or why not."""

    end: str  # "finished" | "stalled" | "livelock" | "stopped" (closed before its end)
    end_s: float
    num_steps: int
    num_empty_passes: int
    scheduled_tokens: int
    num_preemptions: int
    max_running: int
    busy_s: float
    request_seconds: float  # area under the number of requests in the engine
    unfinished: tuple[str, ...]
    rejected: tuple[Rejection, ...]
    records: tuple[RequestRecord, ...]
