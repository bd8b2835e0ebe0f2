"""Measured rows: what is read, what is assumed, and what a client of the simulated server sees."""

from __future__ import annotations

import csv
import json
import random
import statistics
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from commands import ROOT, run_command

from capplan.accuracy.emulate import emulate
from capplan.accuracy.engines import engine_of
from capplan.accuracy.load import load_of
from capplan.accuracy.measured import MeasuredRun, read_measured
from capplan.accuracy.names import hardware_of, model_of
from capplan.accuracy.predict import predict
from capplan.accuracy.report import assumed
from capplan.accuracy.score import Pair, summary
from capplan.accuracy.server import server_of
from capplan.accuracy.settings import settings_of
from capplan.errors import CapplanError
from capplan.specs.calibration import CalibrationSpec

OWN = ROOT / "tests" / "data" / "measured_runs.csv"
SHARED = ROOT.parent / "shared"
TABLE = SHARED / "data" / "measured" / "measured_calib.csv"
shared_table = pytest.mark.skipif(not TABLE.exists(), reason="the measured table is not here")

PLAIN = {
    "id": "row", "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "H100-SXM",
    "workload": "closed", "engine": "vLLM", "engine_version": "0.11.0", "num_gpus": "1",
    "tp": "1", "isl": "512", "osl": "64", "concurrency": "4", "num_prompts": "40",
    "range_ratio": "1.0", "tpot_mean_ms": "8",
}  # fmt: skip


def row(tmp_path: Path, **cells: str) -> MeasuredRun:
    """A row of these cells over a plain one."""
    path = tmp_path / "runs.csv"
    with path.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, [*PLAIN, *(name for name in cells if name not in PLAIN)])
        writer.writeheader()
        writer.writerow(PLAIN | cells)
    return read_measured(path)[0]


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text(text, encoding="utf-8")
    return path


# Reading.


def test_unknown_cells_are_none(tmp_path: Path) -> None:
    run = row(tmp_path, isl="", engine_version="nan", max_num_batched_tokens="default")
    assert (run.isl, run.engine_version, run.max_num_batched_tokens) == (None, "", None)
    assert run.metrics == {"tpot_mean_ms": 8.0}


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"isl": "many"}, "column `isl`: `many`: is not a number"),
        ({"tp": "1.5"}, "column `tp`: `1.5`: is not a whole number"),
        ({"osl": "-3"}, "column `osl`: `-3`: must be a number from 0 up"),
        ({"workload": "closd"}, "column `workload`: `closd`: did you mean `closed`?"),
        ({"gpu": ""}, "column `gpu`: ``: must be given"),
    ],
)
def test_a_cell_that_cannot_be_read_is_named(
    tmp_path: Path, cells: dict[str, str], said: str
) -> None:
    with pytest.raises(CapplanError) as caught:
        row(tmp_path, **cells)
    assert caught.value.message == said
    assert caught.value.location is not None
    assert caught.value.location.line == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "column `id` is missing"),
        ("id,model,gpu,workloads\n", "column `workload` is missing"),
        ("id,model,gpu,workload\n", "holds no rows"),
        ("id,model,gpu,workload,tp,tp\n", "column `tp` stands twice"),
        ("id,model,gpu,workload\na,b,c,closed,5\n", "more cells than the header has columns"),
        ("id,model,gpu,workload\na,b,c,closed\na,b,c,closed\n", "also line 2"),
    ],
)
def test_a_table_that_cannot_be_read_is_an_error(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(CapplanError, match=said):
        read_measured(write(tmp_path, text))


def test_client_made_queues_are_scored_on_rates_only(tmp_path: Path) -> None:
    run = row(tmp_path, workload="burst", ttft_mean_ms="900", output_tok_s="100")
    assert set(run.scored) == {"output_tok_s"}


# Names.


@pytest.mark.parametrize(
    ("name", "dtype", "params_b", "found"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "bf16", "8.03", "llama-3.1-8b"),
        ("LLAMA-3.1-8B-INSTRUCT", "", "", "llama-3.1-8b"),
        ("meta-llama/Llama-3.1-70B", "fp8", "70.55", "llama-3.1-70b-fp8"),
        ("meta-llama/Llama-3.1-70B", "fp4", "70.55", "llama-3.1-70b-nvfp4"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "fp8", "8.03", "llama-3.1-8b-fp8"),
        ("openai/gpt-oss-120b", "fp4", "116.8", "gpt-oss-120b"),
        ("Qwen/Qwen3-32B-AWQ", "int4", "32.8", "qwen3-32b-int4"),
        ("nvidia/Nemotron-Nano-30B (exact HF id not shown)", "fp8", "31.6",
         "nemotron-3-nano-30b-a3b"),
    ],
)  # fmt: skip
def test_models_by_name(tmp_path: Path, name: str, dtype: str, params_b: str, found: str) -> None:
    run = row(tmp_path, model=name, weight_dtype=dtype, params_b=params_b)
    assert model_of(run).found.id == found


