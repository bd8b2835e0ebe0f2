"""Bad input of every kind, at every command: one clear message and exit 2, or a right answer.

Eight thousand inputs a run, the same ones each time; CAPPLAN_HOSTILE_EXAMPLES=10 throws
ten times as many.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hostile_inputs import (
    CATALOGUE,
    COMMAND,
    CONFIGS,
    OPTIONS,
    ROOT,
    bad_options,
    broken_configs,
    broken_json,
    broken_yaml,
    command_lines,
    extreme_options,
)
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from capplan.cli.environment import Environment
from capplan.cli.run import run

TIMES = int(os.environ.get("CAPPLAN_HOSTILE_EXAMPLES", "1"))
MAX_CPU_S = 2.0
MAX_ERROR_LENGTH = 2_000


def thrown(examples: int) -> settings:
    """The same inputs in every run, and never slow by Hypothesis's own bookkeeping."""
    return settings(
        max_examples=examples * TIMES,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )


class Outcome(NamedTuple):
    code: int
    stdout: str
    stderr: str


def outcome_of(*arguments: str) -> Outcome:
    """Run a command line and check what holds for every one."""
    out, err = io.StringIO(), io.StringIO()
    env = Environment(out, err, width=80, is_terminal=False, colour=False)
    if arguments[:1] in (("gpus",), ("report",)):  # test_sizing throws things at their simulation
        arguments = (arguments[0], "--no-verify", *arguments[1:])
    start = time.process_time()
    code = run(arguments, env)
    took = time.process_time() - start
    outcome = Outcome(code, out.getvalue(), err.getvalue())
    assert took < MAX_CPU_S, f"{took:.1f} s"
    if code == 2:
        check_refusal(outcome, as_json="--json" in arguments)
    else:
        check_answer(outcome, as_json="--json" in arguments)
    return outcome


def check_refusal(outcome: Outcome, *, as_json: bool) -> None:
    text = outcome.stderr
    assert not outcome.stdout
    assert len(text) < MAX_ERROR_LENGTH
    for sign in ("Traceback", "pydantic", "https://errors", "…", "typing.", "<class"):
        assert sign not in text
    assert all(char.isprintable() or char == "\n" for char in text)
    if as_json:
        error = json.loads(text)["error"]
        assert set(error) == {"message", "file", "line", "column", "hint"}
        assert error["message"]
        return
    lines = text.splitlines()
    assert re.fullmatch(r"error: \S.*", lines[0])
    assert len(lines) <= 3
    assert all(line.startswith(("  --> ", "hint: ")) for line in lines[1:])


def check_answer(outcome: Outcome, *, as_json: bool) -> None:
    assert outcome.code in (0, 1)
    assert outcome.stdout
    assert not outcome.stderr
    if as_json and not outcome.stdout.startswith(("Usage:", "capplan")):
        answer = strict_json(outcome.stdout)
        assert set(answer) == {"schema", "inputs", "assumptions", "result"}
        assert all(math.isfinite(number) for number in numbers(answer))


def strict_json(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, (int, float)):
        yield value


def refusal(*arguments: str) -> str:
    """The whole message of a command line that cannot be answered."""
    outcome = outcome_of(*arguments)
    assert outcome.code == 2
    return outcome.stderr


@pytest.fixture(scope="module", autouse=True)
def _one_command() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("capplan.cli.run.app", COMMAND)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


# Option values and command lines


def test_every_planning_command_is_thrown_at() -> None:
    assert set(OPTIONS) >= {"gpus", "kv", "roofline"}
    assert {"--qps", "--tp", "--model", "--hardware", "--reserve"} <= set(OPTIONS["gpus"])


@thrown(2_400)
@given(bad_options())
def test_nasty_option_values(arguments: list[str]) -> None:
    outcome_of(*arguments)


@thrown(700)
@given(command_lines)
def test_arbitrary_command_lines(arguments: list[str]) -> None:
    outcome_of(*arguments)


@thrown(900)
@given(extreme_options())
def test_extreme_values_are_answered_or_refused(arguments: list[str]) -> None:
    outcome = outcome_of(*arguments)
    if outcome.code == 2 or "--json" not in arguments:
        return
    result = strict_json(outcome.stdout)["result"]
    if arguments[0] == "gpus":
        check_plan(result, feasible=outcome.code == 0)
    if arguments[0] == "kv":
        named = "--hardware" in arguments
        assert (outcome.code == 1) == (named and not result["num_sequences"])
        assert 0 < result["static_utilisation"] <= 1
    if arguments[0] == "roofline":
        assert all(0 < point["peak_fraction"] <= 1 for point in result["points"])


