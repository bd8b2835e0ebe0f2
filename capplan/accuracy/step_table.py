"""Step times of one deployment for the counted loop: windows see the mean context of a step.

Otherwise like `simulator.model_step_time`. The mean is exact while all contexts of a step lie on
the same side of the window.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from math import inf

from capplan.formulas.attention import context_reads
from capplan.performance.step import StepModel


class StepTable:
    """`StepModel` behind the seam for step times, see `simulator.step_time.StepTime`."""

    def __init__(self, model: StepModel) -> None:
        self._model = model
        costs = model.attention
        self._decode = costs.decode_s_per_sequence
        self._decode_reads = [
            (inf if window is None else window, cost)
            for window, cost in costs.decode_s_per_position.items()
        ]
        self._chunk = costs.prefill_s_per_sequence
        self._chunk_token = costs.prefill_s_per_token
        self._chunk_reads = list(costs.prefill_s_per_position.items())
        self._chunk_kv = [
            (inf if window is None else window, cost)
            for window, cost in costs.prefill_s_per_kv_token.items()
        ]
        self._full_only = set(costs.prefill_s_per_position) <= {None}
        self._decode_fixed: dict[int, float] = {}
        self._layers: dict[tuple[int, bool], float] = {}
        self._rows: dict[int, float] = {}

    def line(self, num_decodes: int, context_tokens: int) -> tuple[float, float, float]:
        """Intercept, slope over the summed context, and the sum up to which they hold."""
        fixed = self._decode_fixed.get(num_decodes)
        if fixed is None:
            fixed = self._decode_fixed[num_decodes] = self._decode_only_s(num_decodes)
        mean = context_tokens / num_decodes
        slope, limit = 0.0, inf
        for window, cost in self._decode_reads:
            if mean < window:
                slope += cost
                limit = min(limit, window)
            else:
                fixed += num_decodes * window * cost
        return fixed, slope, limit * num_decodes

    def mixed(self, num_decodes: int, context_tokens: int, chunks: Items[tuple[int, int]]) -> float:
        """A step of decodes and of prefill chunks, each (tokens, context before)."""
        tokens = 0
        for chunk, _ in chunks:
            tokens += chunk
        prompts = len(chunks)
        seconds = self._prefill_s(chunks, tokens) + prompts * self._chunk
        if num_decodes:
            seconds += num_decodes * self._decode
            mean = context_tokens / num_decodes
            for window, cost in self._decode_reads:
                seconds += num_decodes * min(mean, window) * cost
        seconds += self._layers_s(tokens + num_decodes, num_decodes > 0)
        return seconds + self._rows_s(num_decodes + prompts)

    def _decode_only_s(self, num_decodes: int) -> float:
        time = self._model.by_tokens(num_decodes, has_decodes=1.0, has_prefill=0.0)
        return time.total_s + self._rows_s(num_decodes) + num_decodes * self._decode

    def _prefill_s(self, chunks: Items[tuple[int, int]], tokens: int) -> float:
        seconds = tokens * self._chunk_token
        if self._full_only:
            reads = loaded = 0
            for chunk, before in chunks:
                reads += chunk * before + chunk * (chunk + 1) // 2
                loaded += before + chunk
            for _, cost in self._chunk_reads:
                seconds += reads * cost
            for _, cost in self._chunk_kv:
                seconds += loaded * cost
            return seconds
        for chunk, before in chunks:
            for window, cost in self._chunk_reads:
                seconds += context_reads(chunk, before, window) * cost
            for held, cost in self._chunk_kv:
                seconds += (min(before, held) + chunk) * cost
        return seconds

    def _layers_s(self, tokens: int, has_decodes: bool) -> float:
        found = self._layers.get((tokens, has_decodes))
        if found is None:
            time = self._model.by_tokens(tokens, has_decodes=float(has_decodes), has_prefill=1.0)
            found = self._layers[tokens, has_decodes] = time.total_s
        return found

    def _rows_s(self, rows: int) -> float:
        found = self._rows.get(rows)
        if found is None:
            found = self._rows[rows] = self._model.by_rows(rows).total_s
        return found