def test_a_model_of_another_size_is_not_taken(tmp_path: Path) -> None:
    run = row(tmp_path, model="acme/Nemotron-Nano-30B", params_b="41")
    with pytest.raises(CapplanError, match="unknown model"):
        model_of(run)
    assert predict(run).reason == "unknown model `acme/Nemotron-Nano-30B`"


def test_weights_that_are_converted_are_said_to_be(tmp_path: Path) -> None:
    run = row(tmp_path, model="meta-llama/Llama-2-70b-hf", weight_dtype="fp8", tp="8",
              num_gpus="8")  # fmt: skip
    named = model_of(run)
    assert (named.found.id, named.dtype) == ("llama-2-70b", "fp8")
    assert named.notes == ("weights converted from fp16 to fp8",)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("H100-SXM", "h100-sxm-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm-80gb"),
        ("B200", "b200-sxm-180gb"),
        ("A100-80GB-PCIe", "a100-pcie-80gb"),
        ("MI300X (OAM)", "mi300x"),
    ],
)
def test_accelerators_by_name(tmp_path: Path, name: str, found: str) -> None:
    assert hardware_of(row(tmp_path, gpu=name)).id == found


# Settings.


@pytest.mark.parametrize(
    ("engine", "version", "date", "kind", "scheduler", "first"),
    [
        ("vLLM", "0.7.3", "", "vllm", "vllm-v0", "0.5.4"),
        ("vLLM", "0.11.0", "", "vllm", "vllm-v1", "0.8.5"),
        ("vLLM", "", "2024-10", "vllm", "vllm-v0", "0.5.4"),
        ("vLLM (ROCm)", "0.9.1", "", "vllm", "vllm-v1", "0.8.5"),
        ("vLLM", "vLLM 0.4.3+rocm614, PyTorch 2.3.0", "2024-08", "vllm", "vllm-v0", "0.1"),
        ("TensorRT-LLM", "TensorRT 10.2.0, CUDA 12.4", "2024-08-28", "tensorrt-llm",
         "tensorrt-llm", "0.9"),
        ("NIM (TensorRT-LLM)", "1.8.0", "2025", "tensorrt-llm", "tensorrt-llm", "0.9"),
        ("SGLang", "0.5.9", "", "sglang", "sglang", "0.5.3"),
        ("TGI", "2.0.4", "", "tgi", "tgi", "0.1"),
        ("LMDeploy TurboMind", "0.2.0", "", "turbomind", "turbomind", "0.1"),
    ],
)  # fmt: skip
def test_engines_by_name_version_and_date(
    tmp_path: Path, engine: str, version: str, date: str, kind: str, scheduler: str, first: str
) -> None:
    run = row(tmp_path, engine=engine, engine_version=version, source_date=date)
    found = engine_of(run)
    assert (found.kind, found.scheduler) == (kind, scheduler)
    assert found.profile.versions.first == first


def test_flags_that_an_engine_does_not_have_name_another(tmp_path: Path) -> None:
    cells = {"engine": "SGLang", "engine_version": "0.5.9", "source_date": "2026-03-20"}
    found = engine_of(row(tmp_path, notes="server: --max-num-batched-tokens=24576", **cells))
    assert (found.kind, found.version, len(found.notes)) == ("vllm", None, 2)
    own = engine_of(row(tmp_path, notes="server: --context-length=32768", **cells))
    assert own.kind == "sglang"


def test_what_is_stated_is_not_assumed(tmp_path: Path) -> None:
    bare = settings_of(row(tmp_path))
    stated = settings_of(
        row(tmp_path, max_num_seqs="64", kv_dtype="fp8", gpu_memory_fraction="0.8")
    )
    assert (stated.max_num_seqs, stated.kv_dtype, stated.memory_share) == (64, "fp8", 0.8)
    columns = {a.option for a in bare.assumptions} - {a.option for a in stated.assumptions}
    assert columns == {"max_num_seqs", "kv_dtype", "gpu_memory_fraction"}