def check_plan(plan: dict[str, Any], *, feasible: bool) -> None:
    assert plan["feasible"] == feasible
    counts = [plan[name] for name in ("tp", "num_replicas", "num_gpus", "num_gpus_rounded")]
    if not feasible:
        assert counts == [None] * 4
        return
    assert all(isinstance(count, int) and count >= 1 for count in counts)
    tp, num_replicas, num_gpus, num_gpus_rounded = counts
    assert num_gpus == tp * num_replicas <= num_gpus_rounded
    assert 0 < plan["busy_fraction"] <= 1 + 1e-9
    assert all(level["predicted_s"] <= level["limit_s"] for level in plan["service_levels"])


# Files


def uses_of(kind: str, path: str) -> list[list[str]]:
    """Command lines that read a file of that kind."""
    if kind == "hardware":
        planning = ["kv", "--hardware", path], ["roofline", "--hardware", path, "--json"]
        gpus = ["gpus", "--hardware", path, "--tp", "1"]
    else:
        planning = ["kv", "--model", path, "--json"], ["roofline", "--model", path]
        gpus = ["gpus", "--model", path, "--tp", "1", "--json"]
    return [[kind, "show", path], [kind, "show", path, "--json"], gpus, *planning]


def check_place(outcome: Outcome, path: Path) -> None:
    """The fault is placed in the file, at a line and column that are there."""
    if outcome.stderr.startswith("{"):
        error = json.loads(outcome.stderr)["error"]
        file, line, column = error["file"], error["line"], error["column"]
    else:
        place = re.search(r"^  --> (.+?)(?::(\d+):(\d+))?$", outcome.stderr, re.MULTILINE)
        assert place is not None, outcome.stderr
        file = place[1]
        line, column = (int(place[2]), int(place[3])) if place[2] else (None, None)
    assert file == str(path)
    if line is None:
        # JSON is placed by reading it as YAML, which a few odd texts are not.
        assert path.suffix == ".json" or re.search(r"empty|too large", outcome.stderr)
        return
    text = path.read_bytes().decode("utf-8-sig", "replace").replace("\r\n", "\n")
    # YAML also ends lines at the separators that Unicode knows.
    lines = re.split("[\r\n\x85\u2028\u2029]", text)
    assert 1 <= line <= len(lines) + 1
    if line <= len(lines):
        assert 1 <= column <= len(lines[line - 1].encode()) + 1


def check_file(kind: str, data: bytes, path: Path, use: int) -> None:
    path.write_bytes(data)
    arguments = uses_of(kind, str(path))[use]
    outcome = outcome_of(*arguments)
    if outcome.code == 2 and arguments[1] == "show":
        check_place(outcome, path)


@thrown(2_500)
@given(broken_yaml(), st.integers(0, 4))
def test_broken_catalogue_files(folder: Path, broken: tuple[str, bytes], use: int) -> None:
    kind, data = broken
    check_file(kind, data, folder / "broken.yaml", use)


@thrown(700)
@given(broken_json(), st.integers(0, 4))
def test_broken_json_text(folder: Path, data: bytes, use: int) -> None:
    check_file("models", data, folder / "config.json", use)


@thrown(1_300)
@given(broken_configs())
def test_a_changed_config_is_refused_or_sized_rightly(folder: Path, config: dict[str, Any]) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    outcome = outcome_of("models", "show", str(path), "--json")
    if outcome.code == 2:
        check_place(outcome, path)
        return
    result = strict_json(outcome.stdout)["result"]
    assert result["num_params_total"] == num_params(config)
    assert result["num_layers"] == config["num_hidden_layers"]
    assert result["max_context_tokens"] == config["max_position_embeddings"]
    heads, head_dim = num_kv_heads(config), head_dim_of(config)
    element = 4 if "float32" in (config.get("dtype"), config.get("torch_dtype")) else 2
    elements = 2 * config["num_hidden_layers"] * heads * head_dim
    assert result["kv_bytes_per_token"] == elements * element


def num_kv_heads(config: dict[str, Any]) -> int:
    """As transformers has it: null, or absent from a Llama, is one a query head."""
    heads: int = config.get("num_key_value_heads") or config["num_attention_heads"]
    return heads


