"""Measured runs, one row each, in the documented schema (docs/accuracy.md)."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from capplan.errors import CapplanError, Location, nearest_name, one_line

Workload = Literal[
    "closed", "poisson", "constant-rate", "burst", "offline", "static", "offline-batch"
]
WORKLOADS: tuple[Workload, ...] = get_args(Workload)

# In the units that their names say, which are those of benchmark tools.
METRICS = (
    "output_tok_s",
    "total_tok_s",
    "req_s",
    "ttft_mean_ms",
    "ttft_p50_ms",
    "ttft_p99_ms",
    "tpot_mean_ms",
    "tpot_p50_ms",
    "tpot_p99_ms",
    "itl_mean_ms",
    "e2e_mean_ms",
)
REQUIRED = ("id", "model", "gpu", "workload")
# Their TTFT is the length of the queue that the client made.
QUEUE_MADE_BY_CLIENT = frozenset({"burst", "offline", "offline-batch"})
_SWITCHES = {
    "on": True, "yes": True, "true": True, "1": True,
    "off": False, "no": False, "false": False, "0": False,
}  # fmt: skip
_UNKNOWN = frozenset({"", "nan", "none", "null", "n/a", "-"})


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """One run; None is a cell that its source does not state.

    ``metrics`` holds what was measured, by column; ``columns`` every cell as written.
    """

    id: str
    model: str
    gpu: str
    workload: Workload
    engine: str
    engine_version: str
    source_date: str
    params_b: float | None
    weight_dtype: str
    kv_dtype: str
    num_gpus: int | None
    tp: int | None
    pp: int | None
    ep: int | None
    isl: float | None
    osl: float | None
    dataset: str
    concurrency: int | None
    request_rate_qps: float | None  # infinite: all at once
    num_prompts: int | None
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    max_model_len: int | None
    gpu_memory_fraction: float | None
    chunked_prefill: bool | None
    prefix_caching: bool | None
    async_scheduling: bool | None
    attention_dp: bool | None
    warmup_requests: int | None
    range_ratio: float | None
    scheduler_recv_interval: int | None
    batch_wait_timeout_iters: int | None
    batch_wait_max_tokens_ratio: float | None
    cuda_graph_max_bs: int | None
    moe_backend: str
    metrics: Mapping[str, float]
    columns: Mapping[str, str]

    @property
    def scored(self) -> Mapping[str, float]:
        """What a prediction is compared with: no latencies where the client made the queue."""
        if self.workload not in QUEUE_MADE_BY_CLIENT:
            return self.metrics
        rates = ("output_tok_s", "total_tok_s", "req_s")
        return {name: value for name, value in self.metrics.items() if name in rates}


def read_measured(path: Path) -> list[MeasuredRun]:
    """All rows of a CSV file.

    Raises CapplanError with file, line, column name and value for a cell that cannot be read.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as handle:
            reader = csv.DictReader(handle, strict=True)
            _check_header(path, reader.fieldnames)
            runs = []
            seen: dict[str, int] = {}
            for row in reader:
                run = _Row(path, reader.line_num, row).run()
                if run.id in seen:
                    again = f"also line {seen[run.id]}"
                    raise CellError(path, reader.line_num, "id", run.id, again)
                seen[run.id] = reader.line_num
                runs.append(run)
    except OSError as error:
        raise CapplanError(
            f"cannot read `{path}`: {error.strerror or error}", hint="give a CSV file"
        ) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise CapplanError(
            f"`{path}` is not a CSV file: {error}",
            hint="a header, then one row a measured run, as docs/accuracy.md describes them",
        ) from None
    if not runs:
        raise CapplanError(f"`{path}` holds no rows", hint="one row a measured run")
    return runs


def run_of_cells(path: Path, line: int, cells: Mapping[str, str]) -> MeasuredRun:
    """One run from texts by column, wherever they were found.

    Raises CapplanError as `read_measured` does.
    """
    return _Row(path, line, cells).run()


def _check_header(path: Path, names: object) -> None:
    columns = [str(name) for name in names] if isinstance(names, (list, tuple)) else []
    for required in REQUIRED:
        if required not in columns:
            near = nearest_name(required, columns)
            raise CapplanError(
                f"column `{required}` is missing",
                location=Location(str(path), 1, 1),
                hint=f"did you mean `{near}`?"
                if near
                else f"a table of measured runs has the columns {', '.join(REQUIRED)}",
            )
    for name in columns:
        if columns.count(name) > 1:
            raise CapplanError(
                f"column `{name}` stands twice",
                location=Location(str(path), 1, 1),
                hint="rename one of them",
            )


class CellError(CapplanError):
    """A cell that cannot be read: ``column``, ``value`` as shown, and ``what`` is wrong with it."""

    def __init__(self, path: Path, line: int, column: str, value: str, what: str) -> None:
        short = one_line(value, 40)
        super().__init__(
            f"column `{column}`: `{short}`: {what}",
            location=Location(str(path), line, 1),
            hint="leave the cell empty where it is not known",
        )
        self.column, self.value, self.what = column, short, what


