"""The kernel curves of capplan/architectures: fitted to measured kernels, not to serving runs.

    python benchmarks/fit_kernels.py FOLDER {experts,prefill,decode,collectives}

FOLDER holds CSV files of measured kernels (moe_GPU.csv, context_attention_GPU.csv,
generation_attention_GPU.csv, comm_GPU.csv), as derived from NVIDIA's aiconfigurator database; the
fits of dense products come with it (gemm_fit_params.csv). Prints one line a generation, engine and
format (of collectives: a GPU and number of GPUs) with the median and 90th percentile of the error.
Needs the extra `fit`.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from capplan.formulas.collectives import all_reduce_time_s

# Dense peaks in TFLOP/s (16 bits, 8 bits, 4 bits) and bandwidth in TB/s, as hardware/*.yaml.
PEAKS = {
    "a100_sxm": ("ampere", 312, 312, 312, 2.039),
    "h100_sxm": ("hopper", 989, 1979, 1979, 3.35),
    "h200_sxm": ("hopper", 989, 1979, 1979, 4.8),
    "b200_sxm": ("blackwell", 2250, 4500, 9000, 7.7),
    "b300_sxm": ("blackwell", 2250, 4500, 13500, 7.7),
    "gb200": ("blackwell", 2500, 5000, 10000, 8.0),
    "gb300": ("blackwell", 2500, 5000, 15000, 8.0),
    "l40s": ("ada", 362, 733, 733, 0.864),
    "rtx_pro_6000_server": ("blackwell-gb20", 467.8, 935, 1871, 1.597),
}
# Format of the experts: which peak, bytes an element with scales.
FORMATS = {
    "bfloat16": (1, 2.0), "int4_wo": (1, 0.53125), "w4a16_mxfp4": (1, 0.53125),
    "fp8": (2, 1.0), "fp8_block": (2, 1.0), "w4a8_mxfp4_mxfp8": (2, 0.53125),
    "nvfp4": (3, 0.5625),
}  # fmt: skip
Row = dict[str, str]


def rows(folder: Path, pattern: str) -> Iterator[Row]:
    for path in sorted(folder.glob(pattern)):
        with path.open(newline="", encoding="utf-8") as handle:
            yield from csv.DictReader(handle)


def column(group: list[Row], name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in group])


def peak(group: list[Row], which: int) -> np.ndarray:
    return np.array([PEAKS[row["gpu"]][which] for row in group]) * 1e12


def fit(time_s: Callable, start: list, low: list, high: list, measured_s: np.ndarray) -> np.ndarray:
    """Least squares of the log error, robust; prints how good it is."""

    def error(x: np.ndarray) -> np.ndarray:
        return np.log(time_s(x) / measured_s)

    found = least_squares(error, start, bounds=(low, high), loss="soft_l1", f_scale=0.15).x
    off = np.abs(np.expm1(error(found)))
    print(f"n={len(off):5d}  median {np.median(off):.3f}  90th {np.quantile(off, 0.9):.3f}", end="")
    return found


def experts(folder: Path) -> None:
    """fixed + ((rows x FLOP / compute)^p + (bytes / bandwidth)^p)^(1/p), half a tile an expert.

    Of one expert-parallel rank alone: of several the database times the fullest, whose share of
    the tokens it does not state, and under SGLang on A100 kernels that compute the rows of all.
    """
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows(folder, "moe_*.csv"):
        if row["moe_ep_size"] != "1":
            continue
        key = PEAKS[row["gpu"]][0], row["engine"], row["dtype"], row["kernel_source"]
        groups[key].append(row)
    for key, group in sorted(groups.items()):
        which, element = FORMATS[key[2]]
        hidden, width, top_k, num, tokens, tp, ep = (
            column(group, name)
            for name in ("hidden", "inter", "topk", "experts", "num_tokens", "moe_tp_size",
                         "moe_ep_size")
        )  # fmt: skip
        flops, bandwidth = peak(group, which), peak(group, 4)
        touched = num * (1 - (1 - top_k / num) ** tokens) / ep
        routed = tokens * top_k / ep
        moved = touched * 3 * hidden * width * element / tp
        moved = moved + routed * (2 * hidden + 3 * width / tp) * 2

        def time_s(x: np.ndarray) -> np.ndarray:
            compute, streaming, fixed_us, norm, tile = x
            work = (routed + tile * touched) * 6 * hidden * width / tp / (compute * flops)  # noqa: B023
            traffic = moved / (streaming * bandwidth)  # noqa: B023
            return fixed_us * 1e-6 + (work**norm + traffic**norm) ** (1 / norm)

        print(f"{' '.join(key):100s}", end=" ")
        x = fit(
            time_s, [0.4, 0.7, 30, 1.3, 8], [0.02, 0.1, 0, 1, 0], [0.98, 0.98, 300, 4, 64],
            column(group, "latency_ms") * 1e-3,
        )  # fmt: skip
        print(
            "  compute {:.3f} bandwidth {:.3f} fixed {:.1f} us norm {:.2f} tile {:.1f}".format(
                *tuple(x)
            )
        )


def prefill(folder: Path) -> None:
    """fixed + FLOP / (compute peak), each token counted as `saturation` positions more."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows(folder, "context_attention_*.csv"):
        key = PEAKS[row["gpu"]][0], row["engine"], row["attn_dtype"], row["kv_cache_dtype"]
        groups[key].append(row)
    for key, group in sorted(groups.items()):
        batch, length, heads = (column(group, n) for n in ("batch_size", "isl", "num_heads"))
        flops = peak(group, 1)

        def time_s(x: np.ndarray) -> np.ndarray:
            compute, fixed_us, saturation = x
            positions = length * (length + 1) / 2 + length * saturation  # noqa: B023
            return fixed_us * 1e-6 + 4 * batch * heads * 128 * positions / (compute * flops)  # noqa: B023

        print(f"{' '.join(key):40s}", end=" ")
        measured = column(group, "latency_ms") * 1e-3
        x = fit(time_s, [0.5, 20, 64], [0.02, 0, 0], [1.99, 300, 1024], measured)
        print("  compute {:.3f} fixed {:.1f} us saturation {:.0f}".format(*x))