def head_dim_of(config: dict[str, Any]) -> int:
    dim: int = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    return dim


def num_params(config: dict[str, Any]) -> int:
    """Parameters of the architectures in CONFIGS, written out from their definitions."""
    architecture = config["architectures"][0]
    hidden, num_heads = config["hidden_size"], config["num_attention_heads"]
    query, key = num_heads * head_dim_of(config), num_kv_heads(config) * head_dim_of(config)
    attention = 2 * hidden * query + 2 * hidden * key
    if config.get("attention_bias"):
        attention += query + 2 * key + hidden
    if architecture.startswith("Qwen2"):
        attention += query + 2 * key
    if architecture.startswith("Qwen3"):
        attention += 2 * head_dim_of(config)
    experts = config.get("num_experts") or config.get("num_local_experts")
    width = config.get("moe_intermediate_size") or config.get("intermediate_size")
    ffn = 3 * hidden * width
    if config.get("mlp_bias"):
        ffn += 2 * width + hidden
    if experts:
        ffn = experts * ffn + experts * hidden
    tables = 1 if config.get("tie_word_embeddings") else 2
    layers = config["num_hidden_layers"] * (attention + ffn + 2 * hidden)
    total: int = tables * config["vocab_size"] * hidden + layers + hidden
    return total


LLAMA_YAML = (ROOT / "models" / "llama-3.1-8b.yaml").read_text()
H100_YAML = (ROOT / "hardware" / "h100-sxm-80gb.yaml").read_text()


def laughs(levels: int, width: int) -> str:
    lines = ["l0: &l0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    for i in range(1, levels):
        lines.append(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * width)}]")
    return "\n".join(lines)


BOMBS = {
    "billion laughs": (laughs(9, 9), "too many aliases"),
    "few laughs": (laughs(10, 6), "too much data, through aliases"),
    "alias cycle": ("name: &a [*a]", "nested too deeply, through aliases"),
    "alias cycle at the top": ("&a {name: *a}", "nested too deeply, through aliases"),
    "alias staircase": (
        "\n".join(f"a{i}: &a{i} {'[' * 20}{f'*a{i - 1}' if i else 1}{']' * 20}" for i in range(60)),
        "nested too deeply, through aliases",
    ),
    "sequences": ("[" * 100_000, "nest"),
    "mappings": ("{" * 100_000, "nest"),
    "keys": ("{a: " * 100_000, "nest"),
    "blocks": ("\n".join(" " * i + "a:" for i in range(1_500)), "nested too deeply"),
    "dashes": ("- " * 100_000, "nested too deeply"),
    "long list": ("[" + "a, " * 1_000_000 + "]", "too much data"),
    "long block list": ("- a\n" * 1_000_000, "too much data"),
    "open string": ('"' + '\\"' * 2_000_000, "not valid YAML"),
    "long key": ("k" * 900 + ": 1", "not a known field"),
    "long text": ("name: " + "x" * 4_000_000, "missing|known|text"),
    "too large": ("#" * 5_000_000, "too large"),
    "comments": ("#\n" * 2_000_000, "empty"),
    "empty": ("", "empty"),
    "blank": (" \n\n", "empty"),
    "python object": ("name: !!python/object/apply:os.system [ls]", "tags"),
    "python name": ("name: !!python/name:os.system", "tags"),
    "own tag": ("!mine {name: x}", "tags"),
    "merge": ("<<: {name: x}", "merge keys"),
    "two documents": ("name: x\n---\nname: y", "a second document"),
    "key twice": ("name: x\nname: y", "stands twice"),
    "complex key": ("? [a]\n: 1", "plain word"),
    "anchor twice": ("a: &x 1\nb: &x 2", "a second time"),
    "undefined alias": ("a: *x", "undefined alias"),
    "tab": ("\tname: x", "not valid YAML"),
    "NUL": ('name: "\0"', "control characters"),
    "list": ("- name", "mapping of fields"),
    "number": ("5", "mapping of fields"),
    "text": ("name", "mapping of fields"),
    "null": ("~", "mapping of fields"),
}


