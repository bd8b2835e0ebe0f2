"""Recorded traces: every format on a small file of its own, order, prefixes, and bad input."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capplan.errors import CapplanError
from capplan.simulator.content import KeyBook
from capplan.simulator.requests import Request
from capplan.simulator.traffic.build import requests_of
from capplan.simulator.traffic.replay import order
from capplan.simulator.traffic.replay.hash_ids import PrefixTree
from capplan.simulator.traffic.traffic import Traffic
from capplan.specs.traffic import TrafficSpec

DATA = Path(__file__).parent / "data" / "traces"
SHARED = Path(__file__).parents[1].parent / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.exists(), reason="the shared traces are not here")


def traffic(file: str | Path, trace: dict[str, Any] | None = None, **fields: Any) -> Traffic:
    return requests_of(TrafficSpec(trace={"file": str(DATA / file)} | (trace or {}), **fields), 1)


def replay(file: str | Path, trace: dict[str, Any] | None = None, **fields: Any) -> list[Request]:
    return list(traffic(file, trace, **fields).requests())


def rows(made: list[Request]) -> list[tuple[float, int, int]]:
    return [(round(r.arrival_s, 7), r.prompt_tokens, r.output_tokens) for r in made]


# Formats


@pytest.mark.parametrize(
    ("file", "name", "expected"),
    [
        # Seven digits of a second, over midnight.
        ("azure_2023.csv", "azure", [(0, 400, 40), (0.7499999, 900, 12), (2.2500003, 80, 300)]),
        # With zones, which the page of 2024 leaves open.
        ("azure_2024.csv", "azure", [(0, 2162, 5), (0.5, 100, 9), (1, 300, 7)]),
        ("vidur.csv", "vidur", [(0, 374, 44), (0.75, 396, 109)]),
        (
            "mooncake.jsonl",
            "mooncake",
            [(0, 1100, 20), (0, 1500, 30), (2.999, 600, 10), (3, 500, 10)],
        ),
        ("llmservingsim.jsonl", "llmservingsim", [(0, 128, 64), (1.5, 256, 32)]),
        ("plain.csv", "csv", [(0, 100, 10), (0.5, 200, 20), (2, 300, 30)]),
        ("plain_ms.jsonl", "jsonl", [(0, 10, 5), (1.5, 20, 6)]),
    ],
)
def test_timed_formats(file: str, name: str, expected: list[tuple[float, int, int]]) -> None:
    run = traffic(file)
    assert rows(list(run.requests())) == expected
    told = {found.what: found.value for found in run.describe()}
    assert told[f"format of {file}"] == name
    assert replay(file, {"format": name}) == replay(file)
    times = [time for time, _, _ in expected]
    assert run.rate_per_s == pytest.approx((len(times) - 1) / times[-1])
    assert run.mean_prompt_tokens == pytest.approx(sum(p for _, p, _ in expected) / len(expected))
    assert run.mean_output_tokens == pytest.approx(sum(o for _, _, o in expected) / len(expected))


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("etalon_lengths.csv", [(74, 918), (290, 905)]),
        # 35 and 4 characters, at 4 characters a token.
        ("vllm_custom.jsonl", [(9, 12), (1, 300)]),
        ("sharegpt.json", [(6, 11), (4, 3)]),
        ("sharegpt.jsonl", [(5, 1)]),
    ],
)
def test_formats_without_times(file: str, expected: list[tuple[int, int]]) -> None:
    with pytest.raises(CapplanError, match="no arrival times"):
        traffic(file)
    made = replay(file, rate="2/s", arrivals="constant")
    assert [(r.prompt_tokens, r.output_tokens) for r in made] == expected
    assert [r.arrival_s for r in made] == [0.5 * (i + 1) for i in range(len(made))]
    # More than the file holds: from the beginning again.
    again = replay(file, rate="2/s", requests=5)
    assert [(r.prompt_tokens, r.output_tokens) for r in again] == (expected * 5)[:5]


def test_a_failed_request_of_burstgpt_is_named_and_may_be_left_out() -> None:
    with pytest.raises(CapplanError, match="a request that failed") as caught:
        replay("burstgpt_1.csv")
    assert str(caught.value.location) == f"{DATA / 'burstgpt_1.csv'}:3"
    run = traffic("burstgpt_1.csv", {"skip_bad_rows": True})
    assert rows(list(run.requests())) == [(0, 300, 25), (12, 650, 210)]
    assert run.skipped == {"without output tokens": 1}
    told = {found.what: found.value for found in run.describe()}
    assert told["rows left out of burstgpt_1.csv"] == "1 without output tokens"
    list(run.requests())
    assert run.skipped == {"without output tokens": 1}


def test_only_rows_with_given_values() -> None:
    only = {"where": {"Model": "GPT-4"}}
    assert [r.prompt_tokens for r in replay("burstgpt_3.csv", only)] == [100, 40, 190]
    with pytest.raises(CapplanError, match="no field `Modell`") as caught:
        replay("burstgpt_3.csv", {"where": {"Modell": "GPT-4"}})
    assert caught.value.hint == "did you mean `Model`?"
    with pytest.raises(CapplanError, match="the file holds no request"):
        replay("burstgpt_3.csv", {"where": {"Model": "GPT-5"}})


def test_sessions_continue_from_their_own_tokens() -> None:
    first, other, second, alone = replay("burstgpt_3.csv", {"sessions": True})
    assert second.prefix == (first.own_segment, ("of 0", 150))[:1]
    assert first.own_segment == ("of 0", 150)
    assert (first.reused, other.reused, alone.reused) == (True, True, False)
    assert alone.prefix == ()
    assert [r.prefix for r in replay("burstgpt_3.csv")] == [()] * 4


def test_names_of_columns_may_be_given(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("When;How long;Answer\n0;10;1\n3;20;2\n")
    with pytest.raises(CapplanError, match="no field holds the prompt lengths") as caught:
        replay(path)
    assert "the file has: When, How long, Answer" in (caught.value.hint or "")
    columns = {"time": "when", "prompt": "how long", "output": "Answer"}
    given = {"columns": columns, "time_unit": "ms"}
    assert rows(replay(path, given)) == [(0, 10, 1), (0.003, 20, 2)]


def test_a_time_without_a_unit_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text('{"timestamp": 0, "prompt_tokens": 5, "output_tokens": 6}\n')
    with pytest.raises(CapplanError, match="`timestamp` does not say its unit"):
        replay(path)
    assert rows(replay(path, {"time_unit": "s"})) == [(0, 5, 6)]


def test_gzip_is_read_and_a_damaged_one_is_an_error(tmp_path: Path) -> None:
    packed = gzip.compress((DATA / "plain.csv").read_bytes() * 1)
    path = tmp_path / "plain.csv.gz"
    path.write_bytes(packed)
    assert replay(path) == replay("plain.csv")
    path.write_bytes(packed[:-12])
    with pytest.raises(CapplanError, match="damaged or cut off"):
        replay(path)


def test_lengths_of_the_plan_stand_in_for_those_of_the_file() -> None:
    made = replay("plain.csv", prompt="77", output="uniform:5-5", max_tokens=3)
    assert rows(made) == [(0, 77, 3), (0.5, 77, 3), (2, 77, 3)]


def test_users_may_send_what_was_recorded() -> None:
    run = traffic("plain.csv", closed_loop={"users": 2, "think_time": "1s"}, requests=4)
    first, second = run.requests()
    third = run.after(first, 5.0)
    assert third is not None
    assert (third.arrival_s, third.prompt_tokens) == (6.0, 300)
    fourth = run.after(second, 7.0)
    assert fourth is not None
    assert (fourth.arrival_s, fourth.prompt_tokens) == (8.0, 100)
    assert run.after(third, 9.0) is None


# Time


def test_window_speed_and_number() -> None:
    window = {"start": "400ms", "end": "2s", "speed": 2.0}
    assert rows(replay("plain.csv", window)) == [(0, 200, 20)]
    assert rows(replay("plain.csv", {"speed": 0.5}, requests=2)) == [(0, 100, 10), (1, 200, 20)]
    assert len(replay("plain.csv", duration="1s")) == 2
    with pytest.raises(CapplanError, match="no request of the file lies in the window"):
        replay("plain.csv", {"start": "1h"})


def write_times(path: Path, times: list[float]) -> Path:
    path.write_text("arrival_s,prompt,output\n" + "".join(f"{t},1,1\n" for t in times))
    return path


def test_times_that_run_backwards(tmp_path: Path) -> None:
    path = write_times(tmp_path / "t.csv", [0, 5, 3, 9])
    with pytest.raises(CapplanError, match="2 s before line 3") as caught:
        replay(path)
    assert str(caught.value.location) == f"{path}:4"
    assert [r.arrival_s for r in replay(path, {"sort": True})] == [0, 3, 5, 9]
    run = traffic(path, {"skip_bad_rows": True})
    assert [r.arrival_s for r in run.requests()] == [0, 5, 9]
    assert run.skipped == {"out of order": 1}


def test_sorting_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "SORT_ROWS", 3)
    near = write_times(tmp_path / "near.csv", [1, 2, 3, 0, 4])
    assert [r.arrival_s for r in replay(near, {"sort": True})] == [0, 1, 2, 3, 4]
    far = write_times(tmp_path / "far.csv", [1, 2, 3, 4, 5, 0])
    with pytest.raises(CapplanError, match="too late to be put in order") as caught:
        replay(far, {"sort": True})
    assert str(caught.value.location) == f"{far}:7"


def test_ticks_are_spread_until_the_next(tmp_path: Path) -> None:
    ticks = [0.0] * 500 + [2.999] * 400 + [6.0] * 300
    path = write_times(tmp_path / "ticks.csv", ticks)
    made = replay(path, {"spread": "3s"})
    times = [r.arrival_s for r in made]
    assert times == sorted(times)
    for index, number in enumerate((500, 400, 300)):
        inside = sum(3 * index <= t < 3 * index + 3 for t in times)
        assert inside == pytest.approx(number, abs=8)  # the first of all is at 0, not its tick
    assert max(later - earlier for earlier, later in pairwise(times)) < 0.1
    assert replay(path, {"spread": "3s"}) == made


# Prefixes


def shared_tokens(one: Request, other: Request) -> int:
    """Common tokens at the start, by the meaning of segments."""
    total = 0
    for (stream, tokens), (other_stream, other_tokens) in zip(
        one.prefix, other.prefix, strict=False
    ):
        if stream != other_stream:
            break
        total += min(tokens, other_tokens)
        if tokens != other_tokens:
            break
    return total


def test_equal_ids_are_equal_prefixes() -> None:
    first, second, third, fourth = replay("mooncake.jsonl")
    assert first.prefix == (("block 0", 1024),)
    assert shared_tokens(first, second) == 1024
    assert shared_tokens(first, third) == shared_tokens(second, third) == 512
    assert shared_tokens(first, fourth) == 0
    # Blocks that nobody else has are the request's own.
    shared = [sum(tokens for _, tokens in r.prefix) for r in (first, second, third, fourth)]
    assert shared == [1024, 1024, 512, 0]


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=2, max_size=12))
def test_segments_share_what_the_chains_of_ids_share(chains: list[list[int]]) -> None:
    tree = PrefixTree(chains, 10, "b")
    made = [
        Request(str(i), 0.0, 10 * len(ids), 1, prefix=tree.prefix(ids, 10 * len(ids)))
        for i, ids in enumerate(chains)
    ]
    for one, ids in zip(made, chains, strict=True):
        for other, other_ids in zip(made, chains, strict=True):
            if one is other:
                continue
            equal = [a == b for a, b in zip(ids, other_ids, strict=False)]
            common = equal.index(False) if False in equal else len(equal)
            assert shared_tokens(one, other) == 10 * common


def reuse(made: Iterator[Request] | list[Request], block: int) -> float:
    """Share of prompt tokens in leading blocks that an unlimited cache has seen."""
    book, seen, hits, total = KeyBook(block), set[int](), 0, 0
    for request in made:
        keys = book.keys(request)
        known = next((i for i, key in enumerate(keys) if key not in seen), len(keys))
        hits += known * block
        total += request.prompt_tokens
        seen.update(keys)
    return hits / total


# Bad input


HEAD = "arrival_s,prompt_tokens,output_tokens\n"


@pytest.mark.parametrize(
    ("row", "message", "reason"),
    [
        ("2,,5", "`prompt_tokens` is empty", "without a value"),
        ("2,0,5", "`prompt_tokens` is 0: no prompt tokens", "without prompt tokens"),
        ("2,7,0", "`output_tokens` is 0: no output tokens", "without output tokens"),
        ("2,-7,5", "`prompt_tokens` is `-7`: negative", "length out of range"),
        ("2,7.5,5", "`prompt_tokens` is `7.5`, not a whole number", "not a whole number"),
        ("2,nan,5", "`prompt_tokens` is `nan`, not a number", "not a number"),
        ("2,seven,5", "`prompt_tokens` is `seven`, not a number", "not a number"),
        ("2,9e99,5", "more than 1,000,000,000 tokens", "length out of range"),
        ("-2,7,5", "`arrival_s` is `-2`: negative", "time out of range"),
        ("nan,7,5", "`arrival_s` is `nan`: not a time", "not a number"),
        ("inf,7,5", "`arrival_s` is `inf`: not a time", "time out of range"),
        (",7,5", "`arrival_s` is empty", "without a value"),
        ("noon,7,5", "`arrival_s` is `noon`, not a number", "not a number"),
        ("2,7", "the row has 2 of 3 columns", "with too few columns"),
        ('2,"7,5', "this is not valid CSV", "not valid CSV"),
        ("\x1b[31m,7,5", "`arrival_s` is `?[31m`", "not a number"),
    ],
)
def test_bad_rows_of_csv(tmp_path: Path, row: str, message: str, reason: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(f"{HEAD}1,10,20\n{row}\n3,30,40\n")
    with pytest.raises(CapplanError) as caught:
        replay(path)
    assert message in caught.value.message
    assert str(caught.value.location) == f"{path}:3"
    assert "skip_bad_rows" in (caught.value.hint or "")
    run = traffic(path, {"skip_bad_rows": True})
    assert rows(list(run.requests())) == [(0, 10, 20), (2, 30, 40)]
    assert run.skipped == {reason: 1}


GOOD = '{"timestamp": 0, "input_length": 5, "output_length": 6, "hash_ids": [1]}'


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"timestamp": 9, "input_length": 5', "this is not valid JSON"),
        ('{"timestamp": NaN, "input_length": 5, "output_length": 6}', "NaN is no number"),
        ('{"timestamp": 9, "input_length": 5}', "there is no `output_length` in this row"),
        ('{"timestamp": 9, "input_length": null, "output_length": 6}', "`input_length` is empty"),
        ('{"timestamp": 9, "input_length": [5], "output_length": 6}', "`input_length` is a list"),
        ('{"timestamp": true, "input_length": 5, "output_length": 6}', "`timestamp` is `True`"),
        ('{"timestamp": 1e999, "input_length": 5, "output_length": 6}', "not a time"),
        (GOOD.replace("[1]", "7"), "`hash_ids` is not a list"),
        (GOOD.replace("[1]", "[1.5]"), "`hash_ids` is not a list"),
        (GOOD.replace(": 5", ": 1" + "0" * 5000), "`input_length` is"),
        ("[1, 2]", "a list is not an object"),
        ("[" * 100_000, "this is not valid JSON: nested too deeply"),
    ],
)
def test_bad_rows_of_json(tmp_path: Path, row: str, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(f"{GOOD}\n{row}\n{GOOD}\n")
    with pytest.raises(CapplanError) as caught:
        replay(path)
    if "5000" not in row and len(row) < 5000:
        assert message in caught.value.message
    assert str(caught.value.location) == f"{path}:2"
    run = traffic(path, {"skip_bad_rows": True})
    assert len(list(run.requests())) == 2
    assert run.skipped.total() == 1


def test_bad_first_rows_are_passed_over_too(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(f"{{oops\n7\n{GOOD}\n")
    with pytest.raises(CapplanError, match="not valid JSON"):
        replay(path)
    run = traffic(path, {"skip_bad_rows": True})
    assert rows(list(run.requests())) == [(0, 5, 6)]
    assert run.skipped == {"not valid JSON": 1, "not an object": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"arrival,prompt,output\n", "the file holds no request"),
        (b"0,100,20\n1,100,20\n", "the first line is no header"),
        (b"TIMESTAMP,ContextTokens\n2023-11-16 18:17:03,5\n", "no field holds the output"),
        (b"TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,5,6\n", "not a time like"),
        (b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-02-30 18:17:03,5,6\n", "no such day"),
        (b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-02-03 28:17:03,5,6\n", "no such time"),
        (b"\x00\x01\x02", "not a text file"),
        ("arrival,prompt\n".encode("utf-16"), "not a text file"),
        (b'{"a": 1', "this is not valid JSON"),
        (b"[1, 2", "is not an object"),
        (b"[]", "the file holds no request"),
        (b"{}", "no field holds the prompt lengths"),
        (b"client,window_start_s,rate_rps,cv,distribution,param1,param2\n", "a table of rates"),
    ],
)
def test_files_that_are_no_trace(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "trace"
    path.write_bytes(content)
    with pytest.raises(CapplanError) as caught:
        replay(path)
    assert message in caught.value.message
    assert caught.value.location is not None


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for path, message in ((tmp_path / "no", "no such file"), (tmp_path, "this is not a file")):
        with pytest.raises(CapplanError, match=message):
            replay(path)


def test_a_file_that_was_cut_off_says_so(tmp_path: Path) -> None:
    for name in ("plain.csv", "mooncake.jsonl", "sharegpt.json"):
        path = tmp_path / name
        path.write_bytes((DATA / name).read_bytes()[:-6])
        with pytest.raises(CapplanError, match="cut off"):
            replay(path, **({"rate": "1/s"} if name == "sharegpt.json" else {}))


def test_outputs_may_come_from_the_plan(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text('{"prompt": "Hello to all of you"}\n')
    with pytest.raises(CapplanError, match="no `output_tokens` in this row"):
        replay(path, rate="1/s")
    made = replay(path, rate="1/s", output="9")
    assert [(r.prompt_tokens, r.output_tokens) for r in made] == [(5, 9)]


def test_the_wrong_format_is_refused() -> None:
    with pytest.raises(CapplanError, match="this is no mooncake file: it looks like CSV"):
        replay("plain.csv", {"format": "mooncake"})
    with pytest.raises(CapplanError, match="none is called `contexttokens`"):
        replay("plain.csv", {"format": "azure"})


@pytest.mark.parametrize(
    ("file", "trace", "fields", "message"),
    [
        ("plain.csv", {"speed": 2.0}, {"rate": "1/s"}, "`trace.speed` says nothing"),
        ("plain.csv", {"start": "1s"}, {"closed_loop": {"users": 1}}, "`trace.start` says nothing"),
        ("sharegpt.json", {"where": {"id": "a"}}, {"rate": "1/s"}, "`where` says nothing"),
        ("plain.csv", {"sessions": True}, {}, "no field holds a session"),
    ],
)
def test_options_that_would_say_nothing_are_refused(
    file: str, trace: dict[str, Any], fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(CapplanError, match=message):
        replay(file, trace, **fields)


def test_many_bad_lines_are_counted_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(HEAD + "1,2\n" * 50_000 + "1,0,2\n" * 50_000 + "5,6,7\n")
    run = traffic(path, {"skip_bad_rows": True})
    assert rows(list(run.requests())) == [(0, 6, 7)]
    assert run.skipped == {"with too few columns": 50_000, "without prompt tokens": 50_000}
    path.write_text(HEAD + "1,2\n" * 7)
    with pytest.raises(CapplanError, match=r"no usable request \(7 with too few columns\)"):
        replay(path, {"skip_bad_rows": True})


def test_a_line_without_end_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capplan.simulator.traffic.replay.files.MAX_LINE", 1000)
    path = tmp_path / "long.csv"
    path.write_text(HEAD + "1,2,3\n" + "9" * 5000 + ",1,1\n2,3,4\n")
    with pytest.raises(CapplanError, match="too long"):
        replay(path)
    assert rows(replay(path, {"skip_bad_rows": True})) == [(0, 2, 3), (1, 3, 4)]


FILES = sorted(path.name for path in DATA.iterdir() if path.name != "rates.csv")


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_damaged_files_give_requests_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Bytes put in, taken out or moved: never anything but requests in order, or CapplanError."""
    content = bytearray((DATA / data.draw(st.sampled_from(FILES))).read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content)))
        end = min(len(content), at + data.draw(st.integers(0, 12)))
        pieces = (b"", b"\n", b",", b'"', b"-", b"9" * 30, b"NaN", b"[", b"{", b"\xff\xfe", b"\0")
        content[at:end] = data.draw(st.sampled_from(pieces) | st.binary(max_size=4))
    path = tmp_path_factory.mktemp("fuzz") / "trace"
    path.write_bytes(content)
    for skip in (False, True):
        for timing, fields in (({"spread": "3s"}, {}), ({}, {"rate": "1/s"})):
            try:
                made = replay(path, {"skip_bad_rows": skip} | timing, **fields)
            except CapplanError as error:
                made = [] if error.location is not None else None
            assert made is not None
            assert all(r.prompt_tokens > 0 and r.output_tokens > 0 for r in made)
            assert all(a.arrival_s <= b.arrival_s for a, b in pairwise(made))


