"""One review in every format: kept word for word, read back by its own rules, same bytes twice."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import BROKEN, FINE, ROOT, check, write
from jsonschema import Draft202012Validator

from capplan.render.check_github import github
from capplan.render.check_junit import junit
from capplan.render.check_markdown import markdown
from capplan.render.check_text import text
from capplan.results.check import CheckResult, Finding

HERE = Path(__file__).resolve().parent
GOLDEN = HERE / "golden"
FORMATS = ("text", "json", "sarif", "junit", "github", "markdown")
SARIF = json.loads((HERE / "sarif-2.1.0.schema.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files: one broken in a shell string, one fine, one accepted."""
    place = tmp_path_factory.mktemp("outputs")
    shutil.copy(ROOT / "examples" / "first-check" / "before.yaml", place / "assistant.yaml")
    accepted = BROKEN.replace(
        "            - --tensor",
        "            # capplan: ignore CP005 reason=trial until=2999-12-31\n            - --tensor",
    )
    write(place, accepted__yaml=accepted, fine__yaml=FINE)
    return place


def nasty(message: str) -> CheckResult:
    """A result with a text that every format must quote."""
    finding = Finding(
        "CP005", "gpus-missing", "error", message, ("a < b & c",), 'say "no" | yes', (),
        "a b/c,d:e.yaml", 3, 7, "x: <y> & |z|", "na:me", "0123456789abcdef",
    )  # fmt: skip
    return CheckResult((finding,), (), (), (), (), 1, 1, (), None)


@pytest.mark.parametrize("form", ["text", "junit", "github", "markdown"])
def test_kept_word_for_word(form: str, folder: Path, golden: Callable[[Path, str], None]) -> None:
    ran = check(folder, "--format", form)
    assert (ran.code, ran.err) == (1, "")
    golden(GOLDEN / f"check.{form}", ran.out)


def test_every_format_at_once_and_twice_the_same(folder: Path, tmp_path: Path) -> None:
    runs = []
    for turn in ("a", "b"):
        place = tmp_path / turn
        files = [f"--output={form}={place / form}" for form in FORMATS]
        ran = check(folder, *files)
        assert ran.code == 1
        runs.append({form: (place / form).read_text(encoding="utf-8") for form in FORMATS})
        assert ran.out == runs[-1]["text"]
    assert runs[0] == runs[1]


def test_json_obeys_its_schema(folder: Path) -> None:
    form = json.loads((ROOT / "docs/schemas/capplan.check-1.json").read_text(encoding="utf-8"))
    ran = check(folder, "--json")
    answer = json.loads(ran.out)
    Draft202012Validator(form).validate(answer)
    assert ran.out == check(folder, "--format", "json").out
    found = answer["result"]["findings"]
    assert {(f["rule"], f["file"], f["line"]) for f in found} >= {
        ("CP005", "assistant.yaml", 22), ("CP011", "assistant.yaml", 23),
    }  # fmt: skip
    assert [entry["by"] for entry in answer["result"]["suppressed"]] == ["comment"]


def test_sarif_obeys_its_schema(folder: Path) -> None:
    Draft202012Validator.check_schema(SARIF)
    run = sarif(check(folder, "--format", "sarif").out)
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(ids[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    prints = [r["partialFingerprints"]["primaryLocationLineHash"] for r in run["results"]]
    assert len(set(prints)) == len(prints)
    accepted = [r for r in run["results"] if "suppressions" in r]
    assert {r["suppressions"][0]["justification"] for r in accepted} == {"trial"}
    first = run["results"][0]["locations"][0]["physicalLocation"]
    assert first["region"]["startLine"] == 22
    assert first["region"]["startColumn"] == 17


def test_sarif_links_to_sections_that_exist(folder: Path) -> None:
    page = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    for rule in sarif(check(folder, "--format", "sarif").out)["tool"]["driver"]["rules"]:
        anchor = rule["helpUri"].partition("#")[2]
        assert re.search(rf'<a id="{anchor}"></a>|^#+ {rule["id"]}$', page, re.MULTILINE), anchor


def test_fingerprints_survive_moved_lines(tmp_path: Path) -> None:
    def prints(manifest: str) -> list[str]:
        write(tmp_path, chat__yaml=manifest)
        found = json.loads(check(tmp_path, "--json").out)["result"]["findings"]
        return [finding["fingerprint"] for finding in found]

    before = prints(BROKEN)
    assert prints("# one\n# two\n" + BROKEN) == before
    assert prints(BROKEN.replace("size=2", "size=4"))[0] != before[0]


def test_junit_counts_what_it_holds(folder: Path) -> None:
    suites = ElementTree.fromstring(check(folder, "--format", "junit").out)
    cases = list(suites.iter("testcase"))
    failed = list(suites.iter("failure"))
    assert (suites.get("tests"), suites.get("failures")) == (str(len(cases)), str(len(failed)))
    assert {case.get("name") for case in cases} >= {"assistant", "chat"}


def test_nothing_in_a_message_breaks_a_format() -> None:
    result = nasty("50 % of a, b: <c>\nd|e")
    line = github(result)
    assert line.count("\n") == 1
    assert line.startswith(
        "::error file=a b/c%2Cd%3Ae.yaml,line=3,col=7,title=CP005 gpus-missing::"
    )
    assert "50 %25 of a, b: <c>%0Ad|e" in line
    failure = ElementTree.fromstring(junit(result, "error")).find(".//failure")
    assert failure is not None
    assert "a < b & c" in (failure.text or "")
    row = markdown(result).splitlines()[-1]
    assert "&lt;c> d\\|e" in row
    assert "\x1b" not in text(result)
    assert "\x1b" in text(result, colour=True)


def test_long_lists_are_cut_and_counted() -> None:
    one = nasty("x").findings[0]
    many = replace(nasty("x"), findings=tuple(replace(one, line=n) for n in range(1, 61)))
    assert markdown(many).endswith("and 10 more\n")
    assert text(many).count("gpus-missing") == 60


def sarif(content: str) -> dict[str, Any]:
    log = json.loads(content)
    Draft202012Validator(SARIF).validate(log)
    (run,) = log["runs"]
    assert isinstance(run, dict)
    return run