@pytest.mark.parametrize(("text", "message"), BOMBS.values(), ids=BOMBS)
@pytest.mark.parametrize("kind", ["hardware", "models"])
def test_bombs_in_yaml(tmp_path: Path, kind: str, text: str, message: str) -> None:
    path = tmp_path / "bomb.yaml"
    path.write_text(text)
    for arguments in uses_of(kind, str(path)):
        outcome = outcome_of(*arguments)
        assert outcome.code == 2
        assert re.search(message, outcome.stderr), outcome.stderr
        check_place(outcome, path)


JSON_BOMBS = {
    "lists": ("[" * 100_000, "nested too deeply"),
    "objects": ('{"a":' * 100_000, "nested too deeply"),
    "long list": ("[" + "1," * 1_000_000 + "1]", "too much data"),
    "open string": ('{"a": "' + '\\"' * 2_000_000, "unterminated string"),
    "quotes": ('"' * 3_000_001, "extra data"),
    "digits": ('{"architectures": ["LlamaForCausalLM"], "hidden_size": ' + "9" * 5_000 + "}", "."),
    "key twice": ('{"a": {"b": 1, "b": 2}}', "`b` stands twice"),
    "cut": ('{"a": 1', "not valid JSON"),
    "empty": ("", "not valid JSON"),
    "list": ("[]", "JSON object"),
    "null": ("null", "JSON object"),
    "no config": ('{"a": 1}', "architectures"),
    "too large": ('"' + "x" * 5_000_000 + '"', "too large"),
}