class _Row:
    """The cells of one row, read one by one."""

    def __init__(
        self, path: Path, line: int, cells: Mapping[str, str | None] | Mapping[str, str]
    ) -> None:
        self.path, self.line = path, line
        # DictReader puts surplus cells under None, and None for cells that are missing.
        if None in cells:
            raise CapplanError(
                "more cells than the header has columns",
                location=Location(str(path), line, 1),
                hint="put a cell that holds a comma between quotes",
            )
        self.cells = {name: (value or "").strip() for name, value in cells.items()}

    def run(self) -> MeasuredRun:
        text, count, number = self.text, self.count, self.number
        for name in REQUIRED:
            if not text(name):
                raise CellError(self.path, self.line, name, "", "must be given")
        return MeasuredRun(
            id=text("id"),
            model=text("model"),
            gpu=text("gpu"),
            workload=self.workload(),
            engine=text("engine"),
            engine_version=text("engine_version"),
            source_date=text("source_date"),
            params_b=number("params_b"),
            weight_dtype=text("weight_dtype").lower(),
            kv_dtype=text("kv_dtype").lower(),
            num_gpus=count("num_gpus"),
            tp=count("tp"),
            pp=count("pp"),
            ep=count("ep"),
            isl=number("isl"),
            osl=number("osl"),
            dataset=text("dataset"),
            concurrency=count("concurrency"),
            request_rate_qps=number("request_rate_qps", infinite=True),
            num_prompts=count("num_prompts"),
            max_num_seqs=count("max_num_seqs"),
            max_num_batched_tokens=self.setting("max_num_batched_tokens"),
            max_model_len=self.setting("max_model_len") or self.noted_length(),
            gpu_memory_fraction=self.first_number("gpu_memory_fraction"),
            chunked_prefill=self.switch("chunked_prefill"),
            prefix_caching=self.switch("prefix_caching"),
            async_scheduling=self.switch("async_scheduling"),
            attention_dp=self.switch("attention_dp"),
            warmup_requests=self.setting("warmup_requests"),
            range_ratio=number("range_ratio"),
            scheduler_recv_interval=self.setting("scheduler_recv_interval"),
            batch_wait_timeout_iters=self.setting("batch_wait_timeout_iters"),
            batch_wait_max_tokens_ratio=number("batch_wait_max_tokens_ratio"),
            cuda_graph_max_bs=self.captured_sequences(),
            moe_backend=text("moe_backend"),
            metrics=dict(self.metrics()),
            columns=self.cells,
        )

    def text(self, name: str) -> str:
        value = self.cells.get(name, "")
        return "" if value.lower() in _UNKNOWN else value

    def workload(self) -> Workload:
        value = self.text("workload")
        for known in WORKLOADS:
            if value == known:
                return known
        near = nearest_name(value, WORKLOADS)
        what = f"did you mean `{near}`?" if near else f"one of {', '.join(WORKLOADS)}"
        raise CellError(self.path, self.line, "workload", value, what)

    def number(self, name: str, *, infinite: bool = False) -> float | None:
        value = self.text(name)
        if not value:
            return None
        try:
            read = float(value)
        except ValueError:
            raise CellError(self.path, self.line, name, value, "is not a number") from None
        if math.isnan(read) or read < 0 or (math.isinf(read) and not infinite):
            raise CellError(self.path, self.line, name, value, "must be a number from 0 up")
        return read

    def count(self, name: str) -> int | None:
        read = self.number(name)
        if read is None:
            return None
        if read != int(read) or read < 1:
            raise CellError(self.path, self.line, name, self.text(name), "is not a whole number")
        return int(read)

    def first_number(self, name: str) -> float | None:
        """Of a setting that may be described in words, as in "0.95 (0.90 after OOM)"."""
        found = re.search(r"\d+(?:\.\d+)?", self.text(name))
        return float(found[0]) if found else None

    def setting(self, name: str) -> int | None:
        """A count, or None where the cell describes it in words."""
        value = self.text(name)
        return int(float(value)) if re.fullmatch(r"\d{1,9}(\.0*)?", value) else None

    def captured_sequences(self) -> int | None:
        """Sequences that CUDA graphs were captured for: 0 where the cell says eager."""
        if "eager" in self.text("cuda_graph_max_bs"):
            return 0
        return self.setting("cuda_graph_max_bs")

    def noted_length(self) -> int | None:
        """``max_model_len`` where only the notes state it."""
        notes = f"{self.text('notes')} {self.text('settings_notes')}"
        found = re.search(r"max[-_]model[-_]len[ =:]+(\d{2,7})", notes)
        return int(found[1]) if found else None

    def switch(self, name: str) -> bool | None:
        """Cells say on, yes, off, no, sometimes with a remark behind."""
        word = re.split(r"[^a-z0-9]", self.text(name).lower(), maxsplit=1)[0]
        return _SWITCHES.get(word)

    def metrics(self) -> Iterator[tuple[str, float]]:
        for name in METRICS:
            value = self.number(name)
            if value:
                yield name, value
