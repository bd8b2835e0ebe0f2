"""`--diff`: what a change brought, and what it does to GPUs and cost; all else stays unsaid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import BROKEN, FINE, check, git, repository, write

from capplan.render.check_text import change_line
from capplan.results.check import FleetChange

BIG = FINE.replace("replicas: 2", "replicas: 6")


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Two deployments, one of them broken from the start, and a third that will go."""
    write(
        tmp_path,
        chat__yaml=FINE,
        old__yaml=BROKEN.replace("name: chat", "name: old"),
        gone__yaml=FINE.replace("name: chat", "name: gone"),
    )
    return repository(tmp_path)


def result(folder: Path, *words: str) -> dict[str, Any]:
    found = json.loads(check(folder, "--json", *words).out)["result"]
    assert isinstance(found, dict)
    return found


def brought(folder: Path, revision: str = "HEAD") -> list[str]:
    return [f"{f['file']} {f['rule']}" for f in result(folder, "--diff", revision)["findings"]]


def test_no_change_says_nothing(fleet: Path) -> None:
    ran = check(fleet, "--diff", "HEAD")
    assert ran.code == 0
    assert ran.out.startswith("no findings new since HEAD")


def test_old_findings_stay_unsaid_new_ones_do_not(fleet: Path) -> None:
    write(fleet, chat__yaml=FINE.replace("len=8192", "len=200000"))
    assert brought(fleet) == ["chat.yaml CP011"]
    # Touching a file does not make its old fault new; making it worse does.
    worse = BROKEN.replace("name: chat", "name: old")
    write(fleet, chat__yaml=FINE, old__yaml="# touched\n" + worse)
    assert brought(fleet) == []
    write(fleet, old__yaml=worse.replace("size=2", "size=4"))
    assert "old.yaml CP005" in brought(fleet)


def test_new_files_count_tracked_or_not(fleet: Path) -> None:
    write(fleet, new__yaml=BROKEN)
    assert "new.yaml CP005" in brought(fleet)
    git(fleet, "add", "new.yaml")
    assert "new.yaml CP005" in brought(fleet)


def test_the_effect_on_gpus_and_cost(fleet: Path) -> None:
    (fleet / "gone.yaml").unlink()
    write(fleet, chat__yaml=BIG)
    changes = {
        change["deployment"]: change for change in result(fleet, "--diff", "HEAD")["changes"]
    }
    assert set(changes) == {"chat", "gone"}
    chat = changes["chat"]
    assert (chat["num_gpus_before"], chat["num_gpus_after"]) == (2, 6)
    price = chat["usd_per_month_before"] / 2
    assert chat["usd_per_month_after"] == pytest.approx(6 * price)
    assert changes["gone"]["what"] == "removed"
    assert changes["gone"]["num_gpus_after"] == 0
    ran = check(fleet, "--diff", "HEAD")
    assert "chat.yaml: chat changed: +4 h100-sxm-80gb, +$" in ran.out
    assert "in all: +2 GPUs, +$" in ran.out


def test_only_under_the_paths_that_were_asked_for(fleet: Path) -> None:
    (fleet / "apps").mkdir()
    write(fleet / "apps", new__yaml=FINE)
    write(fleet, chat__yaml=BIG)
    changes = result(fleet, "apps", "--diff", "HEAD")["changes"]
    assert [change["file"] for change in changes] == ["apps/new.yaml"]


def test_what_the_base_did_since_is_no_change_of_ours(fleet: Path) -> None:
    git(fleet, "checkout", "-q", "-b", "ours")
    write(fleet, chat__yaml=BIG)
    git(fleet, "commit", "-qam", "more replicas")
    git(fleet, "checkout", "-q", "main")
    (fleet / "gone.yaml").unlink()
    git(fleet, "commit", "-qam", "removed")
    git(fleet, "checkout", "-q", "ours")
    changes = result(fleet, "--diff", "main")["changes"]
    assert [change["deployment"] for change in changes] == ["chat"]


def test_an_unknown_revision_is_2(fleet: Path) -> None:
    for revision in ("nowhere", "--output=x", "HEAD~9"):
        ran = check(fleet, f"--diff={revision}")
        assert ran.code == 2
        assert "--diff: " in ran.err
    assert not (fleet / "x").exists()


def test_the_line_that_a_review_shows() -> None:
    change = FleetChange(
        "chat", "chat.yaml", "changed", 8, 16, "h100-sxm-80gb", "h100-sxm-80gb", 39_000.0,
        78_000.0, "TTFT P99", 0.31, 0.54, None, None,
    )  # fmt: skip
    assert change_line(change) == (
        "chat.yaml: chat changed: +8 h100-sxm-80gb, +$39,000 a month, TTFT P99 310 ms to 540 ms"
    )
