"""Calibration: known servers are found again, outliers held back, noise never written."""

from __future__ import annotations

import csv
import io
import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from capplan.accuracy.calibrate import PRIORS, fit
from capplan.accuracy.calibration_report import described
from capplan.accuracy.calibration_runs import CalibrationRuns, gather
from capplan.accuracy.emulate import emulate
from capplan.accuracy.load import load_of
from capplan.accuracy.measured import MeasuredRun, read_measured
from capplan.accuracy.server import server_of
from capplan.accuracy.settings import settings_of
from capplan.cli.environment import Environment
from capplan.cli.run import run
from capplan.errors import CapplanError
from capplan.performance.calibration import (
    UNCALIBRATED,
    Calibration,
    calibration_of,
    check_calibration,
)
from capplan.render.calibrate import screen
from capplan.results.calibration import CalibrateInputs
from capplan.specs.calibration import load_calibration

SCHEMAS = Path(__file__).resolve().parent.parent / "docs" / "schemas"
COLUMNS = (
    "id", "model", "gpu", "num_gpus", "tp", "engine", "engine_version", "workload", "concurrency",
    "request_rate_qps", "num_prompts", "isl", "osl", "tpot_mean_ms", "ttft_mean_ms",
    "output_tok_s",
)  # fmt: skip
# (TP, concurrency, prompt, output): loads that tell the parameters apart.
LOADS = [
    (1, 1, 128, 64), (1, 16, 512, 64), (1, 128, 256, 64), (1, 32, 2048, 16), (1, 64, 1024, 32),
    (2, 1, 128, 64), (2, 64, 512, 48), (4, 1, 128, 64), (4, 128, 1024, 32), (4, 8, 4096, 16),
]  # fmt: skip
TRUE = Calibration(
    compute=0.85, bandwidth=0.93, collective_latency=1.5, step_s=8e-4, sequence_s=5e-6
)


def _table(folder: Path, truth: Calibration, noise: float = 0.0) -> Path:
    """What a server of this kind would measure, with log-normal noise."""
    path = folder / "runs.csv"
    rng = random.Random(1)
    blank = dict.fromkeys(COLUMNS, "")
    rows = []
    for index, (tp, concurrency, prompt, output) in enumerate(LOADS):
        cells = blank | {
            "id": f"run-{index}", "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "H100-SXM",
            "num_gpus": str(tp), "tp": str(tp), "engine": "vLLM", "engine_version": "0.11.0",
            "workload": "closed", "concurrency": str(concurrency), "isl": str(prompt),
            "osl": str(output), "num_prompts": str(min(4 * concurrency, 200)),
        }  # fmt: skip
        rows.append(cells)
    _write(path, rows)
    for cells, one in zip(rows, read_measured(path), strict=True):
        settings = settings_of(one)
        metrics = emulate(settings, load_of(one), server_of(settings, truth)).metrics
        for name in ("tpot_mean_ms", "ttft_mean_ms", "output_tok_s"):
            cells[name] = repr(metrics[name] * math.exp(rng.gauss(0.0, noise)))
    _write(path, rows)
    return path


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def _runs(folder: Path, truth: Calibration, noise: float = 0.0) -> list[MeasuredRun]:
    return read_measured(_table(folder, truth, noise))


def test_a_known_server_is_found_again(tmp_path: Path) -> None:
    """Ten runs: what the data identify lies within its range, and errors on left-out runs fall."""
    found = fit(_runs(tmp_path, TRUE, noise=0.01))
    identified = [p for p in found.parameters if p.identified]
    assert len(identified) >= 2
    for parameter in identified:
        truth = getattr(TRUE, parameter.name)
        # The range is 80 % wide and priors pull towards 1: allow twice of it.
        assert parameter.low - (parameter.high - parameter.low) / 2 <= truth
        assert truth <= parameter.high + (parameter.high - parameter.low) / 2
    before, after = (
        sum(map(abs, errors)) for errors in (found.errors_before, found.errors_left_out)
    )
    assert after < 0.4 * before


def test_nothing_to_learn_is_nothing_learnt(tmp_path: Path) -> None:
    """A server that is as predicted stays as it is."""
    found = fit(_runs(tmp_path, UNCALIBRATED))
    assert found.calibration.compute == pytest.approx(1.0, abs=0.01)
    assert found.calibration.bandwidth == pytest.approx(1.0, abs=0.01)
    assert max(map(abs, found.errors_after)) < 0.01


