"""Measured runs as sums over steps, so that parameters can be tried without emulating again.

A run is emulated once; that says which steps it was made of and what each weighs in run time, mean
TTFT and mean TPOT. With the schedule held fast, all three are sums of weight x step time. For open
loops the schedule moves with the step times: those are emulated again between rounds of the fit.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from performance_params import Owners, World, owners_of

from capplan.accuracy import score
from capplan.accuracy.emulate import emulate
from capplan.accuracy.load import load_of
from capplan.accuracy.measured import MeasuredRun, read_measured
from capplan.accuracy.server import Server, deployment_of, overheads_of, step_key
from capplan.accuracy.settings import RunSettings, settings_of
from capplan.accuracy.step_record import StepRecord
from capplan.errors import CapplanError
from capplan.performance.overheads import EngineOverheads
from capplan.performance.step import StepModel
from capplan.simulator.model_step_time import ModelStepTime

# Columns of the bins of a row.
BINS = ("num_decodes", "context_tokens", "chunk_tokens", "num_chunks", "chunk_reads",
        "chunk_loaded_tokens", "run_weight", "ttft_weight", "tpot_weight")  # fmt: skip
RUN, TTFT, TPOT, FRONT_END = range(4)
CLOSED_LATENCY = ("closed", "poisson")
THROUGHPUT = ("offline", "burst", "closed", "static", "offline-batch")


@dataclass(frozen=True)
class Row:
    run: MeasuredRun
    settings: RunSettings
    overheads: EngineOverheads
    owners: Owners
    metrics: dict[str, float]  # as emulated
    bins: np.ndarray
    prompt_tokens: float
    is_static: bool

    @property
    def deployment(self) -> tuple[object, ...]:
        return step_key(self.settings, self.overheads)

    @property
    def group(self) -> str:
        return f"{self.run.columns['source_group']} {self.owners.arch}"

    @property
    def is_suspect(self) -> bool:
        return self.run.columns.get("suspect") == "1"

    @property
    def says_little(self) -> bool:
        """About step times: loads that clients or old kernels bound, and load near saturation.

        These are scored like all others and hardly steer the fit (docs/model.md says why).
        """
        source, run = self.run.columns["source_group"], self.run
        return (
            source in ("gpustack", "inferencex-exp", "dstack-tgi-vllm", "splitwise")
            or (source == "dstack-405b" and self.overheads.name.startswith("vLLM"))
            or (source == "argonne" and run.gpu.startswith("MI"))
            or (source.startswith("mlperf") and run.workload == "poisson")
            or (source == "ionet" and self.settings.tp > 1)
        )


def core_rows(path: Path) -> list[MeasuredRun]:
    return [run for run in read_measured(path) if run.columns.get("core") == "1"]


def trace(runs: Sequence[MeasuredRun], world: World) -> list[Row]:
    """Emulate each run at these parameters; a run that cannot be emulated is named and left out."""
    models: dict[tuple[object, ...], tuple[StepModel, ModelStepTime]] = {}
    rows = []
    for run in runs:
        try:
            settings, load = settings_of(run), load_of(run)
            overheads = overheads_of(settings)
            key = step_key(settings, overheads)
            if key not in models:
                model = world.model(settings, overheads)
                models[key] = model, ModelStepTime(model)
            model, steps = models[key]
            record = StepRecord()
            server = Server(settings, model, steps, deployment_of(settings))
            emulated = emulate(settings, load, server, record)
        except CapplanError as error:
            print(f"{run.id}: {error.message}", file=sys.stderr)
            continue
        num = emulated.num_requests / settings.num_replicas
        bins = [[getattr(step, name) for name in BINS] for step in record.mean_steps(num)]
        if bins:
            rows.append(
                Row(run, settings, overheads, owners_of(settings, overheads), emulated.metrics,
                    np.array(bins), load.mean_prompt_tokens, load.kind == "static")
            )  # fmt: skip
    return rows


class Evaluator:
    """Sums of all rows at any parameters, a deployment at a time."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = list(rows)
        groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for at, row in enumerate(self.rows):
            groups[row.deployment].append(at)
        self._groups = [
            (
                ats,
                np.concatenate([self.rows[at].bins for at in ats]),
                np.concatenate([np.full(len(self.rows[at].bins), at) for at in ats]),
            )
            for ats in groups.values()
        ]

    def sums(
        self,
        world: World,
        change: Callable[[StepModel], None] | None = None,
        only: Container[int] | None = None,
    ) -> np.ndarray:
        """A row's run time, TTFT and TPOT in seconds and its front end's time.

        With ``only``, of those rows and perhaps others; NaN elsewhere.
        """
        sums = np.zeros((len(self.rows), 4))
        for ats, bins, owner in self._groups:
            if only is not None and not any(at in only for at in ats):
                sums[ats] = np.nan
                continue
            first = self.rows[ats[0]]
            model = world.model(first.settings, first.overheads)
            if change is not None:
                change(model)
            times = bin_times_s(model, bins)
            for column in (RUN, TTFT, TPOT):
                np.add.at(sums[:, column], owner, bins[:, 6 + column] * times)
            for at in ats:
                row = self.rows[at]
                if not row.is_static:
                    sums[at, FRONT_END] = model.engine.ttft_s(row.prompt_tokens)
        return sums


def bin_times_s(model: StepModel, bins: np.ndarray) -> np.ndarray:
    """Step time of each bin; the model's arithmetic takes arrays as it takes numbers."""
    decodes, context, tokens, chunks, reads, loaded = bins[:, :6].T
    has_prefill = (chunks > 0) * 1.0
    time = model.fixed(
        decodes + tokens, decodes + chunks, has_decodes=(decodes > 0) * 1.0,
        has_prefill=has_prefill,
    )  # fmt: skip
    each = np.maximum(chunks, 1e-9)
    size, before, mean = tokens / each, loaded / each, context / np.maximum(decodes, 1e-9)
    decode_reads, chunk_reads, chunk_kv = {}, {}, {}
    for window in model.windows:
        if window is None:
            decode_reads[window], chunk_reads[window] = context, reads
            chunk_kv[window] = tokens + loaded
            continue
        growing = np.clip(window - before, 0, size)
        decode_reads[window] = decodes * np.minimum(mean, window)
        inside = growing * before + growing * (growing + 1) / 2
        chunk_reads[window] = chunks * (inside + (size - growing) * window)
        chunk_kv[window] = chunks * (size + np.minimum(before, window))
    costs = model.attention
    attention = costs.decode_s(decodes, decode_reads, has_prefill)
    attention = attention + has_prefill * costs.prefill_s(tokens, chunks, chunk_reads, chunk_kv)
    return time.total_s + attention


def scored(run: MeasuredRun) -> list[tuple[str, str]]:
    """(kind, column) of what is compared: one TPOT, one TTFT, one throughput a row at most."""
    wanted: list[tuple[str, score.Columns]] = []
    if run.workload in CLOSED_LATENCY:
        wanted += [("TPOT", score.TPOT), ("TTFT", score.TTFT)]
    if run.workload in THROUGHPUT:
        wanted.append(("throughput", score.THROUGHPUT))
    if run.workload == "static":
        wanted += [("TPOT static", ("tpot_mean_ms", "itl_mean_ms")),
                   ("TTFT static", ("ttft_mean_ms",))]  # fmt: skip
    found = []
    for kind, columns in wanted:
        column = next((c for c in columns if c in run.metrics), None)
        if column is not None:
            found.append((kind, column))
    return found
