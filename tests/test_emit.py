"""What is emitted: valid against public schemas, read by our own readers, true to the plan."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import ROOT, run_command
from kubernetes_schema import faults, pod_faults

from capplan.check.deployment import Deployment
from capplan.check.documents import read_file, read_source
from capplan.check.flag_tables.tables import TABLES
from capplan.check.shapes.registry import read_deployments
from capplan.cli.environment import Environment
from capplan.cli.inputs import Inputs
from capplan.cli.run import run
from capplan.cli.serving import ServingOptions, serving_of
from capplan.planner.serving import Serving
from capplan.render.emit.yaml_text import document
from capplan.specs.plan import read_plan

PLANS = ROOT / "tests" / "data" / "plans"
MANIFESTS = ("kubernetes", "kserve", "compose")
# Plan, format: what is kept in tests/golden/emit/.
KEPT = [
    ("llama-70b", "vllm"),
    ("llama-70b", "kubernetes"),
    ("llama-70b", "helm"),
    ("llama-70b", "kserve"),
    ("llama-70b", "compose"),
    ("llama-70b", "sglang"),
    ("deepseek-sglang", "sglang"),
    ("qwen-trtllm", "trtllm"),
    ("qwen-trtllm", "kubernetes"),
    ("qwen-trtllm", "compose"),
    ("mi300x", "kubernetes"),
    ("mi300x", "compose"),
]
kept = pytest.mark.parametrize(("plan", "form"), KEPT, ids=lambda value: str(value))


def emitted(plan: str, form: str) -> str:
    code, text = run_command(f"emit tests/data/plans/{plan}.yaml --format {form}")
    assert code == 0
    return text


def refused(line: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(ROOT):
        code = run(shlex.split(line), Environment(out, err, 80, is_terminal=False, colour=False))
    assert code == 2
    assert not out.getvalue()
    return err.getvalue()


def deployments(text: str, folder: Path) -> list[Deployment]:
    """As `capplan check` reads them."""
    path = folder / "manifest.yaml"
    path.write_text(text, encoding="utf-8")
    return read_deployments(read_file(read_source(path, path.name), {}))


def checked(folder: Path) -> tuple[int, dict[str, Any]]:
    """`capplan check` on a folder: exit code and result."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder):
        code = run(
            ["check", ".", "--json"], Environment(out, err, 80, is_terminal=False, colour=False)
        )
    assert out.getvalue(), err.getvalue()
    found: dict[str, Any] = json.loads(out.getvalue())["result"]
    return code, found


@kept
def test_text(plan: str, form: str, golden: Callable[[Path, str], None]) -> None:
    golden(ROOT / "tests" / "golden" / "emit" / f"{plan}.{form}.txt", emitted(plan, form))


def test_no_golden_text_is_left_over() -> None:
    folder = ROOT / "tests" / "golden" / "emit"
    assert {path.name for path in folder.iterdir()} == {f"{p}.{f}.txt" for p, f in KEPT}


@pytest.mark.parametrize("plan", [path.stem for path in sorted(PLANS.iterdir())])
def test_kubernetes_obeys_the_published_api(plan: str) -> None:
    for part in yaml.safe_load_all(emitted(plan, "kubernetes")):
        assert not faults(part)


@pytest.mark.parametrize("plan", [path.stem for path in sorted(PLANS.iterdir())])
def test_kserve_embeds_a_pod(plan: str) -> None:
    """An InferenceService's predictor is a PodSpec with scaling beside it (KServe v1beta1)."""
    service = next(iter(yaml.safe_load_all(emitted(plan, "kserve"))))
    predictor = dict(service["spec"]["predictor"])
    assert predictor.pop("minReplicas") == predictor.pop("maxReplicas")
    assert not pod_faults(predictor)


def test_a_wrong_field_is_found() -> None:
    part = next(iter(yaml.safe_load_all(emitted("mi300x", "kubernetes"))))
    part["spec"]["replica"] = part["spec"].pop("replicas")
    part["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"] = "8000"
    found = faults(part)
    assert len(found) == 2
    assert any("no such field as replica" in fault for fault in found)


