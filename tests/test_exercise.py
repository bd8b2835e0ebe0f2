"""The classic exercise of continuous batching: the published figures, to the last digit."""

from __future__ import annotations

import pytest

from capplan.planner.exercise import exercise_requests, solve_exercise

# cap: tok/s, mean step in ms, TTFT P99 from admission in ms, as the exercise prints them
PUBLISHED = {
    8: (386.5, 20.4, 385),
    16: (661.5, 22.8, 782),
    32: (1034.7, 27.4, 1504),
    64: (1478.6, 36.5, 3063),
    128: (1943.6, 52.6, 5670),
    256: (1943.6, 52.6, 5670),
}
FROM_ARRIVAL = {8: 75_906, 16: 41_079, 128: 5670}


def test_the_published_table() -> None:
    rows = {row.max_num_seqs: row for row in solve_exercise().rows}
    found = {
        cap: (
            round(row.output_tokens_per_s, 1),
            round(1e3 * row.step_time_s, 1),
            round(1e3 * row.ttft_admission_p99_s),
        )
        for cap, row in rows.items()
    }
    assert found == PUBLISHED
    assert {cap: round(1e3 * rows[cap].ttft_arrival_p99_s) for cap in FROM_ARRIVAL} == FROM_ARRIVAL


def test_by_hand() -> None:
    """The exercise's own loop, request by request, as a class would write it."""
    for cap, (tokens_per_s, _, _) in PUBLISHED.items():
        waiting, running, now, tokens = exercise_requests(), [], 0.0, 0
        while waiting or running:
            new = waiting[: cap - len(running)]
            waiting = waiting[len(new) :]
            running += [[request.output_tokens] for request in new]
            prompt = sum(request.prompt_tokens for request in new)
            now += 0.018 + 0.00012 * len(running) + 2 * 7e9 * prompt / 312e12
            tokens += len(running)
            for left in running:
                left[0] -= 1
            running = [left for left in running if left[0]]
        assert tokens / now == pytest.approx(tokens_per_s, abs=0.05)
        row = next(row for row in solve_exercise((cap,)).rows)
        assert row.end_s == pytest.approx(now, rel=1e-12)


def test_what_the_screen_says() -> None:
    from capplan.planner.exercise import POSED
    from capplan.render.exercise import screen

    shown = screen(solve_exercise(), POSED)
    text = " ".join([shown.headline, *shown.notes])
    assert "from 75,906 to 5,670 ms" in text
    assert "second worst" in text
