"""Every rule: a deployment that breaks it, and one next to it that does not."""

from __future__ import annotations

from typing import Any

import pytest
import rules_page
import yaml

from capplan.check.config import Config
from capplan.check.rules.catalogue import RULES
from capplan.check.run import check_source
from capplan.check.source import Source
from capplan.results.check import Finding
from capplan.specs.check import CheckSpec

H100 = "NVIDIA-H100-80GB-HBM3"
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
GOOD = ["--max-model-len=8192", "--max-num-seqs=64"]


def manifest(
    *args: str, model: str = LLAMA, gpu: str | None = H100, gpus: int | None = 1,
    image: str = "vllm/vllm-openai:v0.11.0", command: tuple[str, ...] = ("vllm", "serve"),
    replicas: int = 1, shm: str | None = "16Gi", **container: Any,
) -> str:  # fmt: skip
    """A Deployment of one server; `args` after the model."""
    server = {
        "name": "server", "image": image, "command": [*command, model] if model else [*command],
        "args": list(args), "resources": {"limits": {"nvidia.com/gpu": gpus} if gpus else {}},
        **container,
    }  # fmt: skip
    pod: dict[str, Any] = {"containers": [server]}
    if shm is not None:
        server["volumeMounts"] = [{"name": "shm", "mountPath": "/dev/shm"}]
        pod["volumes"] = [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": shm}}]
    if gpu is not None:
        pod["nodeSelector"] = {"nvidia.com/gpu.product": gpu}
    spec = {"replicas": replicas, "template": {"spec": pod}}
    kind = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "chat"}}
    return yaml.safe_dump({**kind, "spec": spec}, sort_keys=False)


def findings(text: str, config: CheckSpec | None = None, name: str = "chat.yaml") -> list[Finding]:
    checked = check_source(Source(name, text), Config(config or CheckSpec()), {})
    assert checked.fault is None
    return list(checked.findings)


def rules_of(text: str, config: CheckSpec | None = None) -> set[str]:
    return {finding.rule for finding in findings(text, config)}


def section(**fields: Any) -> CheckSpec:
    return CheckSpec.model_validate({"deployments": {"chat": fields}})


SGLANG: dict[str, Any] = {
    "image": "lmsysorg/sglang:v0.5.6",
    "command": ("python3", "-m", "sglang.launch_server", "--model-path"),
}
TRAFFIC = {"rate": "20/s", "prompt": 1024, "output": 128, "requests": 400}
SLOS = {"ttft": "1 s", "tpot": "50 ms", "percentile": 90.0}
PREFIXED = {**TRAFFIC, "system_prompts": {"tokens": 2000}}

