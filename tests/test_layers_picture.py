"""The picture of the layers shows those that are enforced."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

from layers_picture import PICTURE, picture
from test_layers import ROWS


def test_the_picture_is_current(golden: Callable[[Path, str], None]) -> None:
    golden(PICTURE, picture(ROWS))


def test_its_bars_are_the_rows() -> None:
    root = ElementTree.fromstring(PICTURE.read_text(encoding="utf-8"))
    bars = [
        bar for bar in root.iter("{http://www.w3.org/2000/svg}rect") if "data-row" in bar.attrib
    ]
    assert [set(bar.attrib["data-row"].split()) for bar in bars] == ROWS
    tops = [float(bar.attrib["y"]) for bar in bars]
    assert tops == sorted(tops)


def test_it_needs_nothing_else() -> None:
    text = PICTURE.read_text(encoding="utf-8")
    assert re.findall(r"https?://\S+", text) == ['http://www.w3.org/2000/svg"']
    assert "prefers-color-scheme: dark" in text


def test_the_page_names_every_row() -> None:
    page = PICTURE.with_name("architecture.md").read_text(encoding="utf-8")
    assert PICTURE.name in page
    for packages in ROWS[1:]:
        for package in packages:
            assert re.search(rf"^\| `{package}` ", page, re.M), package
