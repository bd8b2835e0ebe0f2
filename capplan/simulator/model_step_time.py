"""The performance model as a step time that is quick to ask again and again.

`performance.step` is separable: a part by tokens, a part by sequences, and attention, which is
linear in its sums. The first two are kept for each number that was asked for; attention is a few
coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from math import inf

from capplan.formulas.attention import context_reads
from capplan.formulas.kv import tokens_held
from capplan.performance.step import StepModel
from capplan.simulator.step_time import ChunkSums, WindowSum


class ModelStepTime:
    """`StepModel` behind the simulator's seam."""

    def __init__(self, model: StepModel) -> None:
        self._model = model
        costs = model.attention
        reads = dict(costs.decode_s_per_position)
        self._decode = costs.decode_s_per_sequence
        self._decode_read = reads.pop(None, 0.0)
        mixed = dict(costs.mixed_s_per_position)
        self._mixed_read = mixed.pop(None, 0.0)
        self.windows = tuple(w for w in reads if w is not None)
        self._window_reads = tuple(reads.values())
        self._mixed_window_reads = tuple(mixed.values())
        attended = dict(costs.prefill_s_per_position)
        loaded = dict(costs.prefill_s_per_kv_token)
        # Prefill attention of a chunk of n tokens after m others reads n * (m + (n + 1) / 2)
        # positions and loads n + m tokens: in powers of n and m it is quicker to ask.
        read, kv = attended.pop(None, 0.0), loaded.pop(None, 0.0)
        self._chunk = costs.prefill_s_per_sequence
        self._chunk_n = costs.prefill_s_per_token + kv + read / 2
        self._chunk_nm, self._chunk_nn, self._chunk_m = read, read / 2, kv
        self._windows_read = tuple(attended.items())
        self._windows_kv = tuple(loaded.items())
        self._has_windows = bool(attended or loaded or self.windows)
        # Steps of decodes alone; with prefill; with both; the part of the sequences.
        self._decodes: dict[int, float] = {}
        self._prefills: dict[int, float] = {}
        self._mixed: dict[int, float] = {}
        self._rows: dict[int, float] = {}
        self._decodes_s(1)  # the model's own parts are made now, not in the first step

    def line(
        self, num_decodes: int, context_tokens: int, windows: Items[WindowSum] = ()
    ) -> tuple[float, float, float]:
        try:
            seconds = self._decodes[num_decodes]
        except KeyError:
            seconds = self._decodes_s(num_decodes)
        slope = self._decode_read
        if not self._has_windows:
            return seconds, slope, inf
        for cost, (reads, growing) in zip(self._window_reads, windows, strict=True):
            if not growing:
                seconds += cost * reads
                continue
            # The sum as a straight line in the context. The whole number is the same in every
            # step of a stretch, so that the clock does not depend on where it is asked for.
            at_zero = reads * num_decodes - context_tokens * growing
            seconds += cost * (at_zero / num_decodes)
            slope += cost * growing / num_decodes
        return seconds, slope, inf

    def mixed(
        self,
        num_decodes: int,
        context_tokens: int,
        chunks: Items[ChunkSums],
        windows: Items[WindowSum] = (),
    ) -> float:
        rows, tokens, seconds = num_decodes, num_decodes, 0.0
        if num_decodes:
            known = self._mixed
            seconds = num_decodes * self._decode + context_tokens * self._mixed_read
        else:
            known = self._prefills
        for chunk, before in chunks:
            rows += 1
            tokens += chunk
            seconds += self._chunk + chunk * (self._chunk_n + chunk * self._chunk_nn)
            if before:
                seconds += before * (self._chunk_m + chunk * self._chunk_nm)
        if self._has_windows:
            seconds += self._in_windows_s(chunks)
            if num_decodes:
                for cost, (read, _) in zip(self._mixed_window_reads, windows, strict=True):
                    seconds += cost * read
        try:
            return seconds + known[tokens] + self._rows[rows]
        except KeyError:
            known[tokens] = self._model.by_tokens(
                tokens, has_decodes=float(num_decodes > 0), has_prefill=1.0
            ).total_s
            self._rows[rows] = self._model.by_rows(rows).total_s
            return seconds + known[tokens] + self._rows[rows]

    def _decodes_s(self, num_decodes: int) -> float:
        fixed = self._model.fixed(num_decodes, num_decodes, has_decodes=1.0, has_prefill=0.0)
        seconds = self._decodes[num_decodes] = fixed.total_s + num_decodes * self._decode
        return seconds

    def _in_windows_s(self, chunks: Items[ChunkSums]) -> float:
        """Prefill attention of layers with windows."""
        seconds = 0.0
        for chunk, before in chunks:
            for window, cost in self._windows_read:
                seconds += cost * context_reads(chunk, before, window)
            for window, cost in self._windows_kv:
                seconds += cost * (chunk + tokens_held(before, window))
        return seconds
