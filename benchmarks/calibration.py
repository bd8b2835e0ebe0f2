"""Calibration on sets of public benchmark results: errors before, after, and on left-out runs.

    python benchmarks/calibration.py FOLDER

FOLDER holds result files of benchmark tools (four sets are looked for by name below). Each set
is calibrated for itself; nothing of it enters the shipped model.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from statistics import median

from capplan.accuracy.calibrate import fit
from capplan.accuracy.calibration_report import described
from capplan.accuracy.calibration_runs import gather
from capplan.accuracy.own_errors import LeftOut, left_out_errors, range_of
from capplan.performance.bands import band_for
from capplan.performance.own_errors import OwnErrors, OwnRuns

# (what, pattern, columns that the files leave out)
SETS: tuple[tuple[str, str, dict[str, str]], ...] = (
    (
        "8B to 32B on one H100 PCIe, Poisson, vllm bench serve",
        "vllm_bench_serve/*sharegpt_1xNVIDIA-H100-PCIe.json",
        {"engine_version": "0.9.0"},
    ),
    (
        "8B on one to four RTX 4090, Poisson, vllm bench serve",
        "vllm_bench_serve/*xNVIDIA-GeForce-RTX-4090.json",
        {"engine_version": "0.9.0"},
    ),
    (
        "GLM-5 FP8, TP 8, closed loop, a fork that writes seconds (taken as H200)",
        "vllm_bench_serve/glm5_fp8_vllm_tp8_*.json",
        {"engine": "vLLM", "engine_version": "0.15.0", "gpu": "H200", "num_gpus": "8"},
    ),
    (
        "8B on one H100, constant rate, inference-perf (bf16, chunking off)",
        "inference_perf/vllm__stage_*_lifecycle_metrics.json",
        {
            "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "H100-SXM", "num_gpus": "1",
            "engine": "vLLM", "engine_version": "0.11.0", "max_num_seqs": "128",
            "chunked_prefill": "off", "prefix_caching": "off", "max_model_len": "512",
        },
    ),
)  # fmt: skip


def print_bands(errors: list[LeftOut]) -> None:
    """Of each figure and load how many left-out runs lie in the band that the others make."""
    for figure, loaded in sorted({(one.figure, one.key.loaded) for one in errors}):
        mine = [one for one in errors if (one.figure, one.key.loaded) == (figure, loaded)]
        shipped = [band_for(figure, one.key) for one in mine]
        drawn = []
        for index, band in enumerate(shipped):
            others = [one.log_ratio for at, one in enumerate(mine) if at != index]
            if not others:
                break
            made = range_of(figure, loaded, others)
            errors_of = OwnErrors(figure, loaded, made.num_runs, made.low_ratio, made.high_ratio)
            drawn.append(OwnRuns((errors_of,), ()).band(band, loaded))
        if not drawn:
            continue
        line = f"  band of {figure}{', loaded' if loaded else ''}, {len(mine)} runs:"
        for name, bands in (("shipped", shipped), ("drawn to the others", drawn)):
            inside = sum(
                band.low_ratio <= math.exp(one.log_ratio) <= band.high_ratio
                for one, band in zip(mine, bands, strict=True)
            )
            low = median(band.low_ratio for band in bands) - 1
            high = median(band.high_ratio for band in bands) - 1
            line += f" {name} {100 * low:+.0f} to {100 * high:+.0f} %, {inside} inside;"
        print(line)


def main(folder: Path) -> int:
    for what, pattern, given in SETS:
        paths = sorted(folder.glob(pattern))
        if not paths:
            print(f"{what}: no such files")
            continue
        gathered = gather(paths, given)
        found = fit(gathered.runs)
        result, _ = described(gathered, found)
        print(f"\n{what}: {result.num_runs} runs")
        print(f"{'':12}{'figures':>8}{'before':>9}{'after':>9}{'left out':>10}")
        for row in (*result.errors, result.total):
            shares = (row.before_fraction, row.after_fraction, row.left_out_fraction)
            print(
                f"{row.name:12}{row.num_figures:8}"
                + "".join(f"{100 * x:8.1f}%" for x in shares[:2])
                + f"{100 * shares[2]:9.1f}%"
            )
        learnt = ", ".join(
            f"{p.name} {p.value:.4g}{'' if p.identified else ' (prior)'}" for p in result.parameters
        )
        print(f"  {learnt}; {'helps' if result.helps else 'does not help: would not be written'}")
        print_bands(left_out_errors(gathered.runs, found))
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
