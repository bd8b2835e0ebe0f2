"""The same function over several things, on as many processors as there are."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

A = TypeVar("A")
B = TypeVar("B")
_JOB: list[Any] = []  # what forked workers find in place: nothing is pickled on the way in


def run_all(function: Callable[[A], B], items: Sequence[A]) -> list[B]:
    """Results in the order of the items; the first error is raised.

    Processes are forked where that is safe (Linux) and of use; elsewhere one does it all.
    """
    num = min(len(items), _num_processors())
    if num < 2 or sys.platform != "linux":
        return [function(item) for item in items]
    import multiprocessing  # only where it is of use: it takes its time to import

    _JOB[:] = [function, items]
    try:
        with multiprocessing.get_context("fork").Pool(num) as pool:
            return pool.map(_of_item, range(len(items)), chunksize=1)
    finally:
        _JOB.clear()


def _num_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _of_item(index: int) -> Any:
    function, items = _JOB
    return function(items[index])
