"""Step times of one deployment for the counted loop: windows, and copies of the attention.

Like `simulator.model_step_time`, but windows see the mean context of a step (exact while all its
contexts lie on the same side of the window), and a batch over several copies of the attention is
dealt evenly: the busiest copy takes the rounded-up part of the prompts, experts see all tokens.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from math import ceil, inf

from capplan.formulas.attention import context_reads
from capplan.performance.step import StepModel


class StepTable:
    """`StepModel` behind the seam for step times, see `simulator.step_time.StepTime`."""

    def __init__(self, model: StepModel) -> None:
        self._model = model
        self._copies = model.dp
        costs, stages = model.attention, model.pp
        self._decode = costs.decode_s_per_sequence / stages
        self._decode_reads = [
            (inf if window is None else window, cost / stages)
            for window, cost in sorted(
                costs.decode_s_per_position.items(), key=lambda item: item[0] or inf
            )
        ]
        self._chunk = costs.prefill_s_per_sequence / stages
        self._chunk_token = costs.prefill_s_per_token / stages
        self._chunk_reads = [(w, c / stages) for w, c in costs.prefill_s_per_position.items()]
        self._chunk_kv = [
            (inf if w is None else w, c / stages) for w, c in costs.prefill_s_per_kv_token.items()
        ]
        self._full_only = set(costs.prefill_s_per_position) <= {None}
        self._decode_fixed: dict[int, float] = {}
        self._layers: dict[tuple[int, bool], float] = {}
        self._experts: dict[int, float] = {}
        self._rows: dict[int, float] = {}

    def line(self, num_decodes: int, context_tokens: int) -> tuple[float, float, float]:
        """Intercept, slope over the summed context, and the sum up to which they hold."""
        fixed = self._decode_fixed.get(num_decodes)
        if fixed is None:
            fixed = self._decode_fixed[num_decodes] = self._decode_only_s(num_decodes)
        mean = context_tokens / num_decodes
        busiest = ceil(num_decodes / self._copies)
        slope, limit = 0.0, inf
        for window, cost in self._decode_reads:
            if mean < window:
                slope += cost
                limit = min(limit, window)
            else:
                fixed += busiest * window * cost
        return fixed, slope * busiest / num_decodes, limit * num_decodes

    def mixed(self, num_decodes: int, context_tokens: int, chunks: Items[tuple[int, int]]) -> float:
        """A step of decodes and of prefill chunks, each (tokens, context before)."""
        total = 0
        for chunk, _ in chunks:
            total += chunk
        decodes, share = num_decodes, 1.0
        prompts = len(chunks)
        if self._copies > 1:
            decodes, prompts = ceil(num_decodes / self._copies), ceil(prompts / self._copies)
            share = prompts / len(chunks)
        seconds = share * self._prefill_s(chunks, total) + prompts * self._chunk
        if num_decodes:
            seconds += decodes * self._decode
            mean = context_tokens / num_decodes
            for window, cost in self._decode_reads:
                seconds += decodes * min(mean, window) * cost
        tokens = decodes + ceil(share * total)
        seconds += self._layers_s(tokens, num_decodes > 0, num_decodes + total)
        return seconds + self._rows_s(decodes + prompts)

    def _decode_only_s(self, num_decodes: int) -> float:
        busiest = ceil(num_decodes / self._copies)
        time = self._model.by_tokens(busiest, has_decodes=1.0, has_prefill=0.0)
        return time.total_s + self._rows_s(busiest) + busiest * self._decode

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

    def _layers_s(self, tokens: int, has_decodes: bool, all_tokens: int) -> float:
        """Layers on the busiest copy; with several copies, its experts work for all of them."""
        found = self._layers.get((tokens, has_decodes))
        if found is None:
            time = self._model.by_tokens(tokens, has_decodes=float(has_decodes), has_prefill=1.0)
            found = time.total_s - (time.experts_s if self._copies > 1 else 0.0)
            self._layers[tokens, has_decodes] = found
        if self._copies == 1:
            return found
        experts = self._experts.get(all_tokens)
        if experts is None:
            mean = all_tokens / self._copies
            time = self._model.by_tokens(mean, has_decodes=1.0, has_prefill=1.0)
            experts = self._experts[all_tokens] = time.experts_s
        return found + experts

    def _rows_s(self, rows: int) -> float:
        found = self._rows.get(rows)
        if found is None:
            found = self._rows[rows] = self._model.by_rows(rows).total_s
        return found