def test_an_outlier_is_held_back(tmp_path: Path) -> None:
    runs = _runs(tmp_path, TRUE, noise=0.01)
    wrong = dict(runs[4].metrics) | {"output_tok_s": runs[4].metrics["output_tok_s"] / 3}
    found = fit([*runs[:4], replace(runs[4], metrics=wrong), *runs[5:]])
    clean = fit(runs)
    held = [
        figure.run
        for figure, weight in zip(found.figures, found.weights, strict=True)
        if weight < 0.5
    ]
    assert held == [4]
    assert found.calibration.compute == pytest.approx(clean.calibration.compute, rel=0.05)
    assert found.calibration.bandwidth == pytest.approx(clean.calibration.bandwidth, rel=0.05)


def test_late_first_tokens_are_watched_and_pull_nothing(tmp_path: Path) -> None:
    """P99 of TTFT three times of what is predicted: it is shown, the fit stays as it was."""
    runs = _runs(tmp_path, UNCALIBRATED)
    late = [
        replace(one, metrics={**one.metrics, "ttft_p99_ms": 3 * one.metrics["ttft_mean_ms"]})
        for one in runs
    ]
    plain, watched = fit(runs), fit(late)
    assert watched.calibration == plain.calibration
    result, _ = described(CalibrationRuns(tuple(late), (), ()), watched)
    assert [row.name for row in result.errors if not row.is_fitted] == ["TTFT P99"]
    assert result.errors[-1].num_figures == len(runs)
    assert result.total.num_figures == 3 * len(runs)
    note = screen(result, CalibrateInputs((), {}, None), ()).tables[0].note
    assert note is not None
    assert note.endswith("TTFT P99 is not fitted, and not in `all`.")


def test_what_nobody_predicts_is_named_and_left_out(tmp_path: Path) -> None:
    """Answers of one token have no TPOT, whatever a table says."""
    table = _table(tmp_path, TRUE)
    lines = table.read_text(encoding="utf-8").splitlines()
    cells = dict(zip(COLUMNS, lines[1].split(","), strict=True)) | {"osl": "1"}
    table.write_text("\n".join([lines[0], ",".join(cells.values()), *lines[2:]]) + "\n")
    code, out, err = _capplan("calibrate", str(table), "--json")
    assert code == 0, err
    answer = json.loads(out)
    remarks = [(r["run"], r["remark"]) for r in answer["result"]["remarks"]]
    assert (cells["id"], "tpot_mean_ms: nothing like it is predicted") in remarks
    counts = {row["name"]: row["num_figures"] for row in answer["result"]["errors"]}
    assert (counts["TPOT"], counts["TTFT"]) == (len(LOADS) - 1, len(LOADS))
    # What the table does not say of its servers is under Assumed.
    assert "--max-num-seqs" in [one["option"] for one in answer["assumptions"]]


def test_priors_speak_where_data_do_not(tmp_path: Path) -> None:
    """On one GPU nothing is learnt of collectives."""
    runs = [one for one in _runs(tmp_path, TRUE) if one.tp == 1]
    latency = next(p for p in fit(runs).parameters if p.name == "collective_latency")
    assert not latency.identified
    assert latency.value == pytest.approx(1.0, abs=1e-6)


def test_never_beyond_the_data_sheet(tmp_path: Path) -> None:
    """However large the factor, a prefill takes its FLOP at peak, a decode its bytes."""
    (one, *_) = _runs(tmp_path, UNCALIBRATED)
    settings = settings_of(one)
    model = server_of(settings, Calibration(compute=100.0, bandwidth=100.0, step_s=-1.0)).model
    weights = 2 * 8.03e9
    assert model.decode(1.0, model.uniform_reads(1.0, 128)).total_s > 0.9 * weights / 3.35e12