def test_an_unknown_degree_is_the_least_that_fits(tmp_path: Path) -> None:
    """MLPerf logs state GPUs only; NVIDIA's 8 x H100 ran Llama-2-70B in FP8 as 4 x TP2."""
    cells = {"model": "meta-llama/Llama-2-70b-chat-hf", "weight_dtype": "fp8", "tp": "",
             "num_gpus": "8"}  # fmt: skip
    settings = settings_of(row(tmp_path, **cells))
    assert (settings.tp, settings.num_replicas) == (2, 4)
    wide = settings_of(row(tmp_path, **(cells | {"gpu": "H200-SXM"})))
    assert (wide.tp, wide.num_replicas) == (1, 8)


def test_copies_of_the_attention(tmp_path: Path) -> None:
    cells = {"model": "deepseek-ai/DeepSeek-R1", "weight_dtype": "fp8", "num_gpus": "8",
             "gpu": "H200-SXM", "attention_dp": "on (documented template)"}  # fmt: skip
    for tp in ("8", ""):
        settings = settings_of(row(tmp_path, tp=tp, **cells))
        assert (settings.tp, settings.dp, settings.ep) == (1, 8, 8)


def test_copies_of_the_attention_need_their_number(tmp_path: Path) -> None:
    """SGLang's server_args.py turns the flag off where `dp_size` is 1, the default."""
    cells = {"model": "deepseek-ai/DeepSeek-R1", "gpu": "H200-SXM", "engine": "SGLang",
             "engine_version": "0.5.3", "num_gpus": "8", "tp": "8",
             "attention_dp": "on"}  # fmt: skip
    without = settings_of(row(tmp_path, notes="server: --tp 8 --enable-dp-attention", **cells))
    assert (without.tp, without.dp) == (8, 1)
    number = "server: --tp-size 8 --dp-size 8 --enable-dp-attention"
    assert settings_of(row(tmp_path, notes=number, **cells)).dp == 8
    assert settings_of(row(tmp_path, **cells)).dp == 8


def test_a_pipeline_has_a_gpu_a_stage(tmp_path: Path) -> None:
    settings = settings_of(row(tmp_path, num_gpus="1", tp="", pp="2"))
    assert (settings.tp, settings.pp, settings.num_replicas) == (1, 2, 1)


def test_formats_without_tensor_cores_are_weight_only(tmp_path: Path) -> None:
    run = row(tmp_path, gpu="A100-80GB-SXM", weight_dtype="fp8")
    assert settings_of(run).dtype == "fp8-weight-only"


# Loads.


def test_uniform_lengths(tmp_path: Path) -> None:
    load = load_of(row(tmp_path, range_ratio="0.8", isl="1000", num_prompts="2000"))
    prompts = [prompt for prompt, _ in load.lengths()]
    assert min(prompts) >= 800
    assert max(prompts) <= 1000
    assert statistics.fmean(prompts) == pytest.approx(900, rel=0.01)
    assert load.mean_prompt_tokens == pytest.approx(900)


def test_chats_have_the_mean_that_was_measured(tmp_path: Path) -> None:
    run = row(tmp_path, dataset="ShareGPT", range_ratio="", isl="217", osl="190",
              num_prompts="20000")  # fmt: skip
    lengths = load_of(run).lengths()
    assert statistics.fmean(p for p, _ in lengths) == pytest.approx(217, rel=0.02)
    assert statistics.fmean(o for _, o in lengths) == pytest.approx(190, rel=0.02)
    assert max(o for _, o in lengths) < 1024


@pytest.mark.parametrize("num", ["1", "8", "300"])
def test_few_chats_have_the_counted_mean_too(tmp_path: Path, num: str) -> None:
    """The row's means were counted over what was sent: a draw of few does not change them."""
    run = row(tmp_path, dataset="ShareGPT", range_ratio="", isl="217", osl="190", num_prompts=num)
    for seed in range(3):
        lengths = load_of(run).lengths(seed)
        assert statistics.fmean(o for _, o in lengths) == pytest.approx(190, abs=1)
        assert statistics.fmean(p for p, _ in lengths) == pytest.approx(217, abs=1)


def test_a_closed_loop_sends_ten_requests_a_client(tmp_path: Path) -> None:
    load = load_of(row(tmp_path, num_prompts="", concurrency="64"))
    assert load.num_requests == 640
    assert [a.option for a in load.assumptions] == ["num_prompts"]


