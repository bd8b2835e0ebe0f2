"""Explanations: their arithmetic gives the figures, and they are those of the command's answer."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from typing import Any

import pytest
from arithmetic import evaluate
from commands import ROOT, run_command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from capplan.cli.environment import Environment
from capplan.cli.run import run
from capplan.planner.explain.figure import filled_in, number

LINES = [
    "gpus --hardware h100 --qps 40",
    "gpus --hardware h100,a100-sxm-80gb --qps 150 --spares 2 --price $2",
    "gpus --model mixtral-8x7b --hardware h200 --qps 6 --slo-ttft 2s --slo-e2e 30s --tp 2,4",
    "gpus --hardware h100 --qps 8 --slo-ttft p90:1s --output-tokens 1 --availability 99.99%",
    "gpus --hardware h100 --tp 1 --qps 20 --slo-percentile 90 --arrivals burst:200 --slo-ttft 9s",
    "gpus --no-verify",
    "gpus --no-verify --hardware h100,a100-sxm-80gb --model llama-3.1-70b --tp 4",
    "gpus --no-verify --model mixtral-8x7b --hardware h100 --kv-dtype fp8 --spares 2 --price $2",
    "gpus --no-verify --model gemma-3-27b --hardware h200 --prompt-tokens 16k --slo-ttft 4s",
    "gpus --no-verify --model deepseek-v2-lite --hardware h100 --output-tokens 1",
    "gpus --no-verify --model qwen3.5-27b --hardware h200-sxm-141gb --qps 5M/day",
    "gpus --replica-tokens-per-s 2500 --price-factor 0.6",
    "gpus --no-verify --hardware a30",
    "roofline",
    "roofline --model mixtral-8x7b --hardware h100 --tp 2 --batch 1,64 --context 4096 --dtype fp8",
    "kv",
    "kv --model qwen3.5-27b --hardware h100",
    "kv --model deepseek-v2-lite --tp 2 --pp 4",
    "kv --engine sglang --tp 2 --lengths 35,12,67 --static-length 128",
    "simulate --hardware h100 --qps 6 --num-requests 600",
    "simulate --qps 12 --replicas 2 --num-requests 400 --replications 2",
]
lines = pytest.mark.parametrize("line", LINES)


def explained(line: str) -> dict[str, Any]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(ROOT):
        run(
            shlex.split(f"explain {line} --json"),
            Environment(out, err, 80, is_terminal=False, colour=False),
        )
    assert out.getvalue(), err.getvalue()
    found: dict[str, Any] = json.loads(out.getvalue())
    assert found["schema"] == "capplan.explanation/1"
    return found


def check_arithmetic(figures: list[dict[str, Any]]) -> None:
    for figure in figures:
        left, right = figure["filled"].split(" = ", 1)
        assert evaluate(left) == pytest.approx(figure["value"], rel=1e-6), figure["name"]
        got = evaluate(right)
        # Steps of a simulation are counted to the nearest one over the window's edges.
        close = 2e-3 if figure["name"] == "share of the time at work" else 1e-5
        # A small difference of figures that are shown to seven digits.
        least = 1e-6 if figure["name"].startswith("headroom") else 1e-9
        assert got == pytest.approx(figure["value"], rel=close, abs=least), (
            f"{figure['name']}: {figure['filled']}"
        )


@lines
def test_the_numbers_give_the_figure(line: str) -> None:
    figures = explained(line)["result"]["figures"]
    assert figures
    check_arithmetic(figures)


@lines
def test_every_figure_has_its_five_steps_and_a_source(line: str) -> None:
    for figure in explained(line)["result"]["figures"]:
        for step in ("why", "picture", "formula", "filled", "check", "source"):
            assert figure[step].strip(), (figure["name"], step)
        used = set(re.findall(r"[A-Za-z_]\w*", figure["formula"].split("=", 1)[1]))
        named = {symbol["name"] for symbol in figure["symbols"]}
        assert used - {"ceil", "floor", "min", "max"} <= named, figure["name"]


def values_of(answer: Any) -> list[float]:
    """Every number of an answer."""
    if isinstance(answer, dict):
        return [value for item in answer.values() for value in values_of(item)]
    if isinstance(answer, list):
        return [value for item in answer for value in values_of(item)]
    is_number = isinstance(answer, (int, float)) and not isinstance(answer, bool)
    return [float(answer)] if is_number else []


# Steps on the way that the answer itself does not hold.
ON_THE_WAY = re.compile(
    r"KV of a request|blocks of the pool|KV pool|step of|GPUs by|share of the bound|"
    r"requests in flight|samples beyond|headroom|used share, static|TTFT|TPOT|"
    r"(top|bottom) of the bracket|requests that count at a point|share of its limit|"
    r"share of what the replicas carry|requests that a replica holds"
)


@pytest.mark.parametrize("line", [line for line in LINES if "replications" not in line])
def test_it_explains_the_answer_of_the_command(line: str) -> None:
    """Every figure that the command's JSON holds is there to the last digit."""
    out = io.StringIO()
    with contextlib.chdir(ROOT):
        env = Environment(out, io.StringIO(), 80, is_terminal=False, colour=False)
        run(shlex.split(f"{line} --json"), env)
    answer = json.loads(out.getvalue())
    found = explained(line)
    assert found["inputs"] == answer["inputs"]
    assert found["assumptions"] == answer["assumptions"]
    known = values_of(answer["result"])
    for figure in found["result"]["figures"]:
        same = any(figure["value"] == pytest.approx(value, rel=1e-12) for value in known)
        assert same or ON_THE_WAY.match(figure["name"]), figure["name"]


