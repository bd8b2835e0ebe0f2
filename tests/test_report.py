"""`capplan report`: one file that loads nothing, with every name in it escaped."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from chromium import CHROMIUM, WHY_NOT, look_at
from commands import ROOT, run_command
from hypothesis import given
from hypothesis import strategies as st

from capplan.cli.environment import Environment
from capplan.cli.run import run
from capplan.render.report.markdown import code, escaped

QUESTION = "--qps 8 --hardware h100-sxm-80gb --tp 1 --output-tokens 64"
HOSTILE = "<script>alert(1)</script> \"q\" 'a' & | `x` $y$ [a](http://b.invalid) \\ _z_ </svg>"
FILE = '<img src=x onerror=alert(1)> `&` "m" | $.yaml'
SECTIONS = ["answer", "risk", "run", "why", "simulated", "assumed", "others", "formulas", "again"]
CSS = ROOT / "capplan" / "render" / "report" / "page.css"


class Parsed(HTMLParser):
    """Tags with their attributes, texts, and what was opened and never closed."""

    VOID = ("meta", "link", "br", "path", "use", "image")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag, (tag, self.getpos())

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def named(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]


def written(words: list[str]) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    code = run(["report", *words], Environment(out, err, 80, is_terminal=False, colour=False))
    assert not err.getvalue()
    return code, out.getvalue()


@pytest.fixture(scope="module")
def page() -> str:
    exit_code, text = written(QUESTION.split())
    assert exit_code == 0
    return text


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Options that name a model by a file that would do harm, and its name too."""
    file = tmp_path_factory.mktemp("models") / FILE
    text = (ROOT / "models" / "llama-3.1-8b.yaml").read_text(encoding="utf-8")
    quoted = HOSTILE.replace("'", "''")
    text = re.sub(r"^name: .*$", lambda _: f"name: '{quoted}'", text, count=1, flags=re.M)
    file.write_text(text, encoding="utf-8")
    return ["--model", str(file), "--no-verify"]


def test_nothing_is_loaded_from_anywhere(page: str) -> None:
    parsed = Parsed(page)
    assert not parsed.open
    for tag, attributes in parsed.tags:
        for name in ("src", "href", "xlink:href", "data", "action", "srcset", "poster"):
            assert attributes.get(name, "#")[:1] == "#" or attributes[name] == "data:,", tag
        assert not [name for name in attributes if name.startswith("on")], tag
    assert len(parsed.named("script")) == 1
    assert not re.search(r"@import|url\((?!#)", page)
    (policy,) = (meta for meta in parsed.named("meta") if "http-equiv" in meta)
    assert policy["content"].startswith("default-src 'none'")


def test_it_can_be_read_in_a_meeting(page: str) -> None:
    parsed = Parsed(page)
    assert len(parsed.named("h1")) == 1
    ids = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert [one for one in ids if one in SECTIONS] == SECTIONS
    links = [a["href"] for a in parsed.named("a")]
    assert links == [f"#{name}" for name in SECTIONS]
    assert len(parsed.named("caption")) == len(parsed.named("table")) > 8
    drawn = parsed.named("svg")
    assert drawn
    assert all(one["role"] == "img" and one["aria-labelledby"] in ids for one in drawn)
    assert len(parsed.named("desc")) == len(drawn)
    text = page[: page.index("<nav")]
    for needed in ("GPUs to get", "Bill", "TTFT P99", "TPOT P99", "What binds"):
        assert needed in text
    assert "…" not in page
    assert "nan" not in re.findall(r"\b\w+\b", " ".join(parsed.texts))


def test_the_same_question_gives_the_same_bytes(page: str) -> None:
    assert written(QUESTION.split()) == (0, page)


def test_every_assumption_and_formula_is_there(page: str) -> None:
    """As the commands that they come from show them."""
    _, shown = run_command(f"gpus {QUESTION}", width=200)
    parsed = " ".join(Parsed(page).texts)
    told = shown[shown.index("\nAssumed") : shown.index("\nNext")]
    options = re.findall(r"--[a-z-]+", told)
    assert options
    assert all(option in parsed for option in options)
    assert parsed.count("Source:") >= 20
    # What is explained is what is answered.
    (said,) = re.findall(r"<dt>GPUs to get</dt><dd class=\"value\">(.*?)</dd>", page)
    assert re.findall(r"<h3>GPUs to get <span class=\"value\">(.*?)</span>", page) == [said]


def test_markdown_has_the_same_parts(page: str) -> None:
    exit_code, text = written([*QUESTION.split(), "--format", "markdown"])
    assert exit_code == 0
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert re.findall(r"^## (.*)$", text, re.M) == headings
    assert text.count("<details>") == text.count("</details>")
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table


