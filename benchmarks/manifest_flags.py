"""How often our reading of real manifests equals an index of what stands in them.

    python benchmarks/manifest_flags.py DIR

DIR holds the files and an `index.csv` (columns `file`, and one a setting; several values are
divided by ` | `). Prints the share of settings that we read as the index has them, and each
disagreement with file, line and both readings. The index was made by a pattern reader; where the
two differ, the file decides.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from capplan.check.deployment import Deployment
from capplan.check.documents import read_file, read_source
from capplan.check.shapes.registry import read_deployments

# Column of the index -> our name for the option.
MEANINGS = {
    "tensor_parallel": "tp", "pipeline_parallel": "pp", "data_parallel": "dp",
    "max_model_len": "max_model_len", "max_num_seqs": "max_num_seqs",
    "max_num_batched_tokens": "max_num_batched_tokens", "gpu_memory_utilization": "memory_share",
    "kv_cache_dtype": "kv_dtype", "quantization": "quantization", "block_size": "block_size",
    "chunked_prefill": "chunked_prefill", "prefix_caching": "prefix_caching",
    "swap_space": "swap_space", "dtype": "dtype", "speculative": "speculative",
}  # fmt: skip
FIELDS = ("model", "gpu_request", "replicas")


def readings(found: list[Deployment], column: str) -> list[tuple[str, int | None]]:
    """Every value of a column that we read: as written and as it comes out, with its line."""
    values: list[tuple[str, int | None]] = []
    for deployment in found:
        if column in MEANINGS:
            for flag in deployment.flags:
                if flag.meaning == MEANINGS[column]:
                    values += [(text, flag.location.line) for text in (flag.raw, flag.text) if text]
        elif column == "model":
            for value in (deployment.model, deployment.served_name, *deployment.model_hints):
                if value is not None:
                    values += [(value.raw, value.location.line), (value.chars, value.location.line)]
        else:
            stated = deployment.gpus_per_pod if column == "gpu_request" else deployment.replicas
            scaler = deployment.autoscaler
            bounds = (
                (scaler.min_replicas, scaler.max_replicas)
                if scaler and column == "replicas"
                else ()
            )
            for number in (stated, *bounds):
                if number is not None:
                    values += [
                        (number.value.raw, number.value.location.line),
                        (number.value.chars, number.value.location.line),
                    ]
    return values


def equal(indexed: str, read: str) -> bool:
    """The same value in other spelling: quotes, escapes, defaults of variables, repositories."""
    a, b = (re.sub(r"[\\\"'\s$]", "", text).lower() for text in (indexed, read))
    # The pattern reader cut arithmetic at its first space.
    if a == b or (a.startswith("((") and b.startswith(a)):
        return True
    try:
        return float(a) == float(b)
    except ValueError:
        return False


def same_model(indexed: str, read: str) -> bool:
    a, b = (re.sub(r"[^a-z0-9.]", "", text.lower().rpartition("/")[2]) for text in (indexed, read))
    return bool(a) and bool(b) and (a == b or b.startswith(a) or a.startswith(b))


def cells(folder: Path) -> Iterator[tuple[str, str, str, list[tuple[str, int | None]], str]]:
    """(file, column, indexed value, our readings, the text of the file)."""
    with (folder / "index.csv").open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            source = read_source(folder / row["file"], row["file"])
            found = read_deployments(read_file(source))
            for column in (*MEANINGS, *FIELDS):
                for part in filter(
                    None, (text.strip() for text in (row.get(column) or "").split(" | "))
                ):
                    yield row["file"], column, part, readings(found, column), source.text


def main(folder: Path) -> int:
    agreed = total = 0
    differ: list[str] = []
    for file, column, indexed, ours, text in cells(folder):
        literal = (
            re.sub(r"[$\"'\\\s]", "", indexed).lower() in re.sub(r"[$\"'\\\s]", "", text).lower()
        )
        short = indexed.endswith("...") or len(indexed) > 70
        matches = same_model if column == "model" else equal
        good = any(
            matches(indexed, read) or (short and equal(indexed[:60], read[: len(indexed[:60])]))
            for read, _ in ours
        )
        if column in ("model", "gpu_request", "replicas") and not literal:
            continue
        switch = column in ("chunked_prefill", "prefix_caching")
        if not literal and not switch:
            continue
        total += 1
        agreed += good
        if not good:
            shown = sorted({f"{value} (line {line})" for value, line in ours}) or ["nothing"]
            differ.append(f"{file}: {column}: the index has {indexed}; we read {', '.join(shown)}")
    share = f"{agreed / total:.1%}"
    print(f"{agreed} of {total} indexed settings that stand in the files are read alike: {share}")
    print("\n".join(differ))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
