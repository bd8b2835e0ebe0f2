"""Options and fixtures of all tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write tests/golden/ and docs/schemas/ anew instead of comparing with them",
    )


@pytest.fixture(scope="session")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _nothing_from_outside(monkeypatch: pytest.MonkeyPatch, _cache: Path) -> None:
    """The developer's shell must not change an answer, nor tests what the developer keeps."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(_cache))
    for name in ("CAPPLAN_PATH", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
        if name in os.environ:
            monkeypatch.delenv(name)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with a file under version control, or write that file anew."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no {path.name}: run `pytest --update-golden` and read the diff"
        assert text == path.read_text(encoding="utf-8"), (
            f"{path.name} differs: is that meant? then run `pytest --update-golden`"
        )

    return compare