# What the client sees.


def test_one_client_waits_for_prefill_and_then_for_steps(tmp_path: Path) -> None:
    run = row(tmp_path, concurrency="1", num_prompts="10")
    settings = settings_of(run)
    server = server_of(settings)
    found = emulate(settings, load_of(run), server).metrics
    prefill = server.steps.mixed(0, 0, [(512, 0)])
    ttft = 1e3 * (prefill + server.front_end_s(512))
    assert found["ttft_mean_ms"] == pytest.approx(ttft, rel=1e-6)
    steps = [1e3 * _decode_s(server.steps.line, 1, 512 + n) for n in range(1, 64)]
    assert found["tpot_mean_ms"] == pytest.approx(statistics.fmean(steps), rel=1e-6)
    assert found["req_s"] == pytest.approx(1e3 / found["e2e_mean_ms"], rel=1e-3)


def _decode_s(line: object, num: int, context: int) -> float:
    base, slope, _ = line(num, context)  # type: ignore[operator]
    return float(base + slope * context)


@pytest.mark.parametrize(("concurrency", "engine"), [("4", "vLLM"), ("32", "SGLang")])
def test_littles_law_of_a_closed_loop(tmp_path: Path, concurrency: str, engine: str) -> None:
    run = row(tmp_path, engine=engine, engine_version="", concurrency=concurrency,
              num_prompts=str(100 * int(concurrency)))  # fmt: skip
    settings = settings_of(run)
    found = emulate(settings, load_of(run), server_of(settings)).metrics
    inside = found["req_s"] * found["e2e_mean_ms"] / 1e3
    assert inside == pytest.approx(int(concurrency), rel=0.03)


def test_a_slow_stream_is_served_as_if_alone(tmp_path: Path) -> None:
    alone = predict(row(tmp_path, concurrency="1", num_prompts="100")).metrics
    slow = predict(
        row(tmp_path, workload="constant-rate", request_rate_qps="0.1", num_prompts="100")
    ).metrics
    for name in ("ttft_p50_ms", "tpot_mean_ms"):
        assert slow[name] == pytest.approx(alone[name], rel=1e-6)


def test_what_delays_the_first_token(tmp_path: Path) -> None:
    """`batch_wait_timeout_iters` 20 on InferenceX's TensorRT-LLM 70B runs: 12 to 21 steps."""
    cells = {"engine": "TensorRT-LLM", "engine_version": "1.0", "concurrency": "8",
             "range_ratio": "0.8", "isl": "1024", "osl": "1024", "num_prompts": "80"}  # fmt: skip
    free = predict(row(tmp_path, **cells)).metrics
    held = predict(
        row(tmp_path, **cells, batch_wait_timeout_iters="20", batch_wait_max_tokens_ratio="0.9",
            max_num_batched_tokens="16384")
    ).metrics  # fmt: skip
    steps = (held["ttft_mean_ms"] - free["ttft_mean_ms"]) / held["tpot_mean_ms"]
    assert 12 < steps < 21


def test_replicas_share_the_load(tmp_path: Path) -> None:
    one = predict(row(tmp_path, concurrency="4", num_prompts="40")).metrics
    two = predict(row(tmp_path, concurrency="8", num_prompts="80", num_gpus="2")).metrics
    assert two["output_tok_s"] == pytest.approx(2 * one["output_tok_s"])
    assert two["tpot_mean_ms"] == pytest.approx(one["tpot_mean_ms"])


def test_a_run_that_took_place_had_room(tmp_path: Path) -> None:
    run = row(tmp_path, isl="120000", osl="100", gpu="L4", concurrency="1", num_prompts="2")
    assert predict(run).reason is None


# Scores.


def test_errors_are_counted_as_stated(tmp_path: Path) -> None:
    run = row(tmp_path)
    pairs = [Pair(run, "x", 10.0, predicted) for predicted in (8.0, 11.0, 15.0, None)]
    found = summary("x", pairs)
    assert (found.num_measured, found.num_compared, found.coverage_fraction) == (4, 3, 0.75)
    assert found.median_error_fraction == pytest.approx(0.2)
    assert found.mean_error_fraction == pytest.approx(0.8 / 3)
    assert found.p90_error_fraction == pytest.approx(0.44)
    assert found.bias_ratio == pytest.approx(1.1)


