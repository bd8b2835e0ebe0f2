"""A recorded file whose format is known: found out from its beginning, or given."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from capplan.errors import CapplanError, Location
from capplan.simulator.traffic.replay import csv_rows, json_rows, texts
from capplan.simulator.traffic.replay.clock import (
    UNIT_NAMES,
    is_wall_clock,
    number_reader,
    wall_clock_reader,
)
from capplan.simulator.traffic.replay.files import head_of
from capplan.simulator.traffic.replay.formats import (
    CSV,
    JSONL,
    Columns,
    columns_of,
    no_lengths,
    no_such_field,
    normal,
    outputs_of,
)
from capplan.simulator.traffic.replay.rows import Row, RowError
from capplan.specs.traffic import Trace

FIRST_ENTRIES = 1000  # one of them has to be good
_JSON_FORMATS = ("mooncake", "llmservingsim", "jsonl", "sharegpt", "vllm-custom")
TimeReader = Callable[[object], float]


class TraceFile:
    """Its format, and its rows as often as they are wanted."""

    def __init__(self, trace: Trace, folder: Path) -> None:
        """Raises CapplanError where the file cannot be such a trace."""
        self.path = folder / trace.file
        self._trace = trace
        self._columns: Columns | None = None  # None: texts
        self.format: str = trace.format
        self._spelt: dict[str, str] = {}
        self._where: dict[str, str] = {}  # by the file's own spelling
        self.time_unit: str | None = None  # of `time_field`; "clock" for times of day
        head = head_of(self.path)
        self._is_json = head.lstrip()[0] in "[{"
        if trace.format != "auto" and self._is_json != (trace.format in _JSON_FORMATS):
            kind = "JSON" if self._is_json else "CSV"
            problem = f"this is no {trace.format} file: it looks like {kind}"
            raise CapplanError(
                problem, location=Location(str(self.path), 1), hint="leave out `format`"
            )
        if self._is_json:
            self._recognise_json()
        else:
            self._recognise_csv(head)

    @property
    def time_field(self) -> str | None:
        return self._columns.time if self._columns else None

    @property
    def has_hash_ids(self) -> bool:
        return self._columns is not None and self._columns.hash_ids is not None

    def need_outputs(self) -> None:
        """Raises CapplanError where no field holds the output lengths."""
        if self._columns is not None and self._columns.output is None:
            known = outputs_of(self.format, JSONL if self._is_json else CSV)
            raise no_lengths("output", known, self._spelt, Location(str(self.path), 1))

    @property
    def estimates_tokens(self) -> bool:
        return self._columns is None

    def rows(self, needs_output: bool) -> Iterator[Row | RowError]:
        """From the beginning of the file. Raises CapplanError where it cannot be read."""
        if self._columns is None:
            size = self._trace.characters_per_token
            if self.format == "sharegpt":
                return texts.conversation_rows(self.path, size)
            return texts.custom_rows(self.path, size, needs_output)
        read_rows = json_rows.json_rows if self._is_json else csv_rows.csv_rows
        return read_rows(self.path, self._columns, self._time_reader(), self._where)

    def _time_reader(self) -> TimeReader | None:
        if self.time_field is None or self.time_unit is None:
            return None
        if self.time_unit == "clock":
            return wall_clock_reader(self.time_field)
        return number_reader(self.time_field, self.time_unit)

    def _recognise_csv(self, head: str) -> None:
        lines = io.StringIO(head)
        header, delimiter = csv_rows.header_of(next(lines))
        csv_rows.refuse_rates(header, self.path)
        second = next((line for line in lines if line.strip()), "")
        first = dict(zip(header, second.rstrip("\r\n").split(delimiter), strict=False))
        self._recognise_fields(header, first, 1)

    def _recognise_json(self) -> None:
        number, entry = self._first_object()
        given = self._trace.format
        if given == "sharegpt" or (given == "auto" and texts.is_conversation(entry)):
            self.format = "sharegpt"
        elif given == "vllm-custom" or (given == "auto" and texts.is_custom_prompt(entry)):
            self.format = "vllm-custom"
        else:
            self._recognise_fields(entry, entry, number)
            return
        for option in ("where", "columns", "sessions"):
            if getattr(self._trace, option):
                problem = f"`{option}` says nothing about a file of texts ({self.format})"
                raise CapplanError(problem, location=Location(str(self.path), number))

    def _first_object(self) -> tuple[int, json_rows.Json]:
        """What tells the fields; bad entries before it may be passed over like later ones."""
        for number, entry in islice(json_rows.objects_of(self.path), FIRST_ENTRIES):
            if not isinstance(entry, RowError):
                return number, entry
            if not self._trace.skip_bad_rows:
                place = Location(str(self.path), number)
                raise CapplanError(entry.message, hint=entry.hint, location=place)
        raise CapplanError(
            "the file holds no request",
            location=Location(str(self.path), 1),
            hint="one JSON object a request: docs/traffic.md has the formats",
        )

    def _recognise_fields(
        self, names: Iterable[str], first: Mapping[str, object], line: int
    ) -> None:
        generic = JSONL if self._is_json else CSV
        place = Location(str(self.path), line)
        given = self._trace.columns.given if self._trace.columns else {}
        columns = columns_of(names, generic, self._trace.format, given, place)
        self._columns, self.format = columns, columns.format
        self._spelt = spelt = {normal(name): name for name in names}
        for name, value in self._trace.where.items():
            if normal(name) not in spelt:
                raise no_such_field(name, "where", spelt, place)
            self._where[spelt[normal(name)]] = value
        if self._trace.sessions and columns.session is None:
            hint = "name it with `columns: {session: ...}`"
            raise CapplanError("no field holds a session", hint=hint, location=place)
        if columns.time is None:
            return
        asked, known = self._trace.time_unit, columns.time_unit
        if asked == "auto" and (known == "" or is_wall_clock(first.get(columns.time))):
            self.time_unit = "clock"
        elif asked != "auto" or known in UNIT_NAMES:
            self.time_unit = asked if asked != "auto" else known
        else:
            hint = "say it in a plan: `trace: {time_unit: ms}`, or call the field `timestamp_ms`"
            problem = f"`{columns.time}` does not say its unit"
            raise CapplanError(problem, location=place, hint=hint)
