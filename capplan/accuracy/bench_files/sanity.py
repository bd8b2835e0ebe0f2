"""Is a result what it says it is? Units, failures, queues that say nothing of the server."""

from __future__ import annotations

from capplan.accuracy.bench_files.row import Draft

_TTFT = ("ttft_mean_ms", "ttft_p50_ms", "ttft_p99_ms")
_TPOT = ("tpot_mean_ms", "tpot_p50_ms", "tpot_p99_ms", "itl_mean_ms")
_RATES = ("output_tok_s", "total_tok_s", "req_s")
# Of the run's length: a mean wait above it is a queue that grew while the run went on.
OVERLOAD_FRACTION = 0.1
# Two figures of one run agree within this; a wrong unit is off by a thousand.
UNIT_FACTOR = 20.0
# A mean of requests' TPOT against the TPOT of means, over lengths that vary.
MEAN_FACTOR = 1.3
CLIENT_CONNECTIONS = 100  # a default of HTTP clients: nobody asks for it, many get it


def reason_to_skip(draft: Draft) -> str | None:
    """Why a result cannot be used at all, or None."""
    if draft.refusal:
        return draft.refusal
    if draft.completed is None and draft.num_failed:
        return f"all {draft.num_failed:,} requests failed"
    total = (draft.completed or 0) + draft.num_failed
    if draft.num_failed and draft.num_failed > 0.05 * total:
        return f"{draft.num_failed:,} of {total:,} requests failed"
    metrics = (*_TTFT, *_TPOT, *_RATES, "e2e_mean_ms")
    if not any(name in draft.cells for name in metrics):
        return "no latency and no throughput in it"
    return None


def look_over(draft: Draft) -> None:
    """Set aside what cannot be compared with a prediction, and note what is odd."""
    _units(draft)
    _queue(draft)
    _in_flight(draft)
    osl = draft.number("osl")
    if osl is not None and osl < 2:
        draft.drop(_TPOT, "outputs of one token have no time per output token")


def _units(draft: Draft) -> None:
    """TTFT + TPOT x (tokens - 1) is the end-to-end time; and nothing outlasts the run."""
    ttft, tpot = draft.number("ttft_mean_ms"), draft.number("tpot_mean_ms")
    e2e, osl = draft.number("e2e_mean_ms"), draft.number("osl")
    if ttft and tpot and e2e and osl and osl >= 2:
        ratio = (ttft + tpot * (osl - 1)) / e2e
        if not 1 / UNIT_FACTOR < ratio < UNIT_FACTOR:
            draft.drop((*_TTFT, *_TPOT, "e2e_mean_ms"), "TTFT + TPOT x tokens is not E2E: units?")
        elif not 1 / MEAN_FACTOR < ratio < MEAN_FACTOR:
            # Some clients count chunks of the stream, of which a token may make two.
            why = f"TTFT + TPOT x tokens is {ratio:.2f} of E2E: chunks counted, not tokens?"
            draft.drop(_TPOT, why)
            if e2e > ttft:
                draft.put("tpot_mean_ms", (e2e - ttft) / (osl - 1))
                draft.notes.append("tpot_mean_ms taken from E2E and TTFT")
    if draft.duration_s and ttft and ttft > 1e3 * draft.duration_s * UNIT_FACTOR:
        draft.drop((*_TTFT, *_TPOT, "e2e_mean_ms"), "TTFT is longer than the run: units?")


def _queue(draft: Draft) -> None:
    ttft = draft.number("ttft_mean_ms") or draft.number("ttft_p50_ms")
    if draft.cells.get("workload") == "burst":
        draft.drop((*_TTFT, "e2e_mean_ms"), "all requests at once: it measures the client's queue")
        return
    is_open = draft.cells.get("workload") in ("poisson", "constant-rate")
    if not (is_open and ttft and draft.duration_s):
        return
    if ttft > OVERLOAD_FRACTION * draft.duration_s * 1e3:
        draft.drop((*_TTFT, "e2e_mean_ms"), "overloaded: it grows with the length of the run")


def _in_flight(draft: Draft) -> None:
    """Little's law: requests in flight = rate x time in the system."""
    rate, e2e = draft.number("req_s"), draft.number("e2e_mean_ms")
    if not (rate and e2e):
        return
    in_flight = rate * e2e / 1e3
    limit = draft.number("concurrency")
    if limit and in_flight > 1.35 * limit:
        draft.drop(
            _RATES, f"{in_flight:.0f} in flight by Little's law, at most {limit:.0f} allowed"
        )
    elif limit is None and abs(in_flight - CLIENT_CONNECTIONS) < 1:
        draft.notes.append("100 in flight: the client's connections may be the limit")