def decode(folder: Path) -> None:
    """fixed + bytes / (share of the bandwidth)."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows(folder, "generation_attention_*.csv"):
        if row["gpu"] == "a100_sxm" and row["engine"] == "trtllm":
            continue  # times of half the stated context
        if row["l2_suspect"] == "1" and float(row["ctx"]) * float(row["batch_size"]) > 20_000:
            continue  # read from the cache, not from memory
        key = PEAKS[row["gpu"]][0], row["engine"], row["kv_cache_dtype"]
        groups[key].append(row)
    for key, group in sorted(groups.items()):
        moved = column(group, "batch_size") * column(group, "ctx") * column(group, "kvh")
        moved = moved * 2 * 128 * (1 if key[2] == "fp8" else 2)
        bandwidth = peak(group, 4)

        def time_s(x: np.ndarray) -> np.ndarray:
            return x[1] * 1e-6 + moved / (x[0] * bandwidth)  # noqa: B023

        print(f"{' '.join(key):30s}", end=" ")
        measured = column(group, "latency_ms") * 1e-3
        x = fit(time_s, [0.8, 12], [0.02, 0], [0.99, 300], measured)
        print("  bandwidth {:.3f} fixed {:.1f} us".format(*x))


SERVED_BYTES = (2**13, 2**28)  # from one decode of a small model to a long prompt's chunk
# GB/s of a GPU's links one way: the most that is fitted. Reduction in the switch of H100 and H200
# takes 512 MiB over eight GPUs to 1.03 of it; nobody serves such messages.
LINKS = {
    "a100_sxm": 300, "h100_sxm": 450, "h200_sxm": 450, "b200_sxm": 900, "b300_sxm": 900,
    "gb200": 900, "gb300": 900, "l40s": 32, "rtx_pro_6000_server": 64,
}  # fmt: skip


def collectives(folder: Path) -> None:
    """All-reduces as engines launch them in CUDA graphs, over all engines of the table."""
    groups: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows(folder, "comm_*.csv"):
        as_served = row["engine"] != "nccl" and not row["variant"].endswith("eager")
        served = SERVED_BYTES[0] <= float(row.get("bytes", 0)) <= SERVED_BYTES[1]
        if row["op"] == "all_reduce" and as_served and served:
            groups[row["gpu"], int(row["gpus"])].append(row)
    for (gpu, num), group in sorted(groups.items()):
        message = column(group, "bytes")

        def time_s(x: np.ndarray) -> np.ndarray:
            return all_reduce_time_s(message, num, x[0] * 1e-6, x[1] * 1e9, x[2] * 1e6)  # noqa: B023

        print(f"{gpu} {num}".ljust(30), end=" ")
        measured = column(group, "latency_ms") * 1e-3
        most = LINKS[gpu]
        x = fit(time_s, [5, most / 2, 1], [0.5, 0.5, 0], [100, most, 100], measured)
        print("  latency {:.1f} us, bus bandwidth {:.0f} GB/s, half at {:.1f} MB".format(*x))


FITS: dict[str, Callable[[Path], None]] = {
    "experts": experts, "prefill": prefill, "decode": decode, "collectives": collectives,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("kernels", choices=tuple(FITS))
    options = parser.parse_args()
    FITS[options.kernels](options.folder)


if __name__ == "__main__":
    main()
