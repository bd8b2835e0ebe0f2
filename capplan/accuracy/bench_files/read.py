"""Any result file: find out whose it is, read it, look it over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from capplan.accuracy.bench_files import aiperf, bench_serving, guidellm, inference_perf, offline
from capplan.accuracy.bench_files.documents import KNOWN_TOOLS, json_documents, read_text
from capplan.accuracy.bench_files.file_names import cells_from_name
from capplan.accuracy.bench_files.row import Draft, ResultRow, SkippedResult
from capplan.accuracy.bench_files.sanity import look_over, reason_to_skip
from capplan.errors import CapplanError, Location

Results = Sequence[ResultRow | SkippedResult]


def read_results(path: Path) -> Results:
    """All results of one file.

    Raises CapplanError for a file that cannot be read or that no known tool wrote; a result
    that cannot be used (all requests failed, say) comes back as a SkippedResult.
    """
    text = read_text(path)
    results: list[ResultRow | SkippedResult] = []
    for place, document in json_documents(path, text):
        for draft in _drafts(path, place, document):
            results.append(_finish(path, draft))
    return results


def _drafts(path: Path, place: str, document: Any) -> Iterator[Draft]:
    if isinstance(document, list):
        for index, one in enumerate(document, start=1):
            yield from _drafts(path, f"{place} entry {index}".strip(), one)
        return
    if not isinstance(document, Mapping):
        raise _unknown(path, place, "a bare value")
    if guidellm.is_guidellm(document):
        yield from guidellm.read_guidellm(document)
    elif bench_serving.is_bench_serving(document):
        yield bench_serving.read_bench_serving(document, place)
    elif offline.is_throughput(document):
        yield offline.read_throughput(document, place)
    elif offline.is_latency(document):
        yield offline.read_latency(document, place)
    elif aiperf.is_aiperf(document):
        yield aiperf.read_aiperf(document, place)
    elif inference_perf.is_server_side(document):
        yield inference_perf.refuse_server_side(place)
    elif inference_perf.is_inference_perf(document):
        yield inference_perf.read_inference_perf(document, place)
    else:
        keys = ", ".join(f"`{name}`" for name in list(document)[:4])
        raise _unknown(path, place, f"keys {keys}" if keys else "an empty object")


def _unknown(path: Path, place: str, what: str) -> CapplanError:
    line = int(place.split()[1]) if place.startswith("line ") else None
    return CapplanError(
        f"no result of a known benchmark tool: {what}",
        location=Location(str(path), line),
        hint=f"results are read from {KNOWN_TOOLS}",
    )


def _finish(path: Path, draft: Draft) -> ResultRow | SkippedResult:
    for column, value in cells_from_name(path).items():
        draft.cells.setdefault(column, value)
    if "concurrency" not in draft.cells and draft.cells.get("workload") == "static":
        batch = draft.cells.get("num_prompts")
        if batch is not None:
            draft.cells["concurrency"] = batch
    reason = reason_to_skip(draft)
    if reason is not None:
        return SkippedResult(path, draft.place, reason)
    look_over(draft)
    if draft.num_failed:
        draft.notes.append(f"{draft.num_failed:,} requests failed")
    return ResultRow(path, draft.place, draft.tool, dict(draft.cells), tuple(draft.notes))
