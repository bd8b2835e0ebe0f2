"""Every config.json of a folder read or refused by name, and our counts beside published ones.

    python benchmarks/parameter_counts.py DIR > docs/parameter-counts.md

`index.csv` in DIR, where there is one, names the files' models and their published totals
(columns `model`, `file`, `true_total_params`, `index_total_size_bytes`). A difference is named
tensor by tensor. Exit code 1 where a config crashes the reader or a difference has no name.
"""

from __future__ import annotations

import csv
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from capplan.errors import CapplanError
from capplan.formulas.number_formats import FORMATS
from capplan.specs.hf.read import read_config
from capplan.specs.model import ModelSpec
from capplan.specs.tensors import num_params_total, tensor_format, tensors_of, weight_bytes

# What single checkpoints hold beside what their config says.
BESIDE = {
    "meta-llama/Llama-2-7b-hf": [("rotary frequencies, a buffer of 64 in 32 layers", 32 * 64)],
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": [
        ("vision tower, of which this config says nothing", 850_960_896),
        ("vision projector, likewise", 4096 * 5120),
    ],
    "moonshotai/Kimi-K2-Instruct": [
        ("buffers, 56 entries in 61 layers (inferred from the size)", 61 * 56)
    ],
}


@dataclass
class Entry:
    """One config: a row of `index.csv`, or a bare file."""

    model: str
    path: Path
    published: int | None = None
    published_bytes: int | None = None


def entries(folder: Path) -> Iterator[Entry]:
    index = folder / "index.csv"
    if not index.is_file():
        for path in sorted(folder.glob("*.json")):
            yield Entry(path.stem, path)
        return
    with index.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            total, size = row.get("true_total_params"), row.get("index_total_size_bytes")
            yield Entry(
                row["model"], folder / row["file"],
                int(total) if total else None, int(size) if size else None,
            )  # fmt: skip


def scales(model: ModelSpec) -> int:
    """Scales of tiles, which a checkpoint stores as tensors of their own."""
    total = 0
    for tensor in tensors_of(model):
        block = FORMATS[tensor_format(tensor, model)].block
        if block and tensor.is_matrix:
            rows, columns = (
                -(-side // tile) for side, tile in zip(tensor.shape, block, strict=True)
            )
            total += tensor.copies * rows * columns
    return total


def with_one_more_layer(model: ModelSpec) -> ModelSpec:
    """An MTP layer is quantised as the last layer is."""
    _, mixer, ffn = model.layer_runs[-1]
    data = model.model_dump()
    data["layers"] = [*data["layers"], {"mixer": mixer, "ffn": ffn}]
    return ModelSpec.model_validate(data)


def router_biases(model: ModelSpec, longer: ModelSpec) -> int:
    """Correction biases of all routers; the last *expert* layer's kind stands for MTP's."""
    biases = [t for t in tensors_of(model) if t.name == "router.bias"]
    mtp = biases[-1].shape[0] if biases and longer is not model else 0
    return sum(tensor.num_params for tensor in biases) + mtp


def candidates(entry: Entry, model: ModelSpec) -> list[tuple[str, int]]:
    """What published totals count and ours do not (or, below zero, the other way round)."""
    found = list(BESIDE.get(entry.model, []))
    longer = with_one_more_layer(model) if model.mtp_parameters else model
    theirs = ", MTP's too" if model.mtp_parameters else ""
    found.append(("MTP layers", model.mtp_parameters))
    found.append(
        (
            f"router biases{theirs} (inferred: the total leaves them out)",
            -router_biases(model, longer),
        )
    )
    found.append((f"scales{theirs}", scales(longer)))
    return [(name, num) for name, num in found if num]


def named(difference: int, found: list[tuple[str, int]]) -> str | None:
    """The fewest of the candidates that sum to the difference."""
    for num in range(1, len(found) + 1):
        for chosen in combinations(found, num):
            if sum(value for _, value in chosen) == difference:
                return "; ".join(f"{value:+,} {name}" for name, value in chosen)
    return None


def stored_as(model: ModelSpec) -> str:
    formats = dict.fromkeys(tensor_format(t, model) for t in tensors_of(model) if t.is_matrix)
    return ", ".join(formats)


def main(folder: Path) -> int:
    rows: list[str] = []
    refused: list[str] = []
    failures = stated = equal = num_read = 0
    for entry in entries(folder):
        try:
            model = read_config(entry.path)
            total, size = num_params_total(model), weight_bytes(model)
        except CapplanError as error:
            refused.append(f"- {entry.model}: {error.message}.")
            continue
        except Exception:
            failures += 1
            traceback.print_exc()
            continue
        num_read += 1
        published, how = "", ""
        if entry.published is not None:
            stated += 1
            difference = entry.published - total
            equal += not difference
            how = "equal" if not difference else named(difference, candidates(entry, model)) or ""
            if not how:
                failures += 1
                how = f"**{difference:+,}, unnamed**"
            published = f"{entry.published:,}"
        if entry.published_bytes is not None and size != entry.published_bytes:
            failures += 1
            how += f"; **{entry.published_bytes - size:+,} bytes, unnamed**"
        unsaid = ("the name says that it is quantised, the config does not say how",)
        beside = "; ".join((*model.not_counted, *(unsaid if model.note else ())))
        rows.append(
            f"| {entry.model} | {total:,} | {published} | {how} | {stored_as(model)} | {size:,} "
            f"| {beside} |"
        )
    print("# Parameter counts\n")
    print(
        f"Written by `benchmarks/parameter_counts.py`: {num_read} config.json files read, "
        f"{len(refused)} refused by name, {failures} failures. Of {stated} published totals, "
        f"{equal} are equal to the last unit and {stated - equal} differ by tensors that are "
        "named: *published = ours + named*.\n"
    )
    print(
        "| model | parameters | published | difference | stored as | weight bytes | not counted |"
    )
    print("|---|---:|---:|---|---|---:|---|")
    print("\n".join(rows))
    if refused:
        print("\n## Refused\n")
        print("\n".join(refused))
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("usage: parameter_counts.py DIR (a folder of config.json files)")
    sys.exit(main(Path(sys.argv[1])))
