"""Files of results: one JSON object, several in a row, one a line, or YAML."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from capplan.errors import CapplanError, Location

# Per-request arrays make the largest honest files a few hundred MB.
MOST_BYTES = 1_000_000_000


def read_text(path: Path) -> str:
    """Raises CapplanError where the file cannot be read as text."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise CapplanError(
                f"`{path}` is larger than 1 GB", hint="give the summary without per-request arrays"
            )
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CapplanError(
            f"cannot read `{path}`: {error.strerror or error}",
            hint="give result files, folders of them, or a CSV: `capplan calibrate --help`",
        ) from None
    except UnicodeDecodeError:
        raise CapplanError(
            f"`{path}` is not text", hint="give the JSON that the benchmark tool saved"
        ) from None


def json_documents(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """(place, document) of every JSON value in the text; some tools append one to the file a run.

    Raises CapplanError with the line at which the text stops being JSON.
    """
    decoder = json.JSONDecoder()
    position, found = 0, []
    while True:
        while position < len(text) and text[position].isspace():
            position += 1
        if position == len(text):
            break
        try:
            document, end = decoder.raw_decode(text, position)
        except (json.JSONDecodeError, RecursionError) as error:
            raise _not_json(path, text, position, error) from None
        found.append((text.count("\n", 0, position) + 1, document))
        position = end
    if not found:
        raise CapplanError(f"`{path}` is empty", hint="the run may have ended before it wrote")
    for line, document in found:
        yield ("" if len(found) == 1 else f"line {line}"), document


def _not_json(path: Path, text: str, start: int, error: Exception) -> CapplanError:
    where = error.pos if isinstance(error, json.JSONDecodeError) else start
    what = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
    line = text.count("\n", 0, where) + 1
    column = where - (text.rfind("\n", 0, where) + 1) + 1
    cut = "the file ends in the middle of a value" if where >= len(text.rstrip()) else what
    return CapplanError(
        f"not JSON: {cut}",
        location=Location(str(path), line, column),
        hint="result files are read from: " + KNOWN_TOOLS,
    )


KNOWN_TOOLS = (
    "vllm bench serve/throughput/latency, SGLang bench_serving, guidellm, aiperf, genai-perf, "
    "inference-perf (JSON), and the table of docs/accuracy.md (CSV)"
)