# Rule: (breaks it, configuration), (does not, configuration).
CASES: dict[str, tuple[tuple[str, CheckSpec | None], tuple[str, CheckSpec | None]]] = {
    "CP001": (
        (manifest(*GOOD, model="/models/ours"), None),
        (
            manifest(*GOOD, model="/models/ours"),
            CheckSpec.model_validate({"models": {"/models/*": LLAMA}}),
        ),
    ),
    "CP002": (
        (manifest("--max-model-len=4096", model="meta-llama/Llama-3.1-70B-Instruct"), None),
        (
            manifest(
                "-tp=4", "--max-model-len=4096", model="meta-llama/Llama-3.1-70B-Instruct", gpus=4
            ),
            None,
        ),
    ),
    "CP003": (
        (manifest(gpu="NVIDIA-L4"), None),  # 131,072 tokens are 16 GiB of KV
        (manifest("--max-model-len=8192", gpu="NVIDIA-L4"), None),
    ),
    "CP004": (
        (manifest("--max-model-len=2048", model="Qwen/Qwen3-32B"), None),
        (manifest(*GOOD), None),
    ),
    "CP005": (
        (manifest(*GOOD, "--tensor-parallel-size=4", gpus=2), None),
        (manifest(*GOOD, "-tp", "2", gpus=2), None),
    ),
    "CP006": ((manifest(*GOOD, gpus=8), None), (manifest(*GOOD, "-tp=8", gpus=8), None)),
    "CP007": (
        (manifest(*GOOD, "-tp=3", gpus=3), None),
        (manifest(*GOOD, "-tp=4", gpus=4), None),
    ),
    "CP008": (
        (manifest(*GOOD, "-tp=8", model="Qwen/Qwen2.5-7B-Instruct", gpus=8), None),
        (manifest(*GOOD, "-tp=4", model="Qwen/Qwen2.5-7B-Instruct", gpus=4), None),
    ),
    "CP010": (
        (manifest(*GOOD, "-tp=4", gpu="NVIDIA-L4", gpus=4), None),
        (manifest(*GOOD, "-tp=4", gpus=4), None),
    ),
    "CP011": (
        (manifest("--max-model-len=200000"), None),
        (
            manifest(
                "--max-model-len=200000",
                env=[{"name": "VLLM_ALLOW_LONG_MAX_MODEL_LEN", "value": "1"}],
            ),
            None,
        ),
    ),
    "CP012": (
        (manifest(*GOOD, "--gpu-memory-utilization=0.98"), None),
        (manifest(*GOOD, "--gpu-memory-utilization=0.9"), None),
    ),
    "CP013": (
        (manifest(*GOOD, "--gpu-memory-utilization=0.5"), None),
        (manifest(*GOOD, "--gpu-memory-utilization=0.85"), None),
    ),
    "CP014": (
        (manifest("--max-model-len=8192", "--max-num-seqs=512", gpu="NVIDIA-L4"), None),
        (manifest("--max-model-len=8192", "--max-num-seqs=16", gpu="NVIDIA-L4"), None),
    ),
    "CP015": (
        (
            manifest(
                "--max-model-len=4096",
                "--max-num-seqs=896",
                "--max-num-batched-tokens=8192",
                model="Qwen/Qwen3-0.6B",
                gpu="NVIDIA-H200",
            ),
            None,
        ),
        (manifest(*GOOD), None),
    ),
    "CP016": (
        (
            manifest(
                "--max-num-batched-tokens=4096",
                "--max-model-len=8192",
                "--no-enable-chunked-prefill",
            ),
            None,
        ),
        (manifest("--max-num-batched-tokens=4096", "--max-model-len=8192"), None),
    ),
    "CP017": (
        (manifest("--max-num-batched-tokens=65536", "--max-model-len=131072"), None),
        (manifest("--max-num-batched-tokens=8192", "--max-model-len=131072"), None),
    ),
    "CP018": (
        (manifest("--no-enable-chunked-prefill", "--max-model-len=32768"), None),
        (manifest("--enable-chunked-prefill", "--max-model-len=32768"), None),
    ),
    "CP019": (
        (manifest(*GOOD, "--no-enable-prefix-caching"), section(traffic=PREFIXED)),
        (manifest(*GOOD), section(traffic=PREFIXED)),
    ),
    "CP020": (
        (
            manifest(
                *GOOD,
                model="neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8",
                gpu="NVIDIA-A100-SXM4-80GB",
            ),
            None,
        ),
        (manifest(*GOOD, model="neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8"), None),
    ),
    "CP021": (
        (
            manifest(
                "--dtype=bfloat16", "--max-model-len=2048", gpu="Tesla-T4", model="Qwen/Qwen3-4B"
            ),
            None,
        ),
        (
            manifest("--dtype=half", "--max-model-len=2048", gpu="Tesla-T4", model="Qwen/Qwen3-4B"),
            None,
        ),
    ),
    "CP022": (
        (manifest(*GOOD, "--kv-cache-dtype=fp8", gpu="NVIDIA-A100-SXM4-80GB"), None),
        (manifest(*GOOD, "--kv-cache-dtype=fp8"), None),
    ),
    "CP023": (
        (
            manifest(
                "--max-model-len=8192",
                "--max-num-seqs=256",
                "--speculative-config",
                '{"method": "ngram"}',
            ),
            None,
        ),
        (
            manifest(
                "--max-model-len=8192",
                "--max-num-seqs=16",
                "--speculative-config",
                '{"method": "ngram"}',
            ),
            None,
        ),
    ),
    "CP024": (
        (manifest(*GOOD, "-tp=2", gpus=2, shm=None), None),
        (manifest(*GOOD, "-tp=2", gpus=2), None),
    ),
    "CP025": (
        (
            manifest(
                *GOOD,
                "--cpu-offload-gb=64",
                resources={"limits": {"nvidia.com/gpu": 1, "memory": "32Gi"}},
            ),
            None,
        ),
        (
            manifest(
                *GOOD,
                "--cpu-offload-gb=16",
                resources={"limits": {"nvidia.com/gpu": 1, "memory": "64Gi"}},
            ),
            None,
        ),
    ),
    "CP026": (
        (manifest(*GOOD, livenessProbe={"initialDelaySeconds": 10, "periodSeconds": 5}), None),
        (
            manifest(
                *GOOD,
                livenessProbe={"initialDelaySeconds": 10, "periodSeconds": 5},
                startupProbe={"periodSeconds": 10, "failureThreshold": 60},
            ),
            None,
        ),
    ),
    "CP028": (
        (manifest(*GOOD), section(slos=SLOS)),
        (manifest(*GOOD), None),
    ),
    "CP029": (
        (manifest(*GOOD, "--num-scheduler-steps=8"), None),
        (manifest(*GOOD, "--num-scheduler-steps=8", image="vllm/vllm-openai:v0.7.3"), None),
    ),
    "CP030": (
        (manifest(*GOOD, "--swap-space=8"), None),
        (manifest(*GOOD, "--swap-space=8", image="vllm/vllm-openai:v0.7.3"), None),
    ),
    "CP031": (
        (manifest(*GOOD, "--max-modle-len=8192"), None),
        (manifest(*GOOD, "--max-num-batched-token=8192"), None),
    ),
    "CP032": (
        (manifest("--gpu-memory-utilization=1.5", "--max-model-len=8192"), None),
        (manifest(*GOOD, "--gpu-memory-utilization=0.9"), None),
    ),
    "CP033": (
        (manifest(*GOOD, image="vllm/vllm-openai:latest"), None),
        (manifest(*GOOD), None),
    ),
    "CP034": (
        (manifest("--tp=6", "--ep-size=6", model="Qwen/Qwen3-30B-A3B", gpus=6, **SGLANG), None),
        (manifest("--tp=4", "--ep-size=4", model="Qwen/Qwen3-30B-A3B", gpus=4, **SGLANG), None),
    ),
    "CP040": (
        (manifest("--max-model-len=8192", "--max-num-seqs=8"), section(traffic=TRAFFIC, slos=SLOS)),
        (manifest("--max-model-len=8192"), section(traffic=TRAFFIC, slos=SLOS)),
    ),
    "CP041": (
        (manifest("--max-model-len=8192"), section(traffic=TRAFFIC, slos=SLOS, headroom=0.9)),
        (manifest("--max-model-len=8192", replicas=4), section(traffic=TRAFFIC, slos=SLOS)),
    ),
    "CP042": (
        (manifest(*GOOD, replicas=4), section(usd_per_month=1000.0)),
        (manifest(*GOOD), section(usd_per_month=20000.0)),
    ),
    "CP043": (
        (manifest("--max-model-len=8192", replicas=6), section(traffic=TRAFFIC, slos=SLOS)),
        (manifest("--max-model-len=8192", replicas=2), section(traffic=TRAFFIC, slos=SLOS)),
    ),
}
ELSEWHERE = {"CP009", "CP027", "CP050", "CP051", "CP052"}


