"""The wheel carries the catalogue, and works where there is no checkout. Offline: no isolation."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _run(command: list[str], folder: Path, **variables: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env=os.environ | variables, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist of this checkout, and the wheel made from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    _run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), "."], ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return next(built.glob("*.whl"))


def _catalogue() -> set[str]:
    return {f"{kind}/{path.name}" for kind in ("hardware", "models")
            for path in (ROOT / kind).glob("*.yaml")}  # fmt: skip


def test_wheel_holds_the_package_and_the_catalogue(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        files = archive.namelist()
    assert len(files) == len(set(files))
    metadata = "-".join(wheel.name.split("-")[:2]) + ".dist-info"
    assert {name.partition("/")[0] for name in files} == {"capplan", metadata}
    prefix = "capplan/_catalog/"
    bundled = {name.removeprefix(prefix) for name in files if name.startswith(prefix)}
    assert {name for name in bundled if name.endswith(".yaml")} == _catalogue()
    assert not [name for name in files if "test" in name or name.endswith(".pyc")]


def test_sdist_holds_what_tests_and_docs_need(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    assert _catalogue() <= files
    assert {"tests/test_wheel.py", "docs/dependencies.md", "README.md", "LICENSE"} <= files


def test_wheel_answers_from_another_directory(wheel: Path, tmp_path: Path) -> None:
    unpacked, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    program = "import capplan; print(capplan.__file__)"
    path = {"PYTHONPATH": str(unpacked)}
    assert _run([sys.executable, "-c", program], elsewhere, **path).startswith(str(unpacked))
    schema = (ROOT / "docs" / "schemas" / "plan.schema.json").read_text(encoding="utf-8")
    assert _run([sys.executable, "-m", "capplan", "schema", "plan"], elsewhere, **path) == schema
    _run([sys.executable, "-m", "capplan", "examples", "copy", "head-of-line"], elsewhere, **path)
    assert {file.suffix for file in elsewhere.iterdir()} == {".yaml", ".csv"}
    for kind in ("hardware", "models"):
        listed = _run([sys.executable, "-m", "capplan", kind, "list"], elsewhere, **path)
        ids = {line.partition("\t")[0] for line in listed.splitlines()[1:]}
        assert ids == {path.stem for path in (ROOT / kind).glob("*.yaml")}
