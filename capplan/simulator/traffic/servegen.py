"""Rates of many clients by time window, as ServeGen publishes them: a generator's input.

Each window of a client has a rate and a family of gaps with a shape. As in ServeGen's own
generator, only the shape of the family counts and the gaps are scaled to the rate (source: Xiang et
al., ServeGen, 2025, and `servegen/construct.py` of its repository); ours are scaled by their mean,
so that the number of requests in a window is random, as it is in life.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from pathlib import Path
from random import Random

from capplan.errors import CapplanError, Location, did_you_mean, one_line
from capplan.simulator.traffic.arrivals import BATCH
from capplan.simulator.traffic.streams import stream
from capplan.specs.documents import read_text
from capplan.specs.rates import MAX_RATE_PER_S, MAX_SPAN_S, ServegenRates

HEADER = ["client", "window_start_s", "rate_rps", "cv", "distribution", "param1", "param2"]
MAX_BYTES = 128 * 2**20
_USUAL_WINDOW_S = 600.0


@dataclass(frozen=True, slots=True)
class Window:
    start_s: float
    end_s: float
    rate_per_s: float
    family: str  # "Gamma", "Weibull", or "" for exponential gaps
    shape: float


class ClientRates:
    """The clients of a file, from `start_at` on."""

    def __init__(self, rates: ServegenRates, folder: Path) -> None:
        """Raises CapplanError with file and line."""
        path = folder / rates.file
        clients = _read(path)
        for name in rates.clients:
            if name not in clients:
                hint = did_you_mean(name, clients) or f"it has: {', '.join(list(clients)[:20])}"
                problem = f"the file has no client `{one_line(name, 40)}`"
                raise CapplanError(problem, hint=hint, location=Location(str(path)))
        chosen = rates.clients or tuple(clients)
        self._clients = {
            name: [_scaled(w, rates) for w in clients[name] if w.end_s > rates.start_at]
            for name in chosen
        }
        if not any(w.rate_per_s for windows in self._clients.values() for w in windows):
            raise CapplanError(
                "no client sends anything",
                location=Location(str(path)),
                hint="choose other `clients`, or an earlier `start_at`",
            )

    def mean_over(self, duration_s: float | None) -> float:
        """Of all clients together, over this time or to the end of the file."""
        windows = [w for each in self._clients.values() for w in each]
        end_s = max(w.end_s for w in windows)
        if duration_s is not None:
            end_s = min(end_s, duration_s)
        parts = (w.rate_per_s * max(0.0, min(w.end_s, end_s) - w.start_s) for w in windows)
        return math.fsum(parts) / end_s

    def batches(self, seed: int, name: str) -> Iterator[list[float]]:
        """Arrival times of all clients in order, each client with random numbers of its own."""
        times = merge(
            *(
                _times(windows, stream(seed, f"{name}arrivals of client {client}"))
                for client, windows in self._clients.items()
            )
        )
        while batch := list(islice(times, BATCH)):
            yield batch


def _times(windows: list[Window], random: Random) -> Iterator[float]:
    """Gaps of mean 1 on a clock that runs with the rate."""
    needed = None
    for window in windows:
        at_s, gap = window.start_s, _gap(window)
        while window.rate_per_s:
            if needed is None:
                needed = gap(random)
            left = (window.end_s - at_s) * window.rate_per_s
            if needed > left:
                needed -= left
                break
            at_s += needed / window.rate_per_s
            needed = None
            yield at_s


def _gap(window: Window) -> Callable[[Random], float]:
    shape = window.shape
    if window.family == "Gamma":
        return lambda random: random.gammavariate(shape, 1 / shape)
    if window.family == "Weibull":
        scale = 1 / math.gamma(1 + 1 / shape)
        return lambda random: random.weibullvariate(scale, shape)
    return lambda random: random.expovariate(1.0)


def _scaled(window: Window, rates: ServegenRates) -> Window:
    """On the clock of the simulation."""
    return Window(
        max(0.0, window.start_s - rates.start_at),
        window.end_s - rates.start_at,
        window.rate_per_s * rates.factor,
        window.family,
        window.shape,
    )


def _read(path: Path) -> dict[str, list[Window]]:
    """Windows of each client; a file without a header holds one client."""
    lines = read_text(path, what="a table of rates", most=MAX_BYTES).splitlines()
    single = bool(lines) and not lines[0].startswith(HEADER[0])
    starts: dict[str, list[tuple[float, float, str, float]]] = {}
    for number, row in enumerate(csv.reader(lines), 1):
        if not row or (number == 1 and not single):
            continue
        place = Location(str(path), number)
        cells = [path.stem, *row] if single else row
        if len(cells) != len(HEADER):
            columns = HEADER[1:] if single else HEADER
            hint = f"a row is {', '.join(columns)}"
            raise CapplanError(
                f"the row has {len(row)} of {len(columns)} columns", hint=hint, location=place
            )
        known = starts.setdefault(cells[0], [])
        window = _window(cells, place)
        if known and window[0] <= known[-1][0]:
            raise CapplanError(
                "the windows of this client run backwards",
                location=place,
                hint="sort its rows by their start",
            )
        known.append(window)
    if not starts:
        raise CapplanError("the file holds no rates", location=Location(str(path)))
    return {client: _closed(windows) for client, windows in starts.items()}


def _window(cells: list[str], place: Location) -> tuple[float, float, str, float]:
    """(start, rate, family, shape) of a row."""
    start_s = _number(cells[1], HEADER[1], 0, MAX_SPAN_S, place)
    rate = _number(cells[2], HEADER[2], 0, MAX_RATE_PER_S, place)
    family = cells[4].strip()
    if family not in ("", "Gamma", "Weibull"):
        problem = f"`distribution` is `{one_line(family, 40)}`"
        raise CapplanError(problem, hint="Gamma, Weibull or nothing is known", location=place)
    shape = _number(cells[5], HEADER[5], 0.01, 1e6, place) if family else 1.0
    return start_s, rate, family, shape


def _number(text: str, field: str, least: float, most: float, place: Location) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        hint = f"it should be a number from {least:g} to {most:g}"
        problem = f"`{field}` is `{one_line(text, 40)}`"
        raise CapplanError(problem, hint=hint, location=place)
    return value


def _closed(starts: list[tuple[float, float, str, float]]) -> list[Window]:
    """A window ends where the next begins; the last is as long as the one before."""
    last_s = starts[-1][0] - starts[-2][0] if len(starts) > 1 else _USUAL_WINDOW_S
    ends = [start for start, *_ in starts[1:]] + [starts[-1][0] + last_s]
    return [
        Window(start, end, rate, family, shape)
        for (start, rate, family, shape), end in zip(starts, ends, strict=True)
    ]