@shared_table
def test_the_same_scores_as_the_judges_tool(tmp_path: Path) -> None:
    tool = SHARED / "tools" / "score_predictions.py"
    sample = tmp_path / "sample.csv"
    with TABLE.open(newline="") as handle:
        reader = csv.DictReader(handle)
        rows = random.Random(1).sample(list(reader), 60)
    with sample.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, reader.fieldnames or [])
        writer.writeheader()
        writer.writerows(rows)
    out = tmp_path / "out.csv"
    _, text = run_command(f"accuracy {sample} --worst 0 --jobs 1 --json")
    ours = {entry["name"]: entry for entry in json.loads(text)["result"]["metrics"]}
    run_with_predictions(sample, out)
    scored = subprocess.run(
        [sys.executable, tool, sample, out, "--json"], capture_output=True, text=True, check=True
    )
    theirs = json.loads(scored.stdout)
    assert {entry["metric"] for entry in theirs} == set(ours)
    for entry in theirs:
        found = ours[entry["metric"]]
        assert found["median_error_fraction"] == pytest.approx(entry["median_ape"], rel=1e-4)
        assert found["p90_error_fraction"] == pytest.approx(entry["p90_ape"], rel=1e-4)
        assert found["coverage_fraction"] == pytest.approx(entry["coverage"])
        assert found["bias_ratio"] == pytest.approx(entry["bias"], rel=1e-4)


def run_with_predictions(measured: Path, out: Path) -> None:
    import io

    from capplan.cli.environment import Environment
    from capplan.cli.run import run

    quiet = Environment(io.StringIO(), io.StringIO(), 80, is_terminal=False, colour=False)
    assert run(["accuracy", str(measured), "--predictions", str(out), "--jobs", "1"], quiet) == 0


def test_processes_change_nothing() -> None:
    runs = [run for run in read_measured(OWN) if run.id != "offline"]
    many = [replace(run, id=f"{run.id} {n}") for n in range(12) for run in runs]
    from capplan.accuracy.predict import predict_all

    one, two = predict_all(many, 1), predict_all(many, 2)
    assert one == two


def test_columns_and_folders_that_do_not_exist_are_named() -> None:
    import io

    from capplan.cli.environment import Environment
    from capplan.cli.run import run

    err = io.StringIO()
    env = Environment(io.StringIO(), err, 80, is_terminal=False, colour=False)
    assert run(["accuracy", str(OWN), "--predictions", "no/such/place.csv"], env) == 2
    assert err.getvalue().startswith("error: there is no such folder\n  --> no/such\n")
    err.truncate(err.seek(0))
    assert run(["accuracy", str(OWN), "--by", "gpus"], env) == 2
    assert err.getvalue().startswith("error: no column `gpus`\nhint: did you mean `gpu`?")


def test_a_calibration_is_of_one_accelerator(tmp_path: Path) -> None:
    """Rows on others are not predicted with it, and the row says why."""
    factor = {"value": 0.5, "low": 0.4, "high": 0.6, "identified": True}
    nothing = {"value": 0.0, "low": -1.0, "high": 1.0, "identified": False}
    fitted = CalibrationSpec.model_validate(
        {
            "schema": "capplan.calibration/1", "hardware": "h100-sxm-80gb", "engine": "vllm",
            "models": ["llama-3.1-8b"], "tp": [1], "runs": 10, "compute": factor,
            "bandwidth": factor, "collective_latency": factor, "step_us": nothing,
            "sequence_us": nothing, "errors": {"before": 0.5, "after": 0.1, "left_out": 0.2},
        }
    )  # fmt: skip
    here, there = row(tmp_path), row(tmp_path, gpu="H200-SXM")
    slower = predict(here, fitted).metrics["tpot_mean_ms"] / predict(here).metrics["tpot_mean_ms"]
    assert 1.2 < slower < 2.0
    reason = predict(there, fitted).reason
    assert reason == "--calibration is of h100-sxm-80gb, this is h200-sxm-141gb"
    # What it was made for is taken as it is; of what it was not made for, the row says so.
    others = [predict(one, fitted) for one in (here, row(tmp_path, model="Qwen/Qwen3-8B"))]
    said = [one for one in assumed(o.assumptions for o in others) if one.option[0] == "-"]
    assert [(one.what, one.value, one.option) for one in said] == [
        (
            "calibration of another server, 1 row",
            "of llama-3.1-8b, not qwen3-8b: bands are not narrowed",
            "--calibration",
        )
    ]
