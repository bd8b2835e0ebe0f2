"""The performance model as a step time that is quick to ask again and again.

`performance.step` is separable: a part by tokens, a part by sequences, and attention, which is
linear in its sums. The first two are kept for each number that was asked for; attention is a few
coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence as Items

from capplan.formulas.kv import tokens_held
from capplan.performance.batch import Chunk
from capplan.performance.step import StepModel
from capplan.simulator.step_time import ChunkSums


class ModelStepTime:
    """`StepModel` behind the simulator's seam, for models with full attention only."""

    def __init__(self, model: StepModel) -> None:
        if model.windows != (None,):
            raise ValueError("attention windows need the contexts: use ModelContextTime")
        self._model = model
        costs, stages = model.attention, model.pp
        self._decode = costs.decode_s_per_sequence / stages
        self._decode_read = costs.decode_s_per_position.get(None, 0.0) / stages
        self._chunk = costs.prefill_s_per_sequence / stages
        self._chunk_token = costs.prefill_s_per_token / stages
        self._chunk_read = costs.prefill_s_per_position.get(None, 0.0) / stages
        self._chunk_kv = costs.prefill_s_per_kv_token.get(None, 0.0) / stages
        # Steps of decodes alone; with prefill; with both; the part of the sequences.
        self._decodes: dict[int, float] = {}
        self._prefills: dict[int, float] = {}
        self._mixed: dict[int, float] = {}
        self._rows: dict[int, float] = {}

    def line(self, num_decodes: int, context_tokens: int) -> tuple[float, float, float]:  # noqa: ARG002
        try:
            fixed = self._decodes[num_decodes]
        except KeyError:
            fixed = self._model.fixed(
                num_decodes, num_decodes, has_decodes=1.0, has_prefill=0.0
            ).total_s
            fixed += num_decodes * self._decode
            self._decodes[num_decodes] = fixed
        return fixed, self._decode_read, float("inf")

    def mixed(self, num_decodes: int, context_tokens: int, chunks: Items[ChunkSums]) -> float:
        tokens = reads = loaded = 0
        for chunk, before in chunks:
            tokens += chunk
            reads += chunk * before + chunk * (chunk + 1) // 2
            loaded += before + chunk
        seconds = tokens * self._chunk_token + reads * self._chunk_read + loaded * self._chunk_kv
        seconds += len(chunks) * self._chunk
        rows = num_decodes + len(chunks)
        tokens += num_decodes
        if num_decodes:
            seconds += num_decodes * self._decode + context_tokens * self._decode_read
        known = self._mixed if num_decodes else self._prefills
        try:
            return seconds + known[tokens] + self._rows[rows]
        except KeyError:
            known[tokens] = self._model.by_tokens(
                tokens, has_decodes=float(num_decodes > 0), has_prefill=1.0
            ).total_s
            self._rows[rows] = self._model.by_rows(rows).total_s
            return seconds + known[tokens] + self._rows[rows]


class ModelContextTime:
    """`StepModel` for models with attention windows: asked with every context."""

    def __init__(self, model: StepModel) -> None:
        self._model = model

    def contexts(self, decodes: Items[int], chunks: Items[ChunkSums]) -> float:
        windows = self._model.windows
        reads = {w: float(sum(tokens_held(c, w) for c in decodes)) for w in windows}
        parts = [Chunk(tokens, before) for tokens, before in chunks]
        if parts:
            return self._model.mixed(len(decodes), reads, parts).total_s
        return self._model.decode(len(decodes), reads).total_s
