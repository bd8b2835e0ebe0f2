"""Rows of measured runs, of which a test states what it is about."""

from __future__ import annotations

from pathlib import Path

from capplan.accuracy.measured import MeasuredRun, run_of_cells


def poisson_run(**cells: str) -> MeasuredRun:
    """An 8B model under vLLM 0.8.5 on one H100, requests at a rate; other cells are empty."""
    plain = {
        "id": "x", "model": "meta-llama/Llama-3.1-8B-Instruct", "params_b": "8.03",
        "weight_dtype": "bf16", "gpu": "H100-SXM", "num_gpus": "1", "tp": "1", "pp": "1",
        "engine": "vLLM", "engine_version": "0.8.5", "workload": "poisson",
        "request_rate_qps": "4",
    }  # fmt: skip
    return run_of_cells(Path(), 0, plain | cells)
