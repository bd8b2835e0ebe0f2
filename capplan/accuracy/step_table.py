"""Step times of one deployment from a grid that is filled on demand.

Thousands of rows ask a few hundred deployments for millions of steps. Between the nodes of the
grid times are interpolated in a straight line; nodes lie so close that this is below 0.5 %
(``tests/test_accuracy.py``). Windows see the mean context: exact while all contexts of a step lie
on the same side of the window.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from collections.abc import Sequence as Items

from capplan.formulas.attention import context_reads
from capplan.formulas.kv import tokens_held
from capplan.performance.batch import Batch
from capplan.performance.step import StepModel

_EXACT = 16  # every whole number up to here is a node
_PER_OCTAVE = 6
_MOST = 2**24
_REFERENCE_TOKENS = 2**15  # at which the share of sampled rows is taken


def _nodes(per_octave: int) -> list[float]:
    """1, 2, .., 16, then so many an octave."""
    nodes = [float(n) for n in range(1, _EXACT + 1)]
    while nodes[-1] < _MOST:
        nodes.append(nodes[-1] * 2 ** (1 / per_octave))
    return nodes


_FINE = _nodes(_PER_OCTAVE)
_COARSE = [2.0 ** (power / 2) for power in range(2, 50)]


class _Curve:
    """A function of one positive number, straight between nodes."""

    def __init__(self, function: Callable[[float], float]) -> None:
        self._function = function
        self._nodes: dict[int, float] = {}
        self._values: dict[float, float] = {}

    def __call__(self, x: float) -> float:
        value = self._values.get(x)
        if value is None:
            value = self._values[x] = self._between(x)
        return value

    def _between(self, x: float) -> float:
        at = max(0, bisect_right(_FINE, x) - 1)
        low = self._node(at)
        if _FINE[at] >= x:
            return low
        share = (x - _FINE[at]) / (_FINE[at + 1] - _FINE[at])
        return low + share * (self._node(at + 1) - low)

    def _node(self, at: int) -> float:
        value = self._nodes.get(at)
        if value is None:
            value = self._nodes[at] = self._function(_FINE[at])
        return value


class StepTable:
    """`StepModel` behind the simulator's seam for step times."""

    def __init__(self, model: StepModel) -> None:
        self._model = model
        self._decode_rest = _Curve(self._decode_rest_s)
        self._mixed_rest = _Curve(self._mixed_rest_s)
        self._rows = _Curve(self._rows_s)
        self._attention_nodes: dict[tuple[int, int], float] = {}
        self._lines: dict[tuple[int, int], tuple[float, float]] = {}
        self._chunks: dict[tuple[int, int], tuple[float, float]] = {}

    def line(self, num_decodes: int, context_tokens: int) -> tuple[float, float, float]:
        """Intercept, slope over the summed context, and the sum up to which they hold."""
        at = max(0, bisect_right(_COARSE, context_tokens / num_decodes) - 1)
        found = self._lines.get((num_decodes, at))
        if found is None:
            found = self._lines[num_decodes, at] = self._line(num_decodes, at)
        intercept, slope = found
        return (
            intercept + self._decode_rest(num_decodes),
            slope,
            _COARSE[at + 1] * num_decodes,
        )

    def mixed(self, num_decodes: int, context_tokens: int, chunks: Items[tuple[int, int]]) -> float:
        """A step of decodes and of prefill chunks, each (tokens, context before)."""
        tokens = num_decodes
        for chunk, _ in chunks:
            tokens += chunk
        seconds = self._mixed_rest(tokens) + self._rows(num_decodes + len(chunks))
        if num_decodes:
            intercept, slope, _ = self.line(num_decodes, context_tokens)
            seconds += intercept - self._decode_rest(num_decodes) + slope * context_tokens
        seconds += self._prefill(chunks)
        return seconds

    def _line(self, num: int, at: int) -> tuple[float, float]:
        low, high = _COARSE[at], _COARSE[at + 1]
        first, last = self._attention(num, at), self._attention(num, at + 1)
        slope = (last - first) / ((high - low) * num)
        return first - slope * low * num, slope

    def _attention(self, num: int, at: int) -> float:
        """Decode attention of ``num`` sequences of the mean context of a node."""
        node = max(0, bisect_right(_FINE, num) - 1)
        low = self._attention_node(node, at)
        if _FINE[node] >= num:
            return low
        share = (num - _FINE[node]) / (_FINE[node + 1] - _FINE[node])
        return low + share * (self._attention_node(node + 1, at) - low)

    def _attention_node(self, node: int, at: int) -> float:
        value = self._attention_nodes.get((node, at))
        if value is None:
            num, context = _FINE[node], _COARSE[at]
            batch = Batch(num, {w: num * tokens_held(context, w) for w in self._model.windows})
            value = self._attention_nodes[node, at] = self._model.time(batch).attention_s
        return value

    def _prefill(self, chunks: Items[tuple[int, int]]) -> float:
        """Prefill attention: a fixed part and one for each chunk."""
        fixed = total = 0.0
        for chunk, before in chunks:
            # Nodes of tokens and context; what a chunk reads is then scaled to its own.
            node = (max(0, bisect_right(_FINE, chunk) - 1), bisect_right(_FINE, before))
            found = self._chunks.get(node)
            if found is None:
                found = self._chunks[node] = self._chunk(*node)
            fixed, each = found
            reads = chunk * (before + chunk / 2)
            tokens = _FINE[node[0]]
            context = _FINE[node[1] - 1] if node[1] else 0.0
            total += each * reads / (tokens * (context + tokens / 2))
        return fixed + total

    def _chunk(self, tokens_at: int, context_at: int) -> tuple[float, float]:
        tokens = _FINE[tokens_at]
        context = _FINE[context_at - 1] if context_at else 0.0
        one, two = (self._chunks_s(tokens, context, num) for num in (1, 2))
        each = two - one
        return one - each, each

    def _chunks_s(self, tokens: float, context: float, num: int) -> float:
        windows = self._model.windows
        batch = Batch(
            0.0,
            {},
            prefill_tokens=num * tokens,
            num_prefills=float(num),
            prefill_reads={w: num * context_reads(tokens, context, w) for w in windows},  # type: ignore[arg-type]
            prefill_kv_tokens={w: num * (tokens + tokens_held(context, w)) for w in windows},  # type: ignore[arg-type]
        )
        return self._model.time(batch).attention_s

    def _decode_rest_s(self, num: float) -> float:
        """All but attention, of a step of decodes."""
        time = self._model.time(Batch(num, dict.fromkeys(self._model.windows, 0.0)))
        return time.total_s - time.attention_s

    def _mixed_rest_s(self, tokens: float) -> float:
        """All but attention, of a step of prompts that samples one row."""
        return self._rest_s(tokens, 1.0)

    def _rows_s(self, rows: float) -> float:
        """What more sampled rows add."""
        return self._rest_s(_REFERENCE_TOKENS, rows) - self._rest_s(_REFERENCE_TOKENS, 1.0)

    def _rest_s(self, tokens: float, rows: float) -> float:
        windows = self._model.windows
        decodes = rows - 1
        nothing = dict.fromkeys(windows, 0.0)
        batch = Batch(decodes, nothing, tokens - decodes, 1.0, nothing, nothing)
        time = self._model.time(batch)
        return time.total_s - time.attention_s
