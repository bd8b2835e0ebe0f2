"""The same function over several things, on as many processors as there are.

Processes are forked by hand: to import `multiprocessing` and to start a pool takes as long as a
fifth of the default question.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

A = TypeVar("A")
B = TypeVar("B")


def run_all(function: Callable[[A], B], items: Sequence[A]) -> list[B]:
    """Results in the order of the items; the first error is raised.

    A process an item, where forking is safe (Linux) and of use; elsewhere one does it all.
    """
    most = min(len(items), _num_processors())
    if most < 2 or sys.platform != "linux":
        return [function(item) for item in items]
    import select

    coming = list(enumerate(items))[::-1]
    working: dict[int, tuple[int, int]] = {}  # by what it is read from: the process, and its item
    answers: dict[int, bytes] = {}
    try:
        while coming or working:
            while coming and len(working) < most:
                index, item = coming.pop()
                process, end = _begun(function, item)
                working[end], answers[index] = (process, index), b""
            for end in select.select(list(working), [], [])[0]:
                part = os.read(end, 1 << 16)
                process, index = working[end]
                answers[index] += part
                if not part:
                    del working[end]
                    os.close(end)
                    os.waitpid(process, 0)
    finally:
        for end, (process, _) in working.items():  # an interrupt
            os.close(end)
            os.kill(process, 9)
            os.waitpid(process, 0)
    return [_answer(answers[index]) for index in range(len(items))]


def _num_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _begun(function: Callable[[A], object], item: A) -> tuple[int, int]:
    """A process that works on an item, and what its answer can be read from."""
    read, write = os.pipe()
    process = os.fork()
    if process:
        os.close(write)
        return process, read
    try:
        # What was there before is neither looked through for garbage nor written to.
        gc.freeze()
        os.close(read)
        with os.fdopen(write, "wb") as stream:
            stream.write(_outcome(function, item))
    finally:
        os._exit(0)  # nothing that the parent has begun is ended here


def _outcome(function: Callable[[A], object], item: A) -> bytes:
    import pickle

    try:
        return pickle.dumps((function(item), None))
    except Exception as error:
        return pickle.dumps((None, error))


def _answer(data: bytes) -> Any:
    import pickle

    if not data:
        raise RuntimeError("a process of the search has died")
    result, error = pickle.loads(data)
    if error is not None:
        raise error
    return result