@pytest.mark.parametrize("form", ["kubernetes", "kserve", "compose", "helm"])
def test_our_own_reader_finds_the_plan(form: str, tmp_path: Path) -> None:
    found = deployments(emitted("llama-70b", form), tmp_path)
    one = found[0]
    assert (one.engine, one.version) == ("vllm", "0.11.0")
    assert one.model is not None
    assert one.model.word == "meta-llama/Llama-3.1-70B-Instruct"
    assert one.count("tp") == 4
    assert one.count("max_model_len") == 16384
    assert one.count("max_num_seqs") == 128
    assert one.count("max_num_batched_tokens") == 8192
    assert one.number("memory_share") == 0.92
    for meaning, value in (("kv_dtype", "fp8"), ("quantization", "fp8")):
        flag = one.flag(meaning)
        assert flag is not None
        assert flag.text == value
    assert one.gpus_per_pod is not None
    assert one.gpus_per_pod.count == 4
    if form == "compose":
        assert len(found) == 2  # of a node of eight GPUs
    else:
        assert one.replicas is not None
        assert one.replicas.count == 5  # four and the spare
    assert one.shm is not None


@kept
def test_every_option_is_one_of_the_engine(plan: str, form: str, tmp_path: Path) -> None:
    """Names against the tables of `capplan check`, which come from the engines' own lists."""
    if form in ("vllm", "sglang", "trtllm"):
        table = TABLES["tensorrt-llm" if form == "trtllm" else form]
        command = emitted(plan, form).rpartition("\n\n")[2]
        lines = [line for line in command.splitlines() if not line.startswith("#")]
        words = shlex.split(" ".join(lines).replace("\\ ", " "))
        names = [word.split("=")[0] for word in words if word.startswith("--")]
        assert names
        for name in names:
            assert table.find(name[2:])[0] is not None, name
        return
    for deployment in deployments(emitted(plan, form), tmp_path):
        assert deployment.flags
        assert all(flag.name is not None for flag in deployment.flags)


@pytest.mark.parametrize("plan", [path.stem for path in sorted(PLANS.iterdir())])
@pytest.mark.parametrize("form", ["kubernetes", "kserve", "compose", "helm"])
def test_our_own_check_finds_no_error(plan: str, form: str, tmp_path: Path) -> None:
    (tmp_path / f"{form}.yaml").write_text(emitted(plan, form), encoding="utf-8")
    code, found = checked(tmp_path)
    assert code in (0, 1)
    assert found["findings"] == [f for f in found["findings"] if f["severity"] != "error"]
    if form != "compose":  # which has no words for the accelerator
        assert not [f for f in found["findings"] if f["rule"] == "CP001"]


@pytest.mark.parametrize("hardware", ["h100", "a100", "a10g", "l40s", "h200", "b200", "mi300x"])
def test_our_own_check_accepts_answers(hardware: str, tmp_path: Path) -> None:
    line = f"gpus --hardware {hardware} --slo-ttft 1s --slo-tpot 50ms --emit kubernetes"
    code, text = run_command(line)
    assert code == 0
    (tmp_path / "answer.yaml").write_text(text, encoding="utf-8")
    _, found = checked(tmp_path)
    assert not [f for f in found["findings"] if f["severity"] == "error"]


# Of vllm-stack 0.1.12, values.schema.json: the names that we write, and the kinds of their values.
CHART = {
    "name": str, "repository": str, "tag": str, "modelURL": str, "replicaCount": int,
    "requestCPU": int, "requestMemory": str, "limitMemory": str, "requestGPU": int,
    "requestGPUType": str, "extraVolumes": list, "extraVolumeMounts": list, "shmSize": str,
    "vllmConfig": dict, "hf_token": dict, "nodeSelectorTerms": list,
}  # fmt: skip
CHART_CONFIG = {
    "enablePrefixCaching": bool, "enableChunkedPrefill": bool, "maxModelLen": int, "dtype": str,
    "tensorParallelSize": int, "maxNumSeqs": int, "gpuMemoryUtilization": float, "extraArgs": list,
}  # fmt: skip