def test_every_rule_has_a_case() -> None:
    assert {rule.id for rule in RULES} == set(CASES) | ELSEWHERE


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_speaks_where_it_is_broken_and_only_there(rule: str) -> None:
    (bad, bad_config), (good, good_config) = CASES[rule]
    assert rule in rules_of(bad, bad_config)
    assert rule not in rules_of(good, good_config)


@pytest.mark.parametrize("rule", [name for name in CASES if name < "CP040"])
def test_a_finding_has_its_place_its_steps_and_a_way_out(rule: str) -> None:
    (bad, config), _ = CASES[rule]
    lines = bad.split("\n")
    for finding in findings(bad, config):
        assert finding.fix
        assert finding.message
        assert " ".join(lines[finding.line - 1].split()) in finding.snippet
        assert finding.severity in ("error", "warning", "info")


def test_a_good_deployment_has_no_findings() -> None:
    assert not rules_of(manifest(*GOOD))


def test_tensor_parallelism_over_pods_and_within_a_rack() -> None:
    def group(gpu: str, per_pod: int, size: int) -> str:
        server = {
            "name": "s", "image": "lmsysorg/sglang:v0.5.6",
            "command": ["python3", "-m", "sglang.launch_server", "--model-path", "Qwen/Qwen3-32B",
                        "--tp", str(per_pod * size), "--nnodes", "$(LWS_GROUP_SIZE)"],
            "resources": {"limits": {"nvidia.com/gpu": per_pod}},
        }  # fmt: skip
        pod = {"containers": [server], "nodeSelector": {"gpu": gpu}}
        worker = {"size": size, "workerTemplate": {"spec": pod}}
        kind = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
        return yaml.safe_dump(
            {**kind, "metadata": {"name": "g"}, "spec": {"leaderWorkerTemplate": worker}}
        )

    assert "CP009" in rules_of(group(H100, 2, 2))
    assert "CP009" not in rules_of(group("NVIDIA-GB200", 4, 2))  # one NVLink domain of 72


