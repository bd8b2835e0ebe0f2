"""Every shape of deployment is read, with values as they come out and where they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from capplan.check.deployment import Deployment
from capplan.check.documents import read_file, read_source
from capplan.check.shapes.registry import read_deployments
from capplan.check.source import Source

MANIFESTS = Path(__file__).resolve().parent / "manifests"


def read(name: str, overrides: dict[str, str] | None = None) -> list[Deployment]:
    source = read_source(MANIFESTS / name, name)
    return read_deployments(read_file(source, overrides))


EXPECTED: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    (MANIFESTS.parent / "expected.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_read(name: str) -> None:
    found = read(name)
    assert len(found) == len(EXPECTED[name])
    for deployment, expected in zip(found, EXPECTED[name], strict=True):
        assert deployment.engine == expected["engine"]
        assert deployment.version == expected["version"]
        assert (deployment.model.word if deployment.model else None) == expected["model"]
        for stated, key in (
            (deployment.gpus_per_pod, "gpus"),
            (deployment.pods, "pods"),
            (deployment.replicas, "replicas"),
        ):
            assert (stated.number if stated else None) == expected[key]
        for meaning, text in expected["options"].items():
            flag = deployment.flag(meaning)
            assert flag is not None, meaning
            assert flag.text == text


def test_every_manifest_is_expected() -> None:
    assert {path.name for path in MANIFESTS.iterdir()} == set(EXPECTED)


def test_places_in_a_script_are_those_of_the_file() -> None:
    deployment = read("deployment.yaml")[0]
    lines = (MANIFESTS / "deployment.yaml").read_text(encoding="utf-8").split("\n")
    for meaning in ("tp", "max_model_len", "max_num_seqs", "prefix_caching", "speculative"):
        flag = deployment.flag(meaning)
        assert flag is not None
        place = flag.location
        assert place.line is not None
        assert place.column is not None
        assert lines[place.line - 1][place.column - 1 :].startswith("--")


def test_what_was_filled_in_says_from_where() -> None:
    tp = read("deployment.yaml")[0].flag("tp")
    assert tp is not None
    assert tp.value is not None
    assert tp.raw == "$TP"
    assert tp.value.notes == ("`TP` = `2` (line 26)",)


def test_a_template_stays_open_until_its_value_is_given() -> None:
    open_tp = read("helm_template.yaml")[0].flag("tp")
    assert open_tp is not None
    assert open_tp.value is not None
    assert open_tp.value.reasons == ("`{{ .Values.tp }}` is filled in by a template",)
    given = read("helm_template.yaml", {"tp": "4", "model": "Qwen/Qwen3-8B"})[0]
    assert given.count("tp") == 4
    assert given.model is not None
    assert given.model.word == "Qwen/Qwen3-8B"
    assert given.gpus_per_pod is not None
    assert given.gpus_per_pod.number == 4


def test_an_autoscaler_is_found_by_what_it_scales() -> None:
    scaler = read("deployment.yaml")[0].autoscaler
    assert scaler is not None
    assert [metric.chars for metric in scaler.metrics] == ["cpu"]
    assert scaler.max_replicas is not None
    assert scaler.max_replicas.number == 9


def test_hints_of_the_accelerator() -> None:
    expected = {
        "deployment.yaml": ["NVIDIA-H100-80GB-HBM3"],
        "statefulset.yaml": ["g6.12xlarge"],
        "kubeai.yaml": ["nvidia-gpu-l4"],
        "kaito.yaml": ["Standard_NC24ads_A100_v4"],
        "skypilot.yaml": ["A100-80GB"],
        "dynamo.yaml": ["NVIDIA-H200"],
    }
    for name, hints in expected.items():
        assert [value.chars for value in read(name)[0].gpu_hints] == hints


def test_a_script_in_a_template_keeps_what_is_filled_in_open() -> None:
    text = """apiVersion: v1
kind: ConfigMap
metadata: {name: scripts}
data:
  run.sh: |
    #!/bin/bash
    ARGS=(vllm serve Qwen/Qwen3-8B)
    {{- if hasKey . "maxModelLen" }}
    ARGS+=("--max-model-len" {{ .maxModelLen | quote }})
    {{- end }}
    exec "${ARGS[@]}"
"""
    for written in (
        text,
        text.replace("data:\n", "data:\n{{- if .x }}\n{{- end }}\n  a: {{ .b }}\n"),
    ):
        (deployment,) = read_deployments(read_file(Source("scripts.yaml", written)))
        assert deployment.model is not None
        assert deployment.model.word == "Qwen/Qwen3-8B"
        flag = deployment.flag("max_model_len")
        assert flag is not None
        assert flag.text is None
