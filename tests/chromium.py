"""A page in headless Chromium, at several widths in one start: what it loads, says and measures."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
WHY_NOT = "no Chromium (Debian: apt-get install chromium)"
_SWITCHES = (
    "--headless=new", "--disable-gpu", "--no-first-run", "--disable-extensions", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
    "--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND", "--timeout=20000",
)  # fmt: skip
# Frames of a page have its origin, so that what happens inside them can be asked for.
_MEASURE = """
const seen = [];
addEventListener("load", () => setTimeout(() => {
  for (const frame of document.querySelectorAll("iframe")) {
    const inner = frame.contentWindow, page = inner.document;
    inner.dispatchEvent(new Event("beforeprint"));
    seen.push({
      width: inner.innerWidth,
      scroll_width: page.documentElement.scrollWidth,
      loaded: inner.performance.getEntriesByType("resource").map(entry => entry.name),
      height: page.documentElement.scrollHeight,
      ground: getComputedStyle(page.body).backgroundColor,
      folded: page.querySelectorAll("details:not([open])").length,
    });
  }
  const found = document.createElement("script");
  found.type = "application/json"; found.id = "found";
  found.textContent = JSON.stringify(seen);
  document.body.append(found);
}, 300));
"""


class Seen(NamedTuple):
    """One page at one width, in CSS pixels, as it is about to be printed."""

    width: int
    scroll_width: int
    loaded: list[str]
    height: int
    ground: str  # rgb(..)
    folded: int  # parts that are closed


def look_at(
    pages: Sequence[tuple[str, int]], folder: Path, *, dark: bool = False
) -> tuple[list[Seen], list[str]]:
    """Each (HTML, width), and what the console said of all of them."""
    assert CHROMIUM is not None
    frames = "".join(
        f'<iframe srcdoc="{html.escape(page)}" style="border:0;width:{width}px;height:900px">'
        "</iframe>"
        for page, width in pages
    )
    file = folder / "frames.html"
    text = f"<!DOCTYPE html><meta charset=utf-8><body>{frames}<script>{_MEASURE}</script>"
    file.write_text(text, encoding="utf-8")
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    done = subprocess.run(
        [CHROMIUM, *_SWITCHES, *root, scheme, f"--user-data-dir={folder / 'profile'}",
         "--window-size=1600,1000", "--virtual-time-budget=5000", "--dump-dom", file.as_uri()],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if done.returncode and "No usable sandbox" in done.stderr:
        pytest.skip("Chromium finds no sandbox here, and none is switched off for a user")
    assert done.returncode == 0, done.stderr[-2000:]
    found = re.search(r'id="found">(.*?)</script>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return [Seen(**one) for one in json.loads(found[1])], console
