"""`capplan check` as a build sees it: exit codes, configuration, ignores, baseline."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from command import BROKEN, FINE, ROOT, TP_LINE, check, write
from commands import run_command
from jsonschema import Draft202012Validator
from spec_schemas import config_schema

from capplan import units
from capplan.check.config import read_config
from capplan.check.rules.catalogue import RULES
from capplan.cli.run import run

WARNED = FINE.replace("- --max-model-len=8192", "- --gpu-memory-utilization=0.99")
NO_MODEL = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n"
UNKNOWN = FINE.replace("meta-llama/Llama-3.1-8B-Instruct", "/models/ours").replace(
    "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3", "pool: big"
)


def rules(folder: Path, *words: str) -> list[str]:
    found = json.loads(check(folder, "--json", *words).out)["result"]["findings"]
    return [finding["rule"] for finding in found]


def commented(comment: str) -> str:
    """The broken manifest, with a comment on the line of its fault."""
    return BROKEN.replace("size=2", f"size=2  # capplan: ignore {comment}")


# Exit codes.


def test_clean_is_0_findings_are_1(tmp_path: Path) -> None:
    write(tmp_path, chat__yaml=FINE)
    assert check(tmp_path).code == 0
    write(tmp_path, chat__yaml=BROKEN)
    ran = check(tmp_path)
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.startswith(f"chat.yaml:{TP_LINE}:15: error CP005 gpus-missing: ")
    assert f"{TP_LINE} | - --tensor-parallel-size=2" in ran.out


def test_a_warning_fails_only_where_it_should(tmp_path: Path) -> None:
    write(tmp_path, chat__yaml=WARNED)
    assert "CP012" in rules(tmp_path)
    assert check(tmp_path).code == 0
    assert check(tmp_path, "--fail-level", "warning").code == 1
    write(tmp_path, __capplan__yaml="fail_level: warning\n")
    assert check(tmp_path).code == 1
    assert check(tmp_path, "--fail-level", "error").code == 0


def test_nothing_to_check_is_2(tmp_path: Path) -> None:
    write(tmp_path, web__yaml=NO_MODEL)
    ran = check(tmp_path)
    assert ran.code == 2
    assert "1 files, none of which deploys a model" in ran.err
    assert check(tmp_path, "--allow-empty").code == 0
    assert "web.yaml" not in ran.err
    assert "passed over: web.yaml" in check(tmp_path, "-v", "--allow-empty").err


def test_unresolved_is_said_and_fails_under_strict(tmp_path: Path) -> None:
    write(tmp_path, chat__yaml=UNKNOWN)
    assert rules(tmp_path) == ["CP001"]
    assert check(tmp_path).code == 0
    assert check(tmp_path, "--strict").code == 1


def test_a_broken_file_that_deploys_is_2(tmp_path: Path) -> None:
    write(tmp_path, chat__yaml=BROKEN.replace("  template:", "  template: {"))
    ran = check(tmp_path)
    assert ran.code == 2
    assert "chat.yaml:" in ran.err


def test_a_broken_file_that_deploys_nothing_is_passed_over(tmp_path: Path) -> None:
    write(
        tmp_path,
        chat__yaml=FINE,
        board__json='/* vllm */ {"expr": "vllm:num_requests_waiting"',
        deployment__tpl='{{- define "x" }}\nimage: vllm/vllm-openai\n  - {{ x }}: [\n{{- end }}\n',
    )
    assert check(tmp_path).code == 0
    assert "passed over: board.json" in check(tmp_path, "-v").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "there is no such file"),
        (["--format", "sarf"], "did you mean `sarif`"),
        (["--format", "json", "--format", "text"], "stdout takes one format"),
        (["--output", "sarif"], "write sarif=FILE"),
        (["--fail-level", "eror"], "did you mean `error`"),
        (["--set", "x"], "is not NAME=VALUE"),
        (["--explain", "CP999"], "there is no rule `CP999`"),
        (["--config", "none.yaml"], "none.yaml"),
        (["--baseline", "chat.yaml"], "this is no baseline"),
        (["--diff", "main"], "repository"),
    ],
)
def test_bad_usage_is_2_and_says_what_to_do(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    ran = check(write(tmp_path, chat__yaml=FINE), *words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_quiet_says_nothing_of_what_is_fine(tmp_path: Path) -> None:
    assert check(write(tmp_path, chat__yaml=FINE), "-q") == (0, "", "")


def test_rules_are_listed_and_explained(tmp_path: Path) -> None:
    ran = check(tmp_path, "--list-rules")
    assert [line[:5] for line in ran.out.splitlines()] == [rule.id for rule in RULES]
    told = check(tmp_path, "--explain", "gpus-missing")
    assert told.out == check(tmp_path, "--explain", "cp005").out
    assert told.out.startswith("CP005 gpus-missing (error)")


# Configuration.


def test_the_nearest_configuration_upward_counts(tmp_path: Path) -> None:
    inner = tmp_path / "prod" / "eu"
    inner.mkdir(parents=True)
    write(inner, chat__yaml=UNKNOWN)
    names = (
        "models: {/models/ours: meta-llama/Llama-3.1-8B-Instruct}\nhardware: {big: h100-sxm-80gb}\n"
    )
    write(tmp_path, __capplan__yaml=names)
    assert rules(tmp_path) == []
    assert rules(inner) == []
    write(tmp_path / "prod", __capplan__yaml="fail_level: error\n")
    assert rules(inner) == ["CP001"]
    assert rules(inner, "--config", str(tmp_path / ".capplan.yaml")) == []


def test_a_repository_ends_the_search(tmp_path: Path) -> None:
    write(tmp_path, __capplan__yaml="nonsense: 1\n")
    inner = tmp_path / "repository"
    (inner / ".git").mkdir(parents=True)
    write(inner, chat__yaml=FINE)
    assert check(inner).code == 0


def test_an_unknown_field_of_the_configuration_is_2(tmp_path: Path) -> None:
    write(tmp_path, chat__yaml=FINE, __capplan__yaml="fail_levl: error\n")
    ran = check(tmp_path)
    assert ran.code == 2
    assert ".capplan.yaml:1:1" in ran.err
    assert "did you mean `fail_level`" in ran.err


def test_values_by_option_win_over_those_of_the_configuration(tmp_path: Path) -> None:
    script = "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len $LEN\n"
    write(tmp_path, serve__sh=script, __capplan__yaml="values: {LEN: 8192}\n")
    assert "CP011" not in rules(tmp_path)
    assert "CP011" in rules(tmp_path, "--set", "LEN=200000")


def test_paths_may_be_excluded(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    write(tmp_path / "old", chat__yaml=BROKEN)
    write(tmp_path, chat__yaml=FINE, __capplan__yaml="exclude: [old]\n")
    assert check(tmp_path).code == 0


# Ignores.


@pytest.mark.parametrize(
    "comment",
    [
        'CP005 reason="MIG slices" until=2999-01-01',
        "cp005, CP024 reason=MIG slices",
        "CP005 until=2999-01-01 reason='MIG slices'",
    ],
)
def test_a_comment_accepts_with_a_reason(comment: str, tmp_path: Path) -> None:
    write(tmp_path, chat__yaml=commented(comment))
    result = json.loads(check(tmp_path, "--json").out)["result"]
    assert result["findings"] == []
    (accepted,) = result["suppressed"]
    assert (accepted["by"], accepted["reason"]) == ("comment", "MIG slices")
    assert "1 accepted" in check(tmp_path).out


def test_a_comment_above_the_line_or_for_the_file(tmp_path: Path) -> None:
    for comment, before in (
        ("ignore CP005 reason=x", "            - --tensor"),
        ("ignore-file CP005 reason=x", "apiVersion"),
    ):
        indent = before[: len(before) - len(before.lstrip())]
        text = BROKEN.replace(before, f"{indent}# capplan: {comment}\n{before}", 1)
        assert rules(write(tmp_path, chat__yaml=text)) == [], comment


def test_an_annotation_accepts(tmp_path: Path) -> None:
    text = BROKEN.replace(
        "  name: chat\n",
        '  name: chat\n  annotations: {capplan.dev/ignore: "CP005=MIG slices; CP024=tmpfs"}\n',
    )
    assert "CP005" not in rules(write(tmp_path, chat__yaml=text))


def test_what_is_wrong_with_an_ignore_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")  # 2027-01-15
    for comment, expected in (
        ("CP005 reason=x until=2027-01-15", []),
        ("CP005 reason=x until=2027-01-14", ["CP005", "CP050"]),
        ("CP011 reason=x", ["CP005", "CP051"]),
        ("CP005", ["CP005", "CP052"]),
        ("CP005 reason=x until=soon", ["CP005", "CP052"]),
    ):
        write(tmp_path, chat__yaml=commented(comment))
        assert sorted(rules(tmp_path)) == expected, comment


def test_the_configuration_accepts_until_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = "ignore: [{rule: CP005, deployment: 'ch*', reason: a trial, until: 2027-01-15}]\n"
    write(tmp_path, chat__yaml=BROKEN, __capplan__yaml=section)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")
    assert check(tmp_path).code == 0
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800100000")
    ran = check(tmp_path)
    assert ran.code == 1
    assert "the ignore in .capplan.yaml ran out on 2027-01-15" in ran.out


# Baseline.


def test_a_baseline_accepts_what_is_there_today(tmp_path: Path) -> None:
    write(tmp_path, chat__yaml=BROKEN)
    ran = check(tmp_path, "--write-baseline", "known.json")
    assert (ran.code, ran.err) == (0, "wrote 1 findings to known.json\n")
    assert check(tmp_path, "--baseline", "known.json").code == 0
    # New lines above move it; another fault is new; a second copy of it is new.
    write(tmp_path, chat__yaml="# moved\n" + BROKEN)
    assert check(tmp_path, "--baseline", "known.json").code == 0
    write(tmp_path, chat__yaml=BROKEN.replace("len=8192", "len=200000"))
    assert rules(tmp_path, "--baseline", "known.json") == ["CP011"]
    write(tmp_path, chat__yaml=f"{BROKEN}---\n{BROKEN}")
    assert rules(tmp_path, "--baseline", "known.json") == ["CP005"]


def test_the_configuration_names_a_baseline_beside_it(tmp_path: Path) -> None:
    write(tmp_path, chat__yaml=BROKEN, __capplan__yaml="baseline: known.json\n")
    config = ("--config", "none.yaml")
    write(tmp_path, none__yaml="{}\n")
    assert check(tmp_path, "--write-baseline", "known.json", *config).code == 0
    assert check(tmp_path).code == 0


# The schema of the configuration.


def test_published_schema_of_the_configuration(golden: Callable[[Path, str], None]) -> None:
    schema = config_schema()
    Draft202012Validator.check_schema(schema)
    path = ROOT / "docs" / "schemas" / "config.schema.json"
    golden(path, json.dumps(schema, indent=2) + "\n")
    example = ROOT / "examples" / "fleet" / ".capplan.yaml"
    line = example.read_text(encoding="utf-8").splitlines()[0]
    assert line.startswith("# yaml-language-server: $schema=")
    assert (example.parent / line.rpartition("=")[2]).resolve() == path
    Draft202012Validator(schema).validate(yaml.safe_load(example.read_text(encoding="utf-8")))
    assert read_config(example).spec.deployments["chat"].slos is not None


@pytest.mark.parametrize(("name", "keys"), [("plan", {"model"}), ("config", {"ignore"})])
def test_schemas_are_printed(name: str, keys: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", name]) == 0
    assert keys <= json.loads(capsys.readouterr().out)["properties"].keys()
    assert run(["schema", "plans"]) == 2
    assert "did you mean `plan`" in capsys.readouterr().err


def test_a_plan_is_checked_with_its_own_users(tmp_path: Path) -> None:
    """Impatient ones send again, which is load: what check says is what simulate shows."""
    plan = tmp_path / "plan.yaml"
    example = (ROOT / "capplan" / "examples" / "incident.yaml").read_text(encoding="utf-8")
    whole = example.partition("variants:")[0].replace("duration: 7min", "duration: 2min")
    plan.write_text(whole, encoding="utf-8")
    simulated = json.loads(run_command(f"simulate --plan {plan} --json")[1])
    level = simulated["result"]["service_levels"][0]
    _, text = run_command(f"check {plan} --json")
    found = [f for f in json.loads(text)["result"]["findings"] if f["rule"] == "CP040"]
    shown = f"TTFT P95 is {units.format_duration(level['value_s'], digits=3)}"
    assert [shown in finding["message"] for finding in found] == [True]
    plan.write_text(whole.replace("  retries: 4", "  retries: 0"), encoding="utf-8")
    assert shown not in run_command(f"check {plan} --json")[1]