@pytest.mark.parametrize(
    ("metric", "blind"),
    [
        ({"type": "Resource", "resource": {"name": "cpu"}}, True),
        ({"type": "Resource", "resource": {"name": "memory"}}, True),
        ({"type": "Pods", "pods": {"metric": {"name": "DCGM_FI_DEV_GPU_UTIL"}}}, True),
        ({"type": "Pods", "pods": {"metric": {"name": "vllm:num_requests_running"}}}, True),
        ({"type": "Pods", "pods": {"metric": {"name": "vllm:num_requests_waiting"}}}, False),
        ({"type": "External", "external": {"metric": {"name": "ttft_p95"}}}, False),
    ],
)
def test_what_an_autoscaler_sees(metric: dict[str, Any], blind: bool) -> None:
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"},
        "spec": {
            "scaleTargetRef": {"name": "chat"},
            "minReplicas": 1,
            "maxReplicas": 4,
            "metrics": [metric],
        },
    }
    text = manifest(*GOOD) + "---\n" + yaml.safe_dump(scaler)
    assert ("CP027" in rules_of(text)) == blind


def test_facts_hold_for_every_gpu_that_a_label_may_mean() -> None:
    # 40.6 GB of weights: too much for an A100 of 40 GB, not for one of 80.
    big = "Qwen/Qwen3-32B"
    assert "CP002" in rules_of(manifest("--max-model-len=2048", model=big, gpu="nvidia-tesla-a100"))
    assert "CP002" not in rules_of(manifest("--max-model-len=2048", model=big, gpu="nvidia-a100"))


def test_what_may_be_set_elsewhere_is_no_fact() -> None:
    # Without `--max-model-len` the model's 131,072 tokens count, unless options are hidden.
    script = ("bash", "-c", "exec vllm serve meta-llama/Llama-3.1-8B-Instruct $EXTRA_ARGS")
    text = manifest(model="", gpu="NVIDIA-L4", command=script)
    assert "CP003" not in rules_of(text)
    assert any("EXTRA_ARGS" in f.message for f in findings(text) if f.rule == "CP001")


