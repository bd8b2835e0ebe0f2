"""docs/layers.svg, drawn from the rows of tests/test_layers.py.

`pytest --update-golden tests/test_layers_picture.py` writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "layers.svg"

# What stands in each row, by its first package.
_SAYS = {
    "__main__": ("start", "python -m capplan"),
    "cli": ("commands", "option texts become a question; its answer is rendered"),
    "render": ("what is seen", "results as tables, TSV, JSON, plots, pages; sees results only"),
    "check": ("review", "manifests, values, scripts: deployments, then findings"),
    "accuracy": ("answers", "bounds, search, proof; predictions beside measured runs"),
    "simulator": ("queues", "the engine's scheduler step for step, traffic, clients, router"),
    "performance": ("the seam", "a batch, given as sums, becomes the time of one step"),
    "results": ("answers as data", "frozen dataclasses, the keys of --json; import nothing"),
    "specs": ("what is given", "hardware, models, engines, plans; YAML and config.json"),
    "formulas": ("arithmetic", "one equation a function, its source beside it; import nothing"),
    "units": ("texts, numbers", "400ms, 80GiB, 5M/day; the only place that converts"),
    "errors": ("what went wrong", "message, place, hint"),
}
_WIDTH, _ROW, _GAP, _TOP, _LEFT = 940, 44, 8, 64, 60
_STYLE = """
  text { font: 15px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #1f2328; }
  .name { font: 600 16px ui-monospace, 'SFMono-Regular', Menlo, Consolas, monospace; }
  .title { font-size: 18px; font-weight: 600; }
  .quiet { fill: #59636e; }
  rect { fill: #eef2f7; stroke: #8c959f; }
  .page { fill: #ffffff; stroke: none; }
  .seam { fill: #fff1d6; stroke: #bf8700; stroke-width: 2; }
  path { stroke: #59636e; stroke-width: 2; fill: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .quiet { fill: #a5b0bb; }
    rect { fill: #1c2430; stroke: #6e7681; }
    .page { fill: #0d1117; stroke: none; }
    .seam { fill: #3a2c0a; stroke: #d4a72c; }
    path { stroke: #a5b0bb; }
  }
"""


def picture(rows: Sequence[set[str]]) -> str:
    """One bar a row, top to bottom; ``data-row`` names the packages that stand in it."""
    height = _TOP + len(rows) * (_ROW + _GAP) + 16
    end = height - 22
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'role="img" aria-labelledby="title">',
        '<title id="title">The layers: a module imports only from rows below its own</title>',
        f"<style>{_STYLE}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{height}"/>',
        f'<text class="title" x="{_LEFT}" y="36">A module imports only from rows below its own'
        "</text>",
        f'<path d="M30 {_TOP} V{end} M22 {end - 12} L30 {end} L38 {end - 12}"/>',
    ]
    for index, packages in enumerate(rows):
        parts += _bar(sorted(packages), _TOP + index * (_ROW + _GAP))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bar(packages: list[str], y: int) -> list[str]:
    what, says = _SAYS[packages[0]]
    names = " | ".join(reversed(packages))
    seam = ' class="seam"' if "performance" in packages else ""
    middle = y + _ROW / 2 + 5
    return [
        f'<rect{seam} data-row="{" ".join(packages)}" x="{_LEFT}" y="{y}" '
        f'width="{_WIDTH - _LEFT - 20}" height="{_ROW}" rx="6"/>',
        f'<text class="name" x="{_LEFT + 16}" y="{middle:g}">{escape(names)}</text>',
        f'<text x="{_LEFT + 210}" y="{middle:g}">{escape(what)}</text>',
        f'<text class="quiet" x="{_LEFT + 360}" y="{middle:g}">{escape(says)}</text>',
    ]
