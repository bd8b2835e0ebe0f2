"""Plots: what titles and axes say, that nothing overlaps or overflows, the same bytes again."""

from __future__ import annotations

import io
import re
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plot_samples import LINES, NAMES, months_of, sample, sized
from test_compare_schedulers import QUESTION

from capplan.cli.environment import Environment
from capplan.cli.run import run
from capplan.planner.compare_schedulers import compare_schedulers
from capplan.planner.schedules import schedules
from capplan.planner.sizing.traffic_curve import traffic_curve
from capplan.render.plots.chart import Area, Bars, Dots, Line, Panel
from capplan.render.plots.files import svg_of, write
from capplan.render.plots.in_terminal import text_of
from capplan.render.plots.matplot import drawn
from capplan.render.plots.ticks import linear, logarithmic

pytest.importorskip("matplotlib")
plots = pytest.mark.parametrize("name", NAMES)
SVG = "{http://www.w3.org/2000/svg}"
UNIT = re.compile(r"\(.+\)|GPUs|requests")


@plots
def test_titles_say_the_finding_and_axes_their_unit(name: str) -> None:
    plot = sample(name)
    assert re.search(r"\d", plot.finding)
    assert len(plot.finding) < 200
    labels = [axis.label for panel in plot.panels for axis in (panel.x, panel.y) if axis.label]
    assert labels
    assert all(UNIT.search(label) for label in labels)


@plots
def test_marks_are_told_apart_without_colour(name: str) -> None:
    for panel in sample(name).panels:
        looks = [_look(mark) for mark in panel.marks if mark.name]
        assert len(set(looks)) == len(looks)


def _look(mark: Any) -> tuple[Any, ...]:
    kinds = ("stroke", "shape", "is_hollow", "hatch", "mark", "axis")
    return (type(mark), *(getattr(mark, kind, None) for kind in kinds))


@plots
def test_an_element_for_a_page(name: str) -> None:
    plot = sample(name)
    text = svg_of(plot)
    assert text == svg_of(plot)
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    title = root.find(f"{SVG}title")
    assert title is not None
    assert title.text == plot.finding
    ids = [each.get("id") for each in root.iter() if each.get("id")]
    assert len(ids) == len(set(ids))
    assert all(str(each).startswith(f"{plot.name}-") for each in ids)
    used = {each[1:] for each in re.findall(r'href="(#[^"]+)', text)}
    used |= set(re.findall(r"url\(#([^)]+)\)", text))
    assert used <= set(ids)
    assert set(re.findall(r"https?://[^\"]+", text)) <= {
        "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink",
    }  # fmt: skip
    assert "currentColor" in text
    # Every colour may be set by the page.
    outside = re.sub(r"var\([^)]*\)", "", text)
    assert not re.findall(r"#[0-9a-f]{6}\b", outside)
    said = re.findall(r"<!-- (.*?) -->", text)
    for panel in plot.panels:
        assert {axis.label for axis in (panel.x, panel.y) if axis.label} <= set(said)


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_same_bytes(suffix: str, tmp_path: Path) -> None:
    """Several below each other."""
    files = [tmp_path / f"{i}.{suffix}" for i in range(2)]
    for file in files:
        write([sample(name) for name in ("pareto", "growth", "tornado")], file)
    one, two = (file.read_bytes() for file in files)
    assert one == two
    assert b"<dc:date>" not in one


@plots
def test_no_text_covers_another_or_is_cut_off(name: str) -> None:
    from matplotlib.text import Text

    with drawn([sample(name)]) as figure:
        figure.draw_without_rendering()
        renderer = figure.canvas.get_renderer()
        texts = [t for t in figure.findobj(Text) if t.get_text().strip() and t.get_visible()]
        boxes = []
        for text in texts:
            box = text.get_window_extent(renderer)
            lines = text.get_text().split("\n")
            if not lines[-1].strip():  # the title's last lines are the subject's
                free = box.height * sum(not line.strip() for line in lines) / len(lines)
                box.y0 += free
            boxes.append((text.get_text(), box))
        whole = figure.bbox.padded(1)
        for said, box in boxes:
            assert whole.x0 <= box.x0 < box.x1 <= whole.x1, said
            assert whole.y0 <= box.y0 < box.y1 <= whole.y1, said
        assert len(boxes) > 10
        for (said, box), (other, also) in combinations(boxes, 2):
            assert not box.padded(-1).overlaps(also.padded(-1)), (said, other)


@pytest.mark.parametrize("width", [60, 80, 120])
@plots
def test_in_the_terminal(name: str, width: int) -> None:
    plot = sample(name)
    text = text_of(plot, width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in text
    assert "\x1b" not in text
    flat = " ".join(text.split())
    assert flat.startswith(plot.finding)
    for panel in plot.panels:
        assert panel.x.label in text
        for mark in panel.marks:
            if mark.name:
                assert mark.name in flat
    assert sum(line.rstrip().endswith("┐") for line in lines) == len(plot.panels)


@plots
def test_what_is_drawn_lies_within_the_axes(name: str) -> None:
    for panel in sample(name).panels:
        for x, y in _points(panel):
            assert panel.x.low - 1e-9 <= x <= panel.x.high + 1e-9
            assert panel.y.low - 1e-9 <= y <= panel.y.high + 1e-9


def _points(panel: Panel) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for mark in panel.marks:
        match mark:
            case Line(points) | Dots(points):
                found += points
            case Area(xs, lows, highs):
                found += [*zip(xs, lows, strict=True), *zip(xs, highs, strict=True)]
            case Bars(bars) if not mark.end_mark and mark.mark != "x":  # steps may reach beyond
                found += [(x, row) for row, start, end in bars for x in (start, end)]
    return found


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e7))
def test_linear_ticks(low: float, span: float) -> None:
    axis = linear("x", low, low + span)
    values = [value for value, _ in axis.ticks]
    assert 2 <= len(values) <= 8
    assert all(a < b for a, b in pairwise(values))
    assert all(axis.low - 1e-6 * span <= value <= axis.high + 1e-6 * span for value in values)