@pytest.mark.parametrize("plan", [path.stem for path in sorted(PLANS.iterdir())])
def test_helm_values_are_those_of_the_chart(plan: str) -> None:
    spec = yaml.safe_load(emitted(plan, "helm"))["servingEngineSpec"]
    assert set(spec) == {"runtimeClassName", "modelSpec", "startupProbe"}
    (model,) = spec["modelSpec"]
    for values, known in ((model, CHART), (model["vllmConfig"], CHART_CONFIG)):
        for name, value in values.items():
            assert isinstance(value, known[name]), name
    # The chart turns it off where it is not said.
    assert "enablePrefixCaching" in model["vllmConfig"]


def test_trtllm_takes_its_file() -> None:
    parts = list(yaml.safe_load_all(emitted("qwen-trtllm", "kubernetes")))
    container = parts[0]["spec"]["template"]["spec"]["containers"][0]
    assert "--extra_llm_api_options=/etc/engine/options.yaml" in container["args"]
    options = yaml.safe_load(parts[2]["data"]["options.yaml"])
    assert options["kv_cache_config"] == {
        "dtype": "fp8",
        "enable_block_reuse": True,
        "free_gpu_memory_fraction": 0.85,
    }
    assert (
        parts[0]["spec"]["template"]["spec"]["volumes"][2]["configMap"]["name"]
        == (parts[2]["metadata"]["name"])
    )


@pytest.mark.parametrize("form", ["kubernetes", "kserve"])
def test_probes_wait_for_the_weights(form: str) -> None:
    """141 GB at the stated 200 MB/s are 706 s; the probe waits longer, and for the engine too."""
    part = next(iter(yaml.safe_load_all(emitted("llama-70b", form))))
    spec = part["spec"]["template"]["spec"] if form == "kubernetes" else part["spec"]["predictor"]
    probe = spec["containers"][0]["startupProbe"]
    patience_s = probe["periodSeconds"] * probe["failureThreshold"]
    assert patience_s == pytest.approx(2 * (141.1e9 / 200e6 + 180), rel=0.02)


def serving(file: Path) -> Serving:
    plan, _ = read_plan(file)
    options = ServingOptions(**dict.fromkeys(ServingOptions._fields))  # type: ignore[arg-type]
    return serving_of(options, plan, plan.deployment.replicas, Inputs())


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--hardware h100 --dtype fp8 --kv-dtype fp8 --max-num-batched-tokens 4096",
        "--model mixtral-8x7b --hardware h100 --block-size 32 --no-enable-prefix-caching",
        "--model qwen3-32b --hardware h200 --qps 5M/day --spares 0 --gpu-memory-utilization 0.85",
    ],
)
def test_the_plan_reads_back_as_the_answer(line: str, tmp_path: Path) -> None:
    _, text = run_command(f"gpus {line} --json")
    answered: dict[str, Any] = json.loads(text)
    asked, result = answered["inputs"], answered["result"]
    _, written = run_command(f"gpus {line} --emit plan")
    file = tmp_path / "plan.yaml"
    file.write_text(written, encoding="utf-8")
    plan, _ = read_plan(file)
    assert plan.deployment.replicas == result["num_replicas"]
    assert (plan.deployment.spares or 0) == result["num_spare_replicas"]
    read = serving(file)
    assert (read.model_id, read.hardware_id) == (asked["model"], result["hardware"])
    assert read.deployment.tp == result["tp"]
    config, engine = read.config, read.deployment.engine
    served = result["served_as"]
    assert config.max_num_seqs == served["max_num_seqs"]
    assert config.max_num_batched_tokens == served["max_num_batched_tokens"]
    assert config.block_size == asked["block_size"]
    assert config.enable_prefix_caching == asked["enable_prefix_caching"]
    assert engine.memory_share == served["gpu_memory_utilization"]
    assert engine.kv_dtype == asked["kv_dtype"]
    assert (engine.dtype or read.deployment.model.stored_format) == asked["dtype"]
    rate = plan.traffic.rate
    assert rate is not None
    assert rate.rate == pytest.approx(asked["arrival_rate_per_s"])  # type: ignore[union-attr]