@pytest.mark.parametrize(("text", "message"), JSON_BOMBS.values(), ids=JSON_BOMBS)
def test_bombs_in_json(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    for arguments in uses_of("models", str(path)):
        outcome = outcome_of(*arguments)
        assert outcome.code == 2
        assert re.search(message, outcome.stderr), outcome.stderr
        check_place(outcome, path)


def test_byte_order_mark_and_windows_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "llama.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + LLAMA_YAML.replace("\n", "\r\n").encode())
    assert outcome_of("models", "show", str(path)).code == 0
    config = {"architectures": ["LlamaForCausalLM"], **CONFIGS["LlamaForCausalLM"]}
    path = tmp_path / "config.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(config).encode())
    assert outcome_of("models", "show", str(path)).code == 0


def test_every_catalogue_file_is_a_seed() -> None:
    assert all(len(files) > 20 for files in CATALOGUE.values())


# What the messages say, word for word

MESSAGES = {
    "gpus --slo-ttft 400": """\
error: --slo-ttft: `400` has no unit
hint: write 400ms or 400s
""",
    "gpus --reserve 80Gb": """\
error: --reserve: `80Gb` may mean bits or bytes
hint: write 80GB for bytes
""",
    "gpus --qps nan": """\
error: --qps: `nan` is not a finite number
hint: write 100, 100/s, 300/min or 5M/day
""",
    "gpus --qps -5": """\
error: --qps: `-5` is negative
hint: write a rate of zero or more
""",
    "gpus --qps 0": """\
error: --qps: `0` is zero
hint: write a rate above zero
""",
    "gpus --qps 1e10": """\
error: --qps: `1e10` is out of range
hint: at most 1e9 requests/s
""",
    "gpus --spares -1": """\
error: --spares: `-1` is not a whole number from 0 to 100,000
""",
    "gpus --model llama-3.1-8": """\
error: unknown model `llama-3.1-8`
hint: did you mean `llama-3.1-8b`? `capplan models list` shows all; a path to a file works too
""",
    "kv --hardware a100-sxm-80": """\
error: unknown accelerator `a100-sxm-80`
hint: did you mean `a100-sxm-80gb`? `capplan hardware list` shows all; a path to a file works too
""",
    "gpus --tp 3": """\
error: --tp 3 does not work: 32 attention heads cannot be split evenly
hint: use one of: 1, 2, 4, 8
""",
    "roofline --tp 16": """\
error: --tp 16 does not work: A100 SXM4 80GB links 8 accelerators
hint: use one of: 1, 2, 4, 8
""",
    "kv --context 1M": """\
error: --context 1,000,000 exceeds the 131,072 tokens of context of Llama 3.1 8B
hint: use --context 131072 or less
""",
    "gpus --prompt-tokens 131072": """\
error: 131,072 prompt and 256 output tokens exceed the 131,072 tokens of context of Llama 3.1 8B
hint: shorten --prompt-tokens or --output-tokens
""",
    "gpus --dtype fp8 --hardware a100-sxm-80gb": """\
error: A100 SXM4 80GB has no fp8 tensor cores, which fp8 weights need
hint: weights it computes: fp32, bf16, fp16, int8, int4, mxfp4 (--dtype)
""",
    "kv --dtype bf17": """\
error: --dtype: `bf17` is not a number format
hint: did you mean `bf16`?
""",
    "kv --lengths nrmal:1,2": """\
error: --lengths: `nrmal` is not a distribution of lengths
hint: did you mean `normal`?
""",
    "kv --lengths lognormal:1024,1e-200": """\
error: --lengths: a coefficient of variation of `1e-200` is out of range
hint: write 0.001 to 10, or fixed:1024 for requests of one length
""",
    "kv --lengths 100 --static-length 50": """\
error: --static-length 50 is below the longest request, 100 tokens
hint: static pre-allocation needs at least 100
""",
    "gpus --slo-tfft 400ms": """\
error: no such option `--slo-tfft`
hint: did you mean `--slo-ttft`? see `capplan gpus --help`
""",
    "kv --format tables": """\
error: --format: `tables` is not a format
hint: did you mean `table`?
""",
    "models show /no/such.yaml": """\
error: there is no such file
  --> /no/such.yaml
hint: check the path
""",
    "hardware show /dev/null": """\
error: this is a device or a pipe, not a file
  --> /dev/null
""",
}  # fmt: skip


@pytest.mark.parametrize("line", MESSAGES)
def test_message(line: str) -> None:
    assert refusal(*line.split()) == MESSAGES[line]


def test_usage_messages() -> None:
    # The sentences are typer's and change with its releases; their frame is ours.
    assert refusal("gpsu") == (
        "error: no such command `gpsu`\nhint: did you mean `gpus`? `capplan --help` lists all\n"
    )
    assert refusal("qqq").startswith("error: no such command `qqq`\nhint: one of: gpus, ")
    assert refusal("gpus", "--qps") == (
        "error: option `--qps` requires an argument\nhint: see `capplan gpus --help`\n"
    )
    assert "hint: see `capplan hardware show --help`" in refusal("hardware", "show")
    assert refusal("models") == (
        "error: `capplan models` needs a command\nhint: one of: list, show, import\n"
    )
    assert "extra argument" in refusal("gpus", "llama-3.1-8b")


@pytest.mark.parametrize("option", ["--batch", "--context", "--tp", "--dtype", "--model"])
def test_an_empty_value_is_not_the_default(option: str) -> None:
    assert option in refusal("roofline", option, "")


def test_errors_are_json_with_json(tmp_path: Path) -> None:
    assert json.loads(refusal("gpus", "--slo-ttft", "400", "--json")) == {
        "error": {
            "message": "--slo-ttft: `400` has no unit",
            "file": None,
            "line": None,
            "column": None,
            "hint": "write 400ms or 400s",
        }
    }
    path = tmp_path / "x.yaml"
    path.write_text("name: x\nname: y\n")
    assert json.loads(refusal("models", "show", str(path), "--json"))["error"] == {
        "message": "the key `name` stands twice in one mapping",
        "file": str(path),
        "line": 2,
        "column": 1,
        "hint": None,
    }


# Where in a file the fault stands: what was written there, and what is said of it.
FAULTS = [
    ("hardware", "bandwidth: 3350", "bandwith: 3350", "`memory.bandwith` is not a known field",
     "did you mean `bandwidth`?", "bandwith"),
    ("hardware", "3350 GB/s", "3350 Gb/s", "`memory.bandwidth`: `3350 Gb/s` may mean bits or bytes",
     "write 3350Gbit/s for bits or 3350GB/s for bytes", "bandwidth: 3350"),
    ("hardware", "3350 GB/s", "3350", "`memory.bandwidth`: `3350` has no unit",
     "write it like `3.35 TB/s or 400 Gbit/s`", "bandwidth: 3350"),
    ("hardware", "3350 GB/s", "3 B/s", "`memory.bandwidth`: `3 B/s` is out of range",
     "1 MB/s to 1 PB/s are possible", "bandwidth: 3 B/s"),
    ("hardware", "    bf16: 989.4", "    bf17: 989.4", "`compute.peak.bf17` should be one of fp32,"
     " tf32, bf16, fp16, fp8, int8, int4, fp4, not `bf17`", "did you mean `bf16`?", "bf17"),
    ("hardware", "latency: 2.6 us", "latency: 2.6", "`measured.all_reduce[1].latency`: `2.6` has no"
     " unit", "write it like `5.1 us`", "latency: 2.6\n"),
    ("hardware", "gpus: 4\n", "gpu: 4\n", "`measured.all_reduce[1].gpu` is not a known field",
     "did you mean `gpus`?", "gpu: 4"),
    ("hardware", "as_of: 2026-09-20", "as_of: 20260920", "`prices[1].as_of`: `20260920` is not a"
     " date", "write it like 2026-11-09", "as_of: 20260920"),
    ("hardware", "81089 MiB", "82089 MiB", "`memory.visible` is above `driver`", None, "visible:"),
    ("hardware", "year: 2022", "year: yes", "`year` should be a whole number, not `yes`", None,
     "year"),
    ("models", "num_kv_heads: 8", "num_kv_heads: 5", "`mixers.attention.num_kv_heads` 5 does not"
     " divide `num_heads` 32", None, "num_kv_heads"),
    ("models", "num_kv_heads: 8", "num_kv_heads: x", "`mixers.attention.num_kv_heads` should be a"
     " whole number, not `x`", None, "num_kv_heads"),
    ("models", "num_kv_heads: 8, ", "", "`mixers.attention.num_kv_heads` is missing", None,
     "attention: {kind"),
    ("models", "kind: attention", "kind: atention", "`mixers.attention.kind` should be one of"
     " attention, mla, compressed, gated-deltanet, mamba2, mamba1, not `atention`",
     "did you mean `attention`?",
     "kind: atention"),
    ("models", "kind: dense, ", "", "`ffns.ffn.kind` is missing", "one of: dense, moe", "ffn: {"),
    ("models", "ffn: ffn}", "fnf: ffn}", "`layers[0].fnf` is not a known field",
     "did you mean `ffn`?", "fnf"),
    ("models", "ffn: ffn}", "ffn: fnf}", "`layers[0].ffn` names `fnf`, which `ffns` does not"
     " describe", "did you mean `ffn`?", "ffn: fnf"),
    ("models", "hidden_size: 4096\n", "", "`hidden_size` is missing", None, "name:"),
    ("models", "hidden_size: 4096", "hidden_size: 0", "`hidden_size` should be 1 or more, not `0`",
     None, "hidden_size"),
    ("models", "hidden_size: 4096", "hidden_size: " + "9" * 5_000, "`hidden_size` should be a whole"
     f" number, not `{'9' * 60}...`", None, "hidden_size"),
    ("models", "dtype: bf16", "dtype: bf17", "`weights.dtype` should be one of fp32, bf16, fp16,"
     " not `bf17`", "did you mean `bf16`?", "dtype"),
    ("models", "name: Llama 3.1 8B", 'name: "\\e[31mred"', "`name` holds the control character"
     " '\\x1b'", None, "name"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "old", "new", "message", "hint", "at"), FAULTS)
def test_place_of_a_fault(
    tmp_path: Path, kind: str, old: str, new: str, message: str, hint: str | None, at: str
) -> None:
    before = H100_YAML if kind == "hardware" else LLAMA_YAML
    assert old in before
    text = before.replace(old, new, 1)
    path = tmp_path / "faulty.yaml"
    path.write_text(text)
    error = json.loads(refusal(kind, "show", str(path), "--json"))["error"]
    assert error["message"].partition(" (and ")[0] == message
    assert error["hint"] == hint
    assert error["file"] == str(path)
    offset = text.index(at)
    line = text.count("\n", 0, offset) + 1
    assert (error["line"], error["column"]) == (line, offset - text.rfind("\n", 0, offset))


def config_refusal(tmp_path: Path, **changes: Any) -> str:
    config = {"architectures": ["LlamaForCausalLM"], **CONFIGS["LlamaForCausalLM"], **changes}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config, indent=2))
    return refusal("kv", "--model", str(tmp_path)).replace(str(tmp_path), "")