@given(st.floats(1e-6, 1e9), st.floats(1.001, 1e9))
def test_logarithmic_ticks(low: float, ratio: float) -> None:
    axis = logarithmic("x", low, low * ratio)
    values = [value for value, _ in axis.ticks]
    assert 2 <= len(values) <= 8
    assert all(a < b for a, b in pairwise(values))
    assert all(axis.low * 0.999 <= value <= axis.high * 1.001 for value in values)


def test_a_roof_is_the_data_sheets() -> None:
    """989.4 TFLOP/s dense bf16 and 3.35 TB/s: NVIDIA's data sheet of the H100 SXM."""
    (panel,) = sample("roofline").panels
    (roof,) = (m for m in panel.marks if isinstance(m, Line) and m.name == "data sheet")
    (low, at_low), (ridge, peak), (_, flat) = roof.points
    assert peak == flat == pytest.approx(989.4, rel=1e-3)
    assert ridge == pytest.approx(989.4 / 3.35, rel=1e-3)
    assert at_low / low == pytest.approx(3.35, rel=1e-3)


def test_several_roofs_carry_their_names() -> None:
    (panel,) = sample("rooflines").panels
    labels = [m.label for m in panel.marks if isinstance(m, Line) and m.label]
    assert labels == ["h100-sxm-80gb", "a100-sxm-80gb", "l4"]


def test_steps_of_the_traffic_are_those_of_the_plan() -> None:
    said, result = sized()
    curve = traffic_curve(result, said.arrival_rate_per_s)
    assert curve is not None
    rates = [point.arrival_rate_per_s for point in curve.points]
    assert rates == sorted(rates)
    for earlier, later in pairwise(curve.points):
        assert earlier.num_gpus <= later.num_gpus
    for point in curve.points:
        assert point.num_gpus_low <= point.num_gpus <= point.num_gpus_high
    for month in months_of(result):
        on = next(p for p in curve.points if p.arrival_rate_per_s >= month.arrival_rate_per_s)
        assert on.num_gpus == month.num_gpus


def test_the_gantt_is_what_the_comparison_measured() -> None:
    """Times of this step model are sums without rounding, so that == holds."""
    rows = {row.key: row for row in compare_schedulers(QUESTION).rows}
    found = schedules(QUESTION)
    assert found is not None
    assert (found.prompt_tokens, found.num_running) == (4096, 32)
    for schedule in found.schedules:
        row = rows[schedule.key]
        assert schedule.longest_gap_s == row.longest_gap_s
        assert schedule.ttft_s == row.longest_prompt_ttft_s
        long, *answers = schedule.lanes
        assert sum(span.tokens for span in long.spans if span.kind == "prefill") == 4096
        assert len(answers) == 4
        for lane in schedule.lanes:  # without a hole, each step once
            assert all(a.end_s == b.start_s for a, b in pairwise(lane.spans))
    whole, cut = found.schedules
    kinds = [{span.kind for lane in s.lanes[1:] for span in lane.spans} for s in (whole, cut)]
    assert kinds == [{"decode", "stalled"}, {"decode"}]


def _run(line: str, *, is_terminal: bool = False) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    env = Environment(out, err, 80, is_terminal=is_terminal, colour=False)
    return run(line.split(), env), out.getvalue(), err.getvalue()


def test_on_the_screen_where_asked() -> None:
    code, out, _ = _run(f"{LINES['latencies']} --plot -", is_terminal=True)
    assert code == 0
    assert "requests above (%)" in out
    assert "KV in use (%)" in out
    code, plain, _ = _run(LINES["latencies"], is_terminal=True)
    assert "requests above (%)" not in plain


@pytest.mark.parametrize("line", ["roofline --plot -", "roofline --json --plot -"])
def test_a_screen_that_is_not_there(line: str) -> None:
    code, out, err = _run(line)
    assert (code, out) == (2, "")
    assert "--plot - draws on a screen" in err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("gpus --no-verify --plot x.svg", "--plot draws what was simulated"),
        ("gpus --emit plan --plot x.svg", "--plot and --emit are two forms"),
        ("roofline --hardware all --plot x.svg", "roofs are more than 6"),
    ],
)
def test_what_cannot_be_drawn(line: str, message: str) -> None:
    code, out, err = _run(line)
    assert (code, out) == (2, "")
    assert message in err


def test_nothing_to_draw_is_said(tmp_path: Path) -> None:
    path = tmp_path / "none.svg"
    code, _, err = _run(
        f"pareto --hardware h100-sxm-80gb --values 64 --num-requests 300 --plot {path}"
    )
    assert code in (0, 1)
    assert "nothing to draw" in err
    assert not path.exists()
