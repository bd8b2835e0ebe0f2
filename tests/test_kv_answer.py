"""`capplan kv`: the engine's budget, degrees over GPUs, advice, logs and lengths from files."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from test_engine_log import REFUSED, SGLANG, TENSORRT, VLLM_V0, VLLM_V1

from capplan.cli.environment import Environment
from capplan.cli.run import run
from capplan.performance.kv_engine import KvEngine
from capplan.performance.loaded_weights import loaded_weights
from capplan.planner.kv_split import group_fault, possible_tps, split_fault
from capplan.specs.catalogue import load_hardware, load_model
from capplan.specs.editions import WeightEdition
from capplan.specs.engine_catalogue import load_engine

GIB = 2**30


def capplan(*words: str, people: bool = False) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    env = Environment(out, err, 100, is_terminal=people, colour=False)
    return run(words, env), out.getvalue(), err.getvalue()


def result(line: str) -> dict[str, Any]:
    code, out, err = capplan(*f"{line} --json".split())
    assert code in (0, 1), err
    found: dict[str, Any] = json.loads(out)["result"]
    return found


# The budget


@pytest.mark.parametrize(
    ("flags", "pool_gib"),
    [
        # Pools that start-up logs print (llm-d-planner docs/accuracy, vLLM 0.19 and 0.11).
        ("--model llama-3.1-8b --engine-version 0.19 --max-model-len 8192 "
         "--gpu-memory-utilization 0.95", 58.11),
        ("--model qwen2.5-7b --engine-version 0.19 --max-model-len 8192 "
         "--gpu-memory-utilization 0.95", 58.53),
        ("--model llama-3.1-8b --engine-version 0.11 --max-model-len 16000", 51.38),
    ],
)  # fmt: skip
def test_pool_is_the_logged_one(flags: str, pool_gib: float) -> None:
    answer = result(f"kv --hardware h100-sxm-80gb {flags}")
    memory = answer["memory"]
    assert memory["pool_bytes"] / GIB == pytest.approx(pool_gib, rel=0.002)
    assert memory["pool_low_bytes"] <= pool_gib * GIB <= memory["pool_high_bytes"]
    terms = sum(term["likely_bytes"] for term in memory["terms"])
    assert terms + memory["pool_bytes"] == pytest.approx(memory["visible_bytes"])


def test_a_flat_reserve_is_the_old_budget() -> None:
    answer = result("kv --hardware a100-sxm-80gb --reserve 3.5GB")
    visible = load_hardware("a100-sxm-80gb").spec.visible_memory_bytes
    assert answer["weight_bytes_per_gpu"] == 16_060_522_496
    pool = 0.9 * visible - 16_060_522_496 - 3.5e9
    assert answer["kv_pool_bytes_per_gpu"] == pytest.approx(pool, abs=1)
    assert answer["num_sequences_low"] == answer["num_sequences"] == answer["num_sequences_high"]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
def test_each_engine_has_its_own_share(engine: str) -> None:
    answer = result(f"kv --hardware h100-sxm-80gb --engine {engine}")
    option = load_engine(engine).defaults.memory_share_option
    assert answer["memory"]["memory_share_option"] == option
    assert answer["num_sequences"] > 40


def test_defaults_of_the_profile_are_assumed() -> None:
    _, out, _ = capplan("kv", "--hardware", "h100-sxm-80gb", "--json")
    options = {item["option"]: item["value"] for item in json.loads(out)["assumptions"]}
    assert options["--max-num-seqs"] == "1,024"
    assert options["--max-num-batched-tokens"] == "8,192 tokens"
    assert options["--gpu-memory-utilization"] == "92 %"
    assert options["--block-size"] == "16 tokens"
    assert "--engine, --engine-version" in options


def test_the_screen_says_what_the_numbers_are_not() -> None:
    line = "kv --model qwen3.5-27b --hardware h100-sxm-80gb --engine-version"
    for version, rule in (("0.33", "concurrency at the maximum length"), ("0.18", "as if each")):
        shown = " ".join(capplan(*line.split(), version, people=True)[1].split())
        assert f"The log's size is {rule}" in shown
    line = "kv --hardware h100-sxm-80gb --tp 8 --context 1024"
    shown = " ".join(capplan(*line.split(), people=True)[1].split())
    assert "the engine runs 1,024 requests at once (--max-num-seqs)" in shown


# Degrees


def test_latent_and_attention_are_replicated_and_experts_spread() -> None:
    model = load_model("deepseek-v3").spec
    whole, tensor = loaded_weights(model), loaded_weights(model, 8)
    spread = loaded_weights(model, 1, dp=8)
    # 256 experts over 8 ranks; attention, dense layers and vocabulary on each.
    assert tensor.total_bytes < spread.total_bytes < whole.total_bytes / 6
    one = result("kv --model deepseek-v3 --hardware h200-sxm-141gb --tp 8")
    eight = result("kv --model deepseek-v3 --hardware h200-sxm-141gb --dp-attention 8")
    assert one["num_gpus"] == eight["num_gpus"] == 8
    assert one["kv_bytes_per_token_per_gpu"] == eight["kv_bytes_per_token_per_gpu"] == 70_272
    assert eight["num_sequences"] > 5 * one["num_sequences"]


def test_the_fullest_stage_decides() -> None:
    answer = result("kv --model deepseek-v3 --hardware h100-sxm-80gb --tp 8 --pp 4")
    stages = answer["stages"]
    assert [stage["num_layers"] for stage in stages] == [15, 15, 16, 15]
    assert [stage["decides"] for stage in stages] == [False, False, True, False]
    blocks = [stage["num_blocks"] for stage in stages]
    assert answer["sizing"]["num_blocks"] == min(blocks) == blocks[2]


def test_some_versions_check_the_whole_model_against_one_stage() -> None:
    """Start-up logs of 0.15 at PP 2 and PP 3 ask 24 GiB, all layers, of one rank."""
    line = "kv --model qwen3-30b-a3b-2507 --hardware l40s --dtype fp8 --pp 2"
    line += " --gpu-memory-utilization 0.8 --engine-version"
    strict, newest = result(f"{line} 0.15"), result(f"{line} 0.33")
    assert not strict["sizing"]["starts"]
    assert newest["sizing"]["starts"]
    half = strict["sizing"]["estimated_max_model_len"]
    assert half == pytest.approx(strict["kv_pool_bytes_per_gpu"] / (48 * 4 * 256 * 2), rel=1e-3)


def test_context_parallel_shares_the_latent() -> None:
    base = "kv --model deepseek-v3 --hardware h200-sxm-141gb --tp 8"
    alone, shared = result(base), result(f"{base} --dcp 8")
    assert shared["kv_bytes_per_token_per_gpu"] == alone["kv_bytes_per_token_per_gpu"] / 8
    assert 7.5 < shared["num_sequences"] / alone["num_sequences"] < 8.5


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("--model deepseek-v3 --tp 3", "128 attention heads", "1, 2, 4, 8"),
        ("--model deepseek-v3 --hardware gb200-nvl72 --tp 32",
         "groups of 128 do not divide", "1, 2, 4, 8, 16"),
        ("--model llama-3.1-8b --pp 33", "32 layers", "--pp 32"),
        ("--model llama-3.1-8b --dp-attention 2", "has none", "leave it out"),
        ("--model llama-3.1-8b --tp 4 --dcp 2", "8 KV heads 1 time over 4 GPUs", "leave out"),
        ("--model gpt-oss-20b --tp 8 --dcp 2", "sliding windows", "leave out"),
        ("--engine vlm", "unknown engine", "vllm"),
        ("--engine-version 0.99", "no profile", "0.33"),
    ],
)  # fmt: skip
def test_what_does_not_divide_is_named(line: str, message: str, hint: str) -> None:
    code, _, err = capplan("kv", *line.split())
    assert code == 2
    assert message in err
    assert hint in err


def test_groups_of_a_quantisation_divide_or_are_named() -> None:
    qwen = load_model("qwen2.5-7b").spec
    assert group_fault(qwen, 4, WeightEdition("int4")) is None
    fault = group_fault(qwen, 8, WeightEdition("int4"))
    assert fault is not None
    assert "3,584 inputs of o_proj leave 448 a GPU" in fault
    deepseek = load_model("deepseek-v3").spec
    assert group_fault(deepseek, 16, WeightEdition()) is None
    assert group_fault(deepseek, 32, WeightEdition()) is not None


def test_possible_degrees_have_no_fault() -> None:
    hardware = load_hardware("h100-sxm-80gb").spec
    for name in ("llama-3.1-70b", "deepseek-v3", "gpt-oss-120b", "qwen3.5-27b"):
        model = load_model(name).spec
        engine = KvEngine(load_engine(), None, "bf16")
        tps = possible_tps(model, hardware, engine)
        assert tps[0] == 1
        assert all(split_fault(model, engine, tp) is None for tp in tps)


# Advice


@pytest.mark.parametrize(
    "line",
    [
        "--model llama-3.1-70b --hardware h100-sxm-80gb",
        "--model llama-3.1-70b --hardware h100-sxm-80gb --tp 2",
        "--model gpt-oss-120b --hardware h100-sxm-80gb",
        "--model gemma-3-27b --hardware h100-sxm-80gb",
        "--model deepseek-v3 --hardware h100-sxm-80gb --tp 8",
        "--model llama-3.1-8b --hardware l4",
        "--model mixtral-8x7b --hardware h100-sxm-80gb --reserve 3GB",
    ],
)
def test_advice_that_is_followed_fits(line: str) -> None:
    before = result(f"kv {line}")
    assert 1 <= len(before["advice"]) <= 4
    held = before["num_sequences"] > 0
    for item in before["advice"]:
        words = line.split()
        new = [item["option"], *item["value"].split()]
        for name in new[::2]:
            if name in words:
                at = words.index(name)
                words = words[:at] + words[at + 2 :]
        after = result(f"kv {' '.join([*words, *new])}")
        assert after["num_sequences"] > 0, item
        assert after["sizing"]["starts"] or not held, item


def test_the_smallest_number_of_gpus_is_named() -> None:
    advice = result("kv --model llama-3.1-70b --hardware h100-sxm-80gb")["advice"]
    assert ("--tp", "2") in [(item["option"], item["value"]) for item in advice]
    assert not result("kv --model llama-3.1-70b --hardware h100-sxm-80gb --tp 4")["advice"]


# Logs


def write(tmp_path: Path, text: str | bytes) -> str:
    path = tmp_path / "start-up.log"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def logged(path: str, *more: str) -> dict[str, Any]:
    code, out, err = capplan("kv", "--engine-log", path, "--json", *more)
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_a_log_gives_model_gpu_and_flags(tmp_path: Path) -> None:
    answer = logged(write(tmp_path, VLLM_V1))
    inputs, log = answer["inputs"], answer["result"]["log"]
    assert (inputs["model"], inputs["hardware"]) == ("llama-3.1-8b", "h100-sxm-80gb")
    assert (inputs["engine_version"], inputs["max_model_len"]) == ("0.19.0", 8192)
    terms = {term["name"]: term for term in log["terms"]}
    assert terms["weights"]["predicted"] == pytest.approx(terms["weights"]["logged"], rel=1e-3)
    assert terms["KV pool"]["predicted"] == pytest.approx(terms["KV pool"]["logged"], rel=1e-3)
    assert abs(terms["tokens of the logged pool"]["difference"]) <= 48
    assert log["differs_most"] in ("activation peak", "weights", "non-torch")
    code, shown, _ = capplan("kv", "--vllm-log", write(tmp_path, VLLM_V1), people=True)
    assert code == 0
    assert "The term that differs most is" in shown
    assert "from the log" in shown


@pytest.mark.parametrize(("text", "longest"), [
    ("ValueError: The model's max seq len (56000) is larger than the maximum number of tokens "
     "that can be stored in KV cache (43328).", 43328),
    (REFUSED, 12768), (VLLM_V0, None),
])  # fmt: skip
def test_a_refusal_says_what_is_admitted(tmp_path: Path, text: str, longest: int | None) -> None:
    path = write(tmp_path, text)
    found = logged(path, "--model", "llama-3.1-8b")["result"]["log"]["longest_admitted_tokens"]
    assert found == longest
    _, shown, _ = capplan("kv", "--engine-log", path, "--model", "llama-3.1-8b", people=True)
    assert ("the engine did not start" in shown) is (longest is not None)


def test_an_engine_that_takes_prompts_whole_is_advised_a_shorter_context() -> None:
    """vLLM 0.5.3 and 405B on one node (vllm-project/vllm#6746): refused at its own context, and
    fewer batched tokens than the longest prompt are refused as well."""
    line = ["kv", "--model", "llama-3.1-405b-fbgemm-fp8", "--hardware", "h100-sxm-80gb",
            "--tp", "8", "--json", "--engine-version"]  # fmt: skip
    result = json.loads(capplan(*line, "0.5.3")[1])["result"]
    options = [one["option"] for one in result["advice"]]
    assert options[0] == "--max-model-len"
    assert "--max-num-batched-tokens" not in options
    shorter = capplan(*line, "0.5.3", "--max-model-len", result["advice"][0]["value"])
    assert json.loads(shorter[1])["result"]["sizing"]["starts"]
    assert json.loads(capplan(*line, "0.5.4")[1])["result"]["sizing"]["starts"]


def test_what_is_given_goes_before_the_log(tmp_path: Path) -> None:
    answer = logged(write(tmp_path, VLLM_V1), "--tp", "2", "--hardware", "a100-sxm-80gb")
    assert (answer["inputs"]["tp"], answer["inputs"]["hardware"]) == (2, "a100-sxm-80gb")


@pytest.mark.parametrize(("text", "hardware"), [
    (VLLM_V0, "h200-sxm-141gb"), (REFUSED, "l4"), (SGLANG, "h200-sxm-141gb"),
    (TENSORRT, "a100-sxm-40gb"),
])  # fmt: skip
def test_logs_of_every_engine(tmp_path: Path, text: str, hardware: str) -> None:
    path = write(tmp_path, text)
    code, _, err = capplan("kv", "--engine-log", path)
    assert code == 2  # the logs name no model that is known
    assert "--model" in err
    answer = logged(path, "--model", "llama-3.1-8b", "--hardware", hardware)
    assert answer["result"]["log"]["terms"]


def test_a_refusal_is_explained(tmp_path: Path) -> None:
    path = write(tmp_path, REFUSED)
    found = logged(
        path, "--model", "deepseek-r1-distill-qwen-32b", "--tp", "4", "--hardware", "l40s"
    )
    assert found["inputs"]["max_model_len"] == 32_768
    terms = {term["name"]: term for term in found["result"]["log"]["terms"]}
    assert terms["KV of the longest request"]["predicted"] == 2 * GIB
    assert terms["KV of the longest request"]["difference"] == 0


def test_colours_cut_lines_and_two_runs(tmp_path: Path) -> None:
    plain = logged(write(tmp_path, VLLM_V1))["result"]["log"]
    coloured = VLLM_V1.replace("INFO", "\x1b[32mINFO\x1b[0m")
    assert logged(write(tmp_path, coloured))["result"]["log"] == plain
    cut = VLLM_V1[: VLLM_V1.index("58.11 GiB") + 2]
    log = logged(write(tmp_path, cut))["result"]["log"]
    assert [line for line in log["unread"] if line.startswith("pool")]
    assert "KV pool" not in [term["name"] for term in log["terms"]]
    second = VLLM_V1.replace("58.11 GiB", "50.00 GiB")
    log = logged(write(tmp_path, VLLM_V1 + second))["result"]["log"]
    assert log["num_runs"] == 2
    pool = next(term for term in log["terms"] if term["name"] == "KV pool")
    assert pool["logged"] == 50 * GIB


@pytest.mark.parametrize(
    "data",
    [b"", b"\n\n", b"hello\n" * 100, bytes(range(256)) * 20, b"\0" * 1_000,
     b"INFO Available KV cache memory: 5"],
    ids=["empty", "blank", "prose", "random", "zeros", "cut"],
)  # fmt: skip
def test_logs_that_say_nothing_are_refused(tmp_path: Path, data: bytes) -> None:
    path = write(tmp_path, data)
    code, out, err = capplan("kv", "--engine-log", path)
    assert (code, out) == (2, "")
    assert "no figure of an engine's memory can be read" in err
    assert f"--> {path}" in err


# Lengths


def test_lengths_from_files(tmp_path: Path) -> None:
    lines = tmp_path / "lengths.txt"
    lines.write_text("35\n12\n# longest\n\n1k\n")
    assert result(f"kv --lengths @{lines}")["lengths_total_tokens"] == 1047
    trace = tmp_path / "trace.csv"
    trace.write_text("time,total\n0.1,100\n0.2,200\n")
    answer = result(f"kv --lengths @{trace}:total")
    assert (answer["num_lengths"], answer["lengths_total_tokens"]) == (2, 300)
    assert [row["block_size"] for row in answer["blocks"]] == [8, 16, 32, 64, 128, 256]


@pytest.mark.parametrize(
    ("content", "column", "line", "message"),
    [
        ("35\nfoo\n", "", 2, "`foo` is not a number of tokens"),
        ("35\n0\n", "", 2, "is zero"),
        ("a,b\n1,2\n3,\n", ":b", 3, "not a number of tokens"),
        ("a,b\n1,2\n", ":c", 1, "no column `c`"),
        ("9" * 30, "", 1, "more than"),
    ],
)
def test_faults_in_files_of_lengths_have_a_line(
    tmp_path: Path, content: str, column: str, line: int, message: str
) -> None:
    path = tmp_path / ("trace.csv" if column else "lengths.txt")
    path.write_text(content)
    code, _, err = capplan("kv", "--lengths", f"@{path}{column}")
    assert code == 2
    assert message in err
    assert f"--> {path}:{line}" in err


def test_static_holds_fewer_requests_than_paged() -> None:
    answer = result("kv --lengths lognormal:1280,0.8")
    paged = {row["block_size"]: row["num_requests"] for row in answer["blocks"]}
    assert answer["num_static_requests"] < paged[256] < paged[16]
    ratio = paged[16] / answer["num_static_requests"]
    gained = answer["blocks"][1]["paged_utilisation"] / answer["static_utilisation"]
    assert ratio == pytest.approx(gained, rel=0.03)


def test_a_plot_is_drawn_once(tmp_path: Path) -> None:
    path = tmp_path / "blocks.svg"
    assert capplan("kv", "--plot", str(path))[0] == 0
    assert "<svg" in path.read_text(encoding="utf-8")
    code, _, err = capplan("kv", "--plot", str(path))
    assert code == 2
    assert "the file exists" in err