def test_names_from_files_do_no_harm(hostile: list[str]) -> None:
    exit_code, text = written(hostile)
    assert exit_code == 0
    parsed = Parsed(text)
    assert not parsed.open
    assert not parsed.named("img")
    assert len(parsed.named("script")) == 1
    assert HOSTILE in " ".join(parsed.texts)
    assert not [a for _, attributes in parsed.tags for a in attributes if a.startswith("on")]


def test_names_from_files_do_no_harm_in_markdown(hostile: list[str]) -> None:
    exit_code, text = written([*hostile, "--format", "markdown"])
    assert exit_code == 0
    outside = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.M | re.S)
    outside = re.sub(r"(?<!\\)(`+)(?!`).*?(?<!`)\1(?!`)", "", outside)
    assert "script" in outside
    found = re.findall(r"(?<!\\)<(?!/?details>|/?summary>)", outside)
    assert not found
    assert not re.search(r"(?<!\\)\]\(", outside)


@given(st.text(max_size=40))
def test_any_text_is_itself_again(text: str) -> None:
    """CommonMark: a backslash before punctuation is that character; the longest run fences."""
    plain = " ".join(text.split())
    shown = escaped(text)
    assert re.sub(r"\\([\\`*_{}\[\]<>#|~$&])", r"\1", shown) == plain
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_<>|~$&\[\]]", shown)
    span = re.fullmatch(r"(`+) ?(.*?) ?\1", code(text) if plain else "` `", re.DOTALL)
    assert span
    assert span[1] not in re.findall("`+", span[2])


def test_what_has_no_words_is_left_out_and_said() -> None:
    words = ["--hardware", "tpu-v5e", "--slo-tpot", "80ms", "--no-verify", "--format", "markdown"]
    exit_code, text = written(words)
    assert exit_code == 0
    assert "Left out of this report: Kubernetes" in text
    assert "Not measured on this accelerator" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--format", "pdf"], "`pdf` is not a format"),
        (["--output", "report.docx"], "--output writes .html and .htm files"),
        (["--format", "markdown", "--output", "report.html"], "--output writes .md"),
        (["--output", "README.md"], "the file exists"),
        (["--emit", "vllm"], "no such option"),
        (["--qps", "0"], "--qps"),
    ],
)
def test_what_is_refused(words: list[str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    out, err = io.StringIO(), io.StringIO()
    env = Environment(out, err, 80, is_terminal=False, colour=False)
    assert run(["report", "--no-verify", *words], env) == 2
    assert message in err.getvalue()
    assert not out.getvalue()


def test_a_file_is_written_by_its_ending(tmp_path: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    env = Environment(out, err, 80, is_terminal=False, colour=False)
    file = tmp_path / "answer.md"
    words = ["--hardware", "l4", "--slo-tpot", "1ms", "--no-verify", "-o", str(file)]
    assert run(["report", *words], env) == 1  # the answer is no
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# No number of l4 serves")
    assert "Nearest feasible" in text
    assert (out.getvalue(), err.getvalue()) == ("", f"wrote {file}\n")


def _luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_contrast_is_that_of_wcag_aa() -> None:
    """4.5:1 for every ink on both grounds, in the light, the dark and the printed theme."""
    themes = re.findall(r":root \{(.*?)\}", CSS.read_text(encoding="utf-8"), re.S)
    assert len(themes) == 3
    for theme in themes:
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", theme))
        for ground in ("paper", "card"):
            for ink in ("ink", "muted", "link", "good", "bad", "open"):
                pair = sorted(_luminance(colours[name]) for name in (ground, ink))
                assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5, (ground, ink)


@pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)
def test_in_a_browser(page: str, hostile: list[str], tmp_path: Path) -> None:
    """No request, no complaint on the console, no page wider than its window.

    A page without the policy shows that it is not the policy alone that keeps it quiet, and one
    that does load something that this would be seen.
    """
    bare = re.sub(r"<meta http-equiv.*?>", "", page)
    loads = '<img src="http://control.invalid/pixel.png">'
    pages = [(page, 375), (page, 1440), (bare, 375), (written(hostile)[1], 375), (loads, 375)]
    seen, console = look_at(pages, tmp_path)
    *ours, control = seen
    assert control.loaded == ["http://control.invalid/pixel.png"]
    assert [line for line in console if "control.invalid" not in line] == []
    assert [one.width for one in ours] == [375, 1440, 375, 375]
    for one in ours:
        assert one.loaded == []
        assert one.scroll_width <= one.width
        assert one.height > 3000
        assert one.folded == 0
        assert one.ground == "rgb(255, 255, 255)"
    (dark,), console = look_at([(page, 375)], tmp_path, dark=True)
    assert console == []
    assert dark.ground == "rgb(20, 23, 28)"