# The public excerpts


@needs_shared
@pytest.mark.parametrize(
    ("file", "number", "fields"),
    [
        ("azure_llm_2023_code_first5000.csv", 5000, {}),
        ("azure_llm_2023_conv_first5000.csv", 5000, {}),
        ("mooncake_conversation_first3000.jsonl", 3000, {}),
        ("mooncake_synthetic_first2000.jsonl", 2000, {}),
        ("vidur_splitwise_conv_first2000.csv", 2000, {}),
        ("vidur_arxiv_summarization_first3000.csv", 3000, {"rate": "3/s"}),
        ("etalon_sharegpt_8k_lengths_first5000.csv", 5000, {"rate": "3/s"}),
        ("etalon_bwb_lengths_first3000.csv", 3000, {"rate": "3/s"}),
        ("llmservingsim_mixed_workload.jsonl", 608, {}),
        ("burstgpt_format_example.csv", 3, {}),
    ],
)
def test_every_public_excerpt_is_replayed(file: str, number: int, fields: dict[str, Any]) -> None:
    assert len(replay(SHARED / "traces" / file, **fields)) == number


@needs_shared
def test_the_public_rates_drive_a_generator() -> None:
    file = SHARED / "traces" / "servegen_m-large_8clients_rates.csv"
    run = requests_of(TrafficSpec(rate={"kind": "servegen", "file": str(file)}, requests=5000))
    assert len(list(run.requests())) == 5000


@needs_shared
def test_block_hashes_reuse_what_their_ids_say() -> None:
    path = SHARED / "traces" / "mooncake_conversation_first3000.jsonl"
    seen, hits, total = set[int](), 0, 0
    for line in path.read_text().splitlines():
        row = json.loads(line)
        ids = row["hash_ids"][: row["input_length"] // 512]
        known = next((i for i, block in enumerate(ids) if block not in seen), len(ids))
        hits += known * 512
        total += row["input_length"]
        seen.update(row["hash_ids"])
    assert reuse(replay(path), 512) == pytest.approx(hits / total, abs=0.003)