def answered(line: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(run_command(f"{line} --json")[1])["result"]
    return result


@pytest.mark.parametrize("mode", ["", " --no-verify"])
def test_it_explains_the_run_that_produced_the_answer(mode: str) -> None:
    """The simulated count by default, that of the bounds where they are the answer."""
    line = f"gpus --slo-ttft 400ms --slo-tpot 25ms{mode}"
    result, figures = answered(line), explained(line)["result"]["figures"]
    values = {figure["name"]: figure["value"] for figure in figures}
    name = "GPUs by all limits together" if mode else "GPUs"
    assert values[name] == result["num_gpus"]
    assert values["GPUs to get"] == result["num_gpus_rounded"]
    band = next(band for band in result["bands"] if band["figure"] == "num_gpus")
    ends = values["fewest GPUs of the band"], values["most GPUs of the band"]
    assert ends == (band["low"], band["high"])
    assert ("sustained by a replica" in values) is not mode.strip().startswith("--no")


def test_the_bisection_is_told_in_its_order() -> None:
    line = "gpus --hardware h100 --qps 40"
    sustained = answered(line)["sustained"]
    points = [p for p in sustained["points"] if p["num_replicas"] == sustained["num_replicas"]]
    held = [point["requests_per_s"] for point in points if point["holds"]]
    failed = [point["requests_per_s"] for point in points if not point["holds"]]
    assert max(held) == sustained["requests_per_s"]
    assert min(failed) == pytest.approx(sustained["fails_at_per_s"])
    for point in points:
        over = point["level"]["value_s"] > point["level"]["limit_s"]
        assert over is not point["holds"]
    figures = {f["name"]: f for f in explained(line)["result"]["figures"]}
    told = figures["sustained by a replica"]["check"]
    assert told.count("holds") == len(held)
    assert told.count("fails") == len(failed)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    qps=st.floats(0.1, 5000),
    prompt=st.integers(1, 30_000),
    output=st.integers(1, 4000),
    ttft_ms=st.integers(50, 20_000),
    tpot_ms=st.integers(5, 200),
    tp=st.sampled_from(["auto", "1", "2", "8"]),
)
def test_any_question_adds_up(
    qps: float, prompt: int, output: int, ttft_ms: int, tpot_ms: int, tp: str
) -> None:
    line = (
        f"gpus --no-verify --hardware h100 --qps {qps:.4f} --prompt-tokens {prompt} "
        f"--output-tokens {output} --slo-ttft {ttft_ms}ms --slo-tpot {tpot_ms}ms --tp {tp}"
    )
    check_arithmetic(explained(line)["result"]["figures"])


@given(st.floats(1e-12, 1e14) | st.integers(0, 10**14).map(float))
def test_numbers_keep_seven_digits(value: float) -> None:
    assert evaluate(number(value)) == pytest.approx(value, rel=1e-6)


def test_symbols_are_replaced_whole() -> None:
    """`a` inside `max` or inside `a_2` is not the symbol `a`."""
    text = filled_in("x = max(a, a_2 × 2)", {"x": 6.0, "a": 1.0, "a_2": 3.0})
    assert text == "6 = max(1, 3 × 2)"


def test_text_and_markdown() -> None:
    _, text = run_command("explain gpus --hardware h100")
    assert "Numbers   677.5 = 100 × (0.4 + (256 - 1) × 0.025)" in text
    assert not [line for line in text.splitlines() if len(line) > 80 or line != line.rstrip()]
    _, page = run_command("explain kv --format markdown")
    assert page.startswith("# Llama 3.1 8B on 1 x ")
    assert "| symbol | value | meaning |" in page


def test_help_is_that_of_the_command() -> None:
    _, text = run_command("explain gpus --help")
    assert "--slo-ttft" in text
    _, text = run_command("explain --help")
    assert "figure by figure" in text


def test_infeasible_is_explained_and_answered_no() -> None:
    code, text = run_command("explain gpus --slo-tpot 1ms")
    assert code == 1
    assert text.startswith("No number of")


@pytest.mark.parametrize("line", ["gpus --hardware h100", "kv", "roofline --batch 32"])
def test_json_obeys_its_schema(line: str) -> None:
    file = ROOT / "docs" / "schemas" / "capplan.explanation-1.json"
    Draft202012Validator(json.loads(file.read_text(encoding="utf-8"))).validate(explained(line))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("explain gpsu", "did you mean `gpus`"),
        ("explain gpus --slo-tfft 1s", "no such option `--slo-tfft`"),
        ("explain gpus --slo-tfft 1s", "see `capplan explain gpus --help`"),
        ("explain kv --format table", "is not a format"),
        ("explain roofline --plot x.png", "belongs to `capplan roofline`"),
    ],
)
def test_bad_input(line: str, words: str) -> None:
    out, err = io.StringIO(), io.StringIO()
    env = Environment(out, err, 80, is_terminal=False, colour=False)
    assert run(shlex.split(line), env) == 2
    assert words in err.getvalue()