def _capplan(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = run(list(arguments), Environment(out, err, 100, is_terminal=False, colour=False))
    return code, out.getvalue(), err.getvalue()


def test_the_file_is_written_and_read(tmp_path: Path) -> None:
    target = tmp_path / "calibration.yaml"
    table = _table(tmp_path, TRUE, noise=0.01)
    code, out, err = _capplan("calibrate", str(table), "--output", str(target), "--json")
    assert code == 0, err
    answer = json.loads(out)
    schema = json.loads((SCHEMAS / "capplan.calibrate-1.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(answer)
    result: dict[str, Any] = answer["result"]
    spec = load_calibration(target)
    learnt = {p["name"]: p["value"] for p in result["parameters"]}
    loaded = calibration_of(spec)
    for name, _ in PRIORS:
        assert getattr(loaded, name) == pytest.approx(learnt[name], abs=1e-4)
    assert spec.hardware == "h100-sxm-80gb"
    # Of each kind of load the runs of each figure, and a server that is nearly as it was fitted.
    runs = [sum(b.runs for b in spec.bands if b.figure == f) for f in ("tpot", "ttft")]
    assert runs == [len(LOADS), len(LOADS)]
    assert all(0.8 < b.low <= 1 <= b.high < 1.25 for b in spec.bands)
    with pytest.raises(CapplanError, match="is of h100-sxm-80gb"):
        check_calibration(spec, "a100-sxm-80gb")
    again, _, err = _capplan("calibrate", str(table), "--output", str(target))
    assert again == 2
    assert "the file exists" in err


def test_noise_is_not_written(tmp_path: Path) -> None:
    """Runs that disagree by far with each other, and not with the model: no file, exit 1."""
    table = _table(tmp_path, UNCALIBRATED, noise=0.7)
    target = tmp_path / "calibration.yaml"
    code, _, err = _capplan("calibrate", str(table), "--output", str(target))
    if code == 0:  # the noise happened to look like a server: then it helps on left-out runs
        assert target.exists()
    else:
        assert code == 1
        assert "not written" in err
        assert not target.exists()


def test_what_a_file_does_not_say(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    summary = {
        "backend": "vllm", "model_id": "Qwen/Qwen3-8B", "num_prompts": 10, "request_rate": "inf",
        "max_concurrency": 4, "duration": 10.0, "completed": 10, "total_input_tokens": 1000,
        "total_output_tokens": 1000, "request_throughput": 1.0, "output_throughput": 100.0,
    }  # fmt: skip
    path.write_text(json.dumps(summary), encoding="utf-8")
    with pytest.raises(CapplanError, match="does not say its GPU") as caught:
        gather([path], {})
    assert caught.value.hint == "give --hardware"
    (found,) = gather([path], {"gpu": "h100"}).runs
    assert (found.gpu, found.isl, found.osl, found.concurrency) == ("h100", 100.0, 100.0, 4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--tp", "x"), "--tp: `x`: is not a number"),
        (("--prompt-tokens", "1kg"), "--prompt-tokens: `1kg` has an unknown unit, `kg`"),
        (("--workload", "close"), "--workload: `close`: did you mean `closed`?"),
        (("--output", "mine.json"), "--output writes .yaml and .yml files"),
    ],
)
def test_what_an_option_says_wrong_is_said_of_the_option(words: tuple[str, str], said: str) -> None:
    code, _, err = _capplan("calibrate", "any.csv", *words)
    assert code == 2
    assert err.startswith(f"error: {said}\n")
    assert "any.csv" not in err


def test_one_accelerator_at_a_time(tmp_path: Path) -> None:
    table = _table(tmp_path, UNCALIBRATED)
    other = tmp_path / "other.csv"
    other.write_text(table.read_text().replace("H100-SXM", "A100-SXM4-80GB"), encoding="utf-8")
    code, _, err = _capplan("calibrate", str(table), str(other))
    assert code == 2
    assert "2 accelerators: a100-sxm-80gb, h100-sxm-80gb" in err


def test_commands_take_it(tmp_path: Path) -> None:
    """A slower server in the file is a slower server in the simulation and in the table."""
    target = tmp_path / "calibration.yaml"
    table = _table(tmp_path, TRUE, noise=0.01)
    assert _capplan("calibrate", str(table), "--output", str(target))[0] == 0
    line = ("simulate", "--hardware", "h100", "--qps", "2", "--num-requests", "1200", "--json")
    plain = json.loads(_capplan(*line)[1])["result"]
    slower = json.loads(_capplan(*line, "--calibration", str(target))[1])["result"]
    assert _tpot(slower) > 1.05 * _tpot(plain)
    code, _, err = _capplan("simulate", "--hardware", "a100", "--calibration", str(target))
    assert code == 2
    assert "is of h100-sxm-80gb" in err
    errors = [
        json.loads(_capplan("accuracy", str(table), "--json", *more)[1])["result"]["targets"]
        for more in ([], ["--calibration", str(target)])
    ]
    before, after = (found[0]["errors"]["median_error_fraction"] for found in errors)
    assert after < 0.5 * before


def _tpot(result: dict[str, Any]) -> float:
    found: float = next(row for row in result["latencies"] if row["name"] == "TPOT")["mean_s"]
    return found
