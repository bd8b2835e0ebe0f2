"""What making a request costs, beside a bare loop that makes the same tuples from constants.

    python benchmarks/traffic.py [TRACE...]

CPU time of one process for a million generated requests of each kind, or for all rows of each
trace; `loop` is how many times the bare loop's time that is. Peak memory is the process's so far.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from capplan.errors import CapplanError
from capplan.simulator.requests import Request
from capplan.simulator.traffic.build import requests_of
from capplan.specs.traffic import TrafficSpec

MILLION = 1_000_000
LENGTHS = {"prompt": "lognormal:1280,0.8", "output": "lognormal:256,1"}
KINDS: dict[str, dict[str, Any]] = {
    "Poisson, fixed lengths": {"rate": "100/s"},
    "Poisson, lognormal lengths": {"rate": "100/s", **LENGTHS},
    "gamma, lognormal lengths": {"rate": "100/s", "arrivals": "gamma:3", **LENGTHS},
    "a day's curve, lognormal lengths": {"rate": {"kind": "diurnal", "mean": "5M/day"}, **LENGTHS},
    "20 system prompts": {
        "rate": "100/s",
        "system_prompts": {"count": 20, "tokens": "2048", "popularity": "zipf"},
        **LENGTHS,
    },
    "two classes": {
        "classes": [{"name": "a", "rate": "9/s", **LENGTHS}, {"name": "b", "rate": "1/s"}]
    },
}


def cpu_us(requests: Iterable[Request]) -> tuple[int, float]:
    """(how many, microseconds of CPU for each)."""
    begin, number = time.process_time(), 0
    for _ in requests:
        number += 1
    return number, (time.process_time() - begin) / number * 1e6


def bare(number: int) -> Iterable[Request]:
    new: Any = tuple.__new__
    for index in range(number):
        yield new(Request, (str(index), 0.0, 1024, 256, None, 0, (), False, ()))


def rows_of(name: str) -> Iterable[Request]:
    """The requests of a trace; files without times come at a rate."""
    trace = {"file": name, "skip_bad_rows": True}
    try:
        return requests_of(TrafficSpec(trace=trace)).requests()
    except CapplanError:
        return requests_of(TrafficSpec(trace=trace, rate="10/s")).requests()


def main(traces: list[str]) -> int:
    _, loop_us = cpu_us(bare(MILLION))
    print(f"{'':36}{'requests':>10}{'us each':>9}{'loop':>7}{'peak MB':>9}")
    cases = {name: requests_of(TrafficSpec(requests=MILLION, **k)) for name, k in KINDS.items()}
    streams = {name: traffic.requests() for name, traffic in cases.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.csv"
        with path.open("w") as file:
            file.write("arrival_s,prompt_tokens,output_tokens\n")
            file.writelines(f"{index / 100},1024,256\n" for index in range(MILLION))
        streams["a CSV file"] = rows_of(str(path))
        streams |= {Path(name).name[:34]: rows_of(name) for name in traces}
        for name, stream in {"bare loop": bare(MILLION), **streams}.items():
            number, each_us = cpu_us(stream)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
            print(f"{name:36}{number:>10,}{each_us:>9.2f}{each_us / loop_us:>7.1f}{peak:>9.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
