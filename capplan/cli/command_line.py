"""Option texts as the command line that gives them again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any


def command_line(command: str, texts: Mapping[str, Any], *further: str) -> str:
    """A line for a shell; what was not given (None) stays out.

    >>> command_line("gpus", {"qps": "5M/day", "model": "my model", "cache": False, "tp": None})
    "capplan gpus --qps 5M/day --model 'my model' --no-cache"
    """
    words = ["capplan", command]
    for name, value in texts.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        elif value is not None:
            words += [f"--{option}", shlex.quote(str(value))]
    return " ".join([*words, *further])