def test_fingerprints_survive_moved_lines_and_change_with_the_value() -> None:
    text = manifest(*GOOD, "--tensor-parallel-size=4", gpus=2)
    first = next(f for f in findings(text) if f.rule == "CP005")
    moved = next(f for f in findings("# a comment\n" + text) if f.rule == "CP005")
    other = next(f for f in findings(text.replace("size=4", "size=8")) if f.rule == "CP005")
    assert first.fingerprint == moved.fingerprint != other.fingerprint
    assert moved.line == first.line + 1


def test_the_page_of_rules_is_that_of_the_rules() -> None:
    assert rules_page.PAGE.read_text(encoding="utf-8") == rules_page.page()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (manifest(model="$(MODEL)"), "--set MODEL=VALUE"),
        (manifest(model="{{ .Values.model.name }}"), "--set Values.model.name=VALUE"),
        (manifest(model="/models/ours"), "models: {/models/ours: MODEL}"),
        (manifest(gpu=None), "deployments: {chat: {hardware: ACCELERATOR}}"),
        (manifest(gpu="big-pool"), "hardware: {big-pool: ACCELERATOR}"),
        (manifest("--tensor-parallel-size=${TP}"), "--set TP=VALUE"),
    ],
)
def test_what_would_settle_it_is_said(text: str, said: str) -> None:
    fixes = [finding.fix or "" for finding in findings(text) if finding.rule == "CP001"]
    assert [said in fix for fix in fixes] == [True]


def test_labels_of_another_kind_name_no_gpu() -> None:
    text = manifest(gpu=None).replace(
        "      containers:",
        "      nodeSelector:\n        kubernetes.io/os: linux\n        nvidia.com/gpu: present\n"
        "        topology.kubernetes.io/zone: a\n      containers:",
    )
    (said,) = [finding.message for finding in findings(text) if finding.rule == "CP001"]
    assert said.startswith("GPU type: no node label")


def test_a_part_of_a_deployment_is_judged_with_a_warning() -> None:
    """A runtime elsewhere may quantise: too large is no fact there, and still worth a word."""
    service = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: chat}
spec:
  predictor:
    nodeSelector: {nvidia.com/gpu.product: Tesla-T4}
    model:
      modelFormat: {name: huggingface}
      args: [--model_id=meta-llama/Meta-Llama-3-8B-Instruct, --dtype=float16, --max_model_len=4096]
      resources: {limits: {nvidia.com/gpu: "1"}}
"""
    found = {finding.rule: finding for finding in findings(service)}
    assert found["CP004"].severity == "warning"
    assert "15.0 GiB of weights" in found["CP004"].message
    assert not {"CP002", "CP003"} & found.keys()
    assert rules_of(service.replace("Tesla-T4", "NVIDIA-L4")) == set()


def test_kaito_splits_by_itself() -> None:
    """Two machines of two GPUs hold what one GPU does not; one machine of one GPU does not."""
    workspace = """
apiVersion: kaito.sh/v1beta1
kind: Workspace
metadata: {name: chat}
resource: {count: 2, instanceType: Standard_NC48ads_A100_v4}
inference: {preset: {name: llama-3.1-70b-instruct}}
"""
    assert "CP002" not in rules_of(workspace)
    alone = workspace.replace("count: 2, ", "").replace("NC48ads", "NC24ads")
    assert "CP002" in rules_of(alone)


def test_zero_of_a_scenario_is_no_option() -> None:
    scenario = """
scenario:
  - name: sim
    common:
      model: {name: facebook/opt-125m, huggingfaceId: facebook/opt-125m, gpuMemoryUtilization: 0}
      decode:
        parallelism: {tensor: 0, dataLocal: 1, workers: 1}
        vllm: {modelCommand: imageDefault, image: vllm}
"""
    assert not {"CP005", "CP032"} & rules_of(scenario)