def test_an_infeasible_question_emits_nothing() -> None:
    out, err = io.StringIO(), io.StringIO()
    env = Environment(out, err, 80, is_terminal=False, colour=False)
    assert run(["gpus", "--slo-tpot", "1ms", "--emit", "kubernetes"], env) == 1
    assert not out.getvalue()
    assert "no plan to emit" in err.getvalue()


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ('{version: "0.9", async_scheduling: true}', "asynchronous scheduling"),
        ('{version: "0.4"}', "older than 0.5.3"),
        ("{quantization: int4}", "no engine converts weights to int4"),
        ("{kv_cache_dtype: int4}", "kv_cache_dtype"),
        ('{name: sglang, version: "0.3"}', "older than 0.4"),
        ('{name: tensorrt-llm, version: "0.21"}', "older than 1.0"),
        ("{name: tensorrt-llm, quantization: fp8}", "converting weights"),
    ],
)
def test_what_a_version_does_not_know_is_refused(engine: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(f"model: llama-3.1-8b\nhardware: h100-sxm-80gb\nengine: {engine}\n")
    assert words in refused(f"emit {file}")


@pytest.mark.parametrize(
    ("version", "written"),
    [
        ("0.8.4", "--enable-chunked-prefill=False"),
        ("0.8.5", "--no-enable-chunked-prefill"),
        ("0.11", "--no-enable-chunked-prefill"),
    ],
)
def test_switches_are_spelt_as_the_version_has_them(
    version: str, written: str, tmp_path: Path
) -> None:
    file = tmp_path / "plan.yaml"
    text = f'model: llama-3.1-8b\nhardware: h100-sxm-80gb\nengine: {{version: "{version}", '
    file.write_text(text + "enable_chunked_prefill: false}\n")
    _, found = run_command(f"emit {file} --format vllm")
    assert f" {written}" in found


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("gpus --emit kubernetis", "`kubernetes`"),
        ("emit tests/data/plans/llama-70b.yaml --format yaml", "one of: vllm"),
        ("emit tests/data/plans/deepseek-sglang.yaml --read-rate 5", "--read-rate"),
        ("emit tests/data/plans/mi300x.yaml --repository 'a b'", "is no repository"),
        ("emit no-such-plan.yaml", "no-such-plan.yaml"),
        ("gpus --emit vllm --json", "two forms of one answer"),
        ("gpus --hardware tpu-v6e --model llama-3.1-8b --emit kubernetes", "are not written"),
    ],
)
def test_bad_input(line: str, words: str) -> None:
    assert words in refused(line)


def test_a_replica_over_nodes_has_commands_and_no_manifest(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text("model: deepseek-v3\nhardware: h100\ndeployment: {tp: 8, pp: 2}\n")
    for form in MANIFESTS:
        assert "spans nodes of 8" in refused(f"emit {file} --format {form}")
    _, text = run_command(f"emit {file} --format vllm")
    assert text.index("ray start --head") < text.index("vllm serve")
    assert "--distributed-executor-backend=ray" in text
    _, text = run_command(f"emit {file} --format sglang")
    assert "--nnodes=2" in text
    assert "--pp-size=2" in text
    assert "not written" in refused(f"emit {file} --format trtllm")


def test_a_model_by_path_keeps_it() -> None:
    _, text = run_command("gpus --model docs/examples/llm-7b.yaml --emit vllm")
    assert "vllm serve docs/examples/llm-7b.yaml" in text
    assert "put the folder or repository" in text


def test_scalars_survive_a_reader() -> None:
    hard = {
        "a": "no", "b": "0.10", "c": "x: y", "d": "# c", "e": "", "f": " x", "g": "12:30", "h": "~",
        "i": "line\nline\n", "j": ["- x", {"k": "'", "l": '"'}], "m": {}, "n": [], "o": 0.9,
        "--p=q": True, "1": None, "q": "a: b", "r": "x #y", "s": "ünï", "t": "{a}", "u": "*a",
    }  # fmt: skip
    assert yaml.safe_load(document(hard)) == hard