def test_faults_of_a_config(tmp_path: Path) -> None:
    assert config_refusal(tmp_path, architectures=["LlamaForCausalML"]).startswith(
        "error: the architecture `LlamaForCausalML` is not understood\n"
        "  --> /config.json:2:3\n"
        "hint: did you mean `LlamaForCausalLM`? understood: "
    )
    assert config_refusal(tmp_path, hidden_size="2048") == (
        "error: `hidden_size` should be a whole number from 1 to 1,000,000,000, not `2048`\n"
        "  --> /config.json:5:3\n"
    )
    assert config_refusal(tmp_path, num_key_value_heads=5) == (
        "error: `num_key_value_heads` 5 does not divide `num_attention_heads` 32\n"
        "  --> /config.json:8:3\n"
    )
    (tmp_path / "config.json").write_text('{\n  "hidden_size": 2048,\n}\n')
    assert re.fullmatch(
        r"error: this is not valid JSON: .+\n  --> .*config\.json:[23]:\d+\n",
        refusal("kv", "--model", f"{tmp_path}/config.json"),
    )


def test_a_folder_without_a_config(tmp_path: Path) -> None:
    assert refusal("gpus", "--model", f"{tmp_path}/") == (
        f"error: there is no such file\n  --> {tmp_path}/config.json\nhint: check the path\n"
    )


