"""Links lead somewhere: of pages to files and headings, of hints to commands, options and pages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from cli_reference import known_options, reference, top_level

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("docs", "hardware", "models", "examples")
PAGES = sorted(
    [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))]
)
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))

_FENCE = re.compile(r"^(```+).*?^\1`*$", re.M | re.S)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_IMAGE = re.compile(r'(?:src|srcset|href)="([^"]+)"')


@cache
def _prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


@cache
def _anchors(page: Path) -> frozenset[str]:
    """Of the headings, by GitHub's rule; a heading that stands twice gets a number."""
    found: list[str] = []
    for heading in re.findall(r"^#{1,6} +(.+?)\s*$", _prose(page), re.M):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        again = sum(
            re.fullmatch(rf"{re.escape(slug)}(-\d+)?", other) is not None for other in found
        )
        found.append(f"{slug}-{again}" if again else slug)
    return frozenset(found) | frozenset(re.findall(r'<a id="([^"]+)">', _prose(page)))


def _targets(page: Path) -> Iterator[str]:
    text = _CODE.sub("", _prose(page))
    yield from (target for pattern in (_LINK, _IMAGE) for target in pattern.findall(text))


@each_page
def test_links_of_pages(page: Path) -> None:
    for target in _targets(page):
        if re.match(r"[a-z]+:", target):  # the web: no test depends on it
            continue
        path, _, anchor = target.partition("#")
        led = (page.parent / path).resolve() if path else page
        assert led.exists(), f"{target}: no such file"
        if anchor:
            assert led.suffix == ".md", target
            assert anchor in _anchors(led), f"{target}: no such heading"


@each_page
def test_commands_that_pages_name(page: Path) -> None:
    """Options too, where a whole command stands in backticks."""
    text = page.read_text(encoding="utf-8")
    for code in re.findall(r"`(capplan [^`\n]+)`", text):
        _check(code, f"{page.name}: {code}")


_PATH = re.compile(r"`((?:\.ci|[a-z]+)/[\w./-]+\.(?:py|md|yaml|yml|json|csv|sh))`")


@each_page
def test_files_that_pages_name(page: Path) -> None:
    """From the repository's root, from the package or from the page; only where the folder is."""
    text = page.read_text(encoding="utf-8")
    roots = (ROOT, ROOT / "capplan", page.parent)
    for name in _PATH.findall(text):
        folder = name.partition("/")[0]
        known = [root for root in roots if (root / folder).is_dir()]
        assert not known or any((root / name).exists() for root in known), name


def test_every_page_of_docs_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / target.partition("#")[0]).resolve() for target in _targets(index)}
    pages = set((ROOT / "docs").rglob("*.md")) - {index}
    assert {page.relative_to(ROOT) for page in pages - linked} == set()


def test_the_changelog_names_every_command() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert [name for name in top_level() if f"`capplan {name}" not in text] == []


def _texts() -> Iterator[tuple[str, str, bool]]:
    """(file:line, text, whether it is a hint) of every text of the program."""
    for path in sorted((ROOT / "capplan").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        hints = {
            id(inner)
            for node in ast.walk(tree)
            if (isinstance(node, ast.keyword) and node.arg == "hint")
            or (isinstance(node, ast.Assign) and "hint" in ast.unparse(node.targets[0]))
            for inner in ast.walk(node.value)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value, id(node) in hints


TEXTS = list(_texts())


def test_commands_that_the_program_names() -> None:
    for where, text, _ in TEXTS:
        for code in re.findall(r"`(capplan [^`]+)`", text):
            _check(code, f"{where}: {code}")


def test_options_that_hints_name() -> None:
    known = {name for path in reference() for name in known_options(path)}
    known |= {"--version", "--show-completion"}
    named = [(where, o) for where, text, hint in TEXTS if hint for o in _options(text)]
    assert len(named) > 20
    assert [pair for pair in named if pair[1] not in known | ENGINES_OWN] == []


# Hints on a start-up command speak in the engine's words.
ENGINES_OWN = {"--quantization"}


def test_pages_that_the_program_names() -> None:
    named = {(w, page) for w, text, _ in TEXTS for page in re.findall(r"docs/[\w./-]+\.md", text)}
    assert len(named) > 5
    assert [(where, page) for where, page in named if not (ROOT / page).exists()] == []


def test_hints_are_there() -> None:
    assert sum(hint for _, _, hint in TEXTS) > 100


def _options(text: str) -> list[str]:
    return re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]", text.replace("--[no-]", "--"))


def _check(code: str, where: str) -> None:
    """A command line as text: its command exists, and takes the options that follow it."""
    words = code.split()[1:]
    paths = [path for path in reference() if words[: len(path.split())] == path.split()]
    if not paths:
        assert words[0].startswith("-") or words[0] in {*top_level(), "X", "NAME"}, where
        return
    unknown = set(_options(code)) - known_options(paths[-1])
    assert not unknown, f"{where}: {unknown}"
