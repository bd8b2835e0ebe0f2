"""A text file line by line, of any size, plain or gzip."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from capplan.errors import CapplanError, Location

MAX_LINE = 16 * 2**20  # characters of one row
HEAD = 64 * 2**10
_GZIP = b"\x1f\x8b"


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """The file as text; odd bytes become `�`, which no field accepts.

    Raises CapplanError when it is missing, unreadable, binary, or cut off within its compression.
    """
    location = Location(str(path))
    try:
        if not path.is_file():
            what = "this is not a file" if path.exists() else "there is no such file"
            raise CapplanError(what, location=location, hint="check the path")
        with path.open("rb") as raw:
            packed = raw.read(2) == _GZIP
            raw.seek(0)
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
            if b"\0" in stream.read(4096):
                raise CapplanError(
                    "this is not a text file in UTF-8",
                    location=location,
                    hint="traces are CSV, JSON or JSON lines, as they are or compressed by gzip",
                )
            stream.seek(0)
            # utf-8-sig: Windows editors put a byte-order mark first.
            yield TextIOWrapper(stream, encoding="utf-8-sig", errors="replace")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CapplanError(
            f"the compressed file is damaged or cut off: {error}",
            location=location,
            hint="fetch it again",
        ) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise CapplanError(f"the file cannot be read: {reason}", location=location) from None


def head_of(path: Path) -> str:
    """The first characters of a file. Raises CapplanError where there are none."""
    with opened(path) as stream:
        head = stream.read(HEAD)
    if not head.strip():
        raise CapplanError("the file is empty", location=Location(str(path)))
    return head


def lines_of(stream: TextIO) -> Iterator[tuple[int, str, bool]]:
    """(number, line, whole): a line that is too long comes cut, once, and is not whole."""
    number = 0
    while line := stream.readline(MAX_LINE):
        number += 1
        whole = line.endswith("\n") or len(line) < MAX_LINE
        yield number, line, whole
        while not whole and (rest := stream.readline(MAX_LINE)):
            whole = rest.endswith("\n")