def test_a_llama_without_kv_heads_has_one_a_head(tmp_path: Path) -> None:
    config = {"architectures": ["LlamaForCausalLM"], **CONFIGS["LlamaForCausalLM"]}
    del config["num_key_value_heads"]
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    result = json.loads(outcome_of("models", "show", str(path), "--json").stdout)["result"]
    assert result["kv_bytes_per_token"] == 2 * 16 * 32 * 64 * 2


def test_a_plot_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mine.svg"
    path.write_text("mine")
    assert refusal("roofline", "--plot", str(path)) == (
        f"error: the file exists\n  --> {path}\nhint: remove it, or give another name\n"
    )
    assert path.read_text() == "mine"


def test_a_plot_of_a_model_with_a_strange_name(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    model, plot = tmp_path / "odd.yaml", tmp_path / "odd.svg"
    model.write_text(LLAMA_YAML.replace("Llama 3.1 8B", "$\\frac{ 漢字 😀 <b>"), encoding="utf-8")
    out, err = io.StringIO(), io.StringIO()
    env = Environment(out, err, width=80, is_terminal=False, colour=False)
    assert run(["roofline", "--model", str(model), "--plot", str(plot)], env) == 0
    assert err.getvalue() == f"wrote {plot}\n"
    assert plot.stat().st_size > 10_000


@pytest.mark.parametrize("name", ["no/such/folder.svg", "x.pdf", "x" * 300 + ".png", "a\0.svg"])
def test_a_plot_that_cannot_be_written(name: str) -> None:
    outcome_of("roofline", "--plot", name)
    refusal("roofline", "--plot", name)


def test_a_search_path_that_leads_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPPLAN_PATH", f"/no/such/folder{os.pathsep}{'x' * 5_000}")
    assert outcome_of("hardware", "show", "h100-sxm-80gb").code == 0
    assert "CAPPLAN_PATH names `/no/such/folder`, which is no folder" in refusal(
        "gpus", "--model", "mine"
    )


def test_a_bad_file_on_the_search_path_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hardware").mkdir()
    (tmp_path / "hardware" / "mine.yaml").write_text("name: Mine\n")
    monkeypatch.setenv("CAPPLAN_PATH", str(tmp_path))
    assert f"  --> {tmp_path}/hardware/mine.yaml:1:1" in refusal("hardware", "list")


def test_many_points_are_refused_rather_than_slow() -> None:
    many = ",".join(str(n) for n in range(1, 65))
    assert refusal("roofline", "--batch", many, "--context", many) == (
        "error: 64 batches at 64 contexts are more than 1000 points\n"
        "hint: shorten --batch or --context\n"
    )
    outcome_of("roofline", "--batch", many, "--context", "1,2,3,4,5,6,7,8", "--format", "table")


# The process around a run


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("gpus > /dev/full", 2, "error: the answer cannot be written: No space left on device\n"),
        ("gpus --help > /dev/full", 2, "error: the answer cannot be written"),
        ("gpus >&-", 0, ""),
        ("gpus --qps 2>&-", 2, ""),
        ("gpus --model \udcff", 2, "error: unknown model `?`\n"),
    ],
)
def test_streams_and_arguments_of_a_process(line: str, code: int, message: str) -> None:
    program = f"{shlex.quote(sys.executable)} -m capplan"
    done = subprocess.run(
        ["sh", "-c", f"{program} {line}"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert done.stderr.startswith(message)
    assert "Traceback" not in done.stderr


def test_a_reader_that_leaves_early() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "capplan", "hardware", "list"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0
