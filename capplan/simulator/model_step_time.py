"""The performance model as a step time that is quick to ask again and again.

`performance.step` builds each answer from the model's tensors. Its parts are functions of a few
sums, most of them straight lines with kinks; here each is kept as segments, found on demand to
within `TOLERANCE` of the original.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from collections.abc import Sequence as Items
from math import ceil, frexp, ldexp

from capplan.performance.step import Batch, Chunk, StepModel
from capplan.simulator.step_time import ChunkSums, WindowSum

TOLERANCE = 1e-7  # relative, of a segment against the function, at its quarter points


# The function is intercept + slope * x for start <= x < end.
Segment = tuple[float, float, float, float]

EMPTY: Segment = (0.0, 0.0, 0.0, 0.0)


class Curve:
    """A function of one positive number as straight segments."""

    def __init__(self, function: Callable[[float], float]) -> None:
        self._function = function
        self._starts: dict[int, list[float]] = {}  # by power of two
        self._segments: dict[int, list[Segment]] = {}

    def segment(self, x: float) -> Segment:
        """The segment that holds x > 0."""
        power = frexp(x)[1]
        starts = self._starts.get(power)
        if starts is None:
            starts = self._starts[power] = []
            self._segments[power] = []
            low, high = ldexp(0.5, power), ldexp(1.0, power)
            self._split(power, low, self._function(low), high, self._function(high))
        return self._segments[power][bisect_right(starts, x) - 1]

    def __call__(self, x: float) -> float:
        intercept, slope, _, _ = self.segment(x)
        return intercept + slope * x

    def _split(self, power: int, low: float, at_low: float, high: float, at_high: float) -> None:
        middle = (low + high) / 2
        at_middle = self._function(middle)
        slope = (at_high - at_low) / (high - low)
        straight = high - low <= low * 2e-4
        if not straight and abs(at_middle - (at_low + at_high) / 2) <= TOLERANCE * at_middle:
            quarter = (low + middle) / 2
            chord = (at_low + at_middle) / 2
            straight = abs(self._function(quarter) - chord) <= TOLERANCE * chord
        if straight:
            self._starts[power].append(low)
            self._segments[power].append((at_low - slope * low, slope, low, high))
        else:
            self._split(power, low, at_low, middle, at_middle)
            self._split(power, middle, at_middle, high, at_high)


class ModelStepTime:
    """`StepModel` behind the simulator's seam."""

    def __init__(self, model: StepModel) -> None:
        self._model = model
        self.windows = tuple(w for w in model.windows if w is not None)
        self._products = Curve(lambda tokens: _products_s(model, tokens))
        self._sampling = Curve(lambda rows: _sampling_s(model, rows))
        # Attention grows in proportion with all of its sums: per decode it depends on the mean
        # of what is read, per KV token of the chunks on the positions attended to per such token.
        self._decodes = Curve(lambda mean: model.decode(1.0, {None: mean}).attention_s)
        self._in_window = [Curve(_window_attention(model, w)) for w in self.windows]
        self._prefill = Curve(lambda ratio: _prefill_attention_s(model, ratio))
        self._decode_segment = self._prefill_segment = EMPTY
        # Matrix products and collectives by tokens; what sampling adds by rows.
        self._by_tokens: dict[int, float] = {}
        self._by_rows: dict[int, float] = {}

    def line(
        self, num_decodes: int, context_tokens: int, windows: Items[WindowSum] = ()
    ) -> tuple[float, float, float]:
        try:
            fixed = self._by_tokens[num_decodes] + self._by_rows[num_decodes]
        except KeyError:
            fixed = self._fixed_s(num_decodes, num_decodes)
        mean = context_tokens / num_decodes
        intercept, slope, start, end = self._decode_segment
        if not start <= mean < end:
            intercept, slope, start, end = self._decode_segment = self._decodes.segment(mean)
        fixed += intercept * num_decodes
        limit = end * num_decodes
        for curve, (reads, growing) in zip(self._in_window, windows, strict=True):
            intercept, rise, _, end = curve.segment(reads / num_decodes)
            fixed += intercept * num_decodes
            if not growing:
                fixed += rise * reads
                continue
            # The sum as a straight line in the context. The whole number is the same in every
            # step of a stretch, so that the clock does not depend on where it is asked for.
            fixed += rise * ((reads * num_decodes - context_tokens * growing) / num_decodes)
            slope += rise * growing / num_decodes
            steps = ceil((end * num_decodes - reads) / growing)
            limit = min(limit, context_tokens + steps * num_decodes)
        return fixed, slope, limit

    def mixed(
        self,
        num_decodes: int,
        context_tokens: int,
        chunks: Items[ChunkSums],
        windows: Items[WindowSum] = (),
    ) -> float:
        tokens = reads = loaded = 0
        for chunk, before in chunks:
            tokens += chunk
            reads += chunk * before + chunk * (chunk + 1) // 2
            loaded += before + 2 * chunk  # read and written
        rows = num_decodes + len(chunks)
        try:
            seconds = self._by_tokens[tokens + num_decodes] + self._by_rows[rows]
        except KeyError:
            seconds = self._fixed_s(tokens + num_decodes, rows)
        if self.windows:
            parts = [Chunk(*chunk) for chunk in chunks]
            seconds += self._model.mixed(0, {}, parts).attention_s
        else:
            intercept, slope, start, end = self._prefill_segment
            if not start <= reads / loaded < end:
                segment = self._prefill_segment = self._prefill.segment(reads / loaded)
                intercept, slope, start, end = segment
            seconds += intercept * loaded + slope * reads
        if num_decodes:
            mean = context_tokens / num_decodes
            intercept, slope, start, end = self._decode_segment
            if not start <= mean < end:
                intercept, slope, start, end = self._decode_segment = self._decodes.segment(mean)
            seconds += intercept * num_decodes + slope * context_tokens
            for curve, (read, _) in zip(self._in_window, windows, strict=True):
                seconds += curve(read / num_decodes) * num_decodes
        return seconds

    def _fixed_s(self, tokens: int, rows: int) -> float:
        self._by_tokens[tokens] = self._products(tokens)
        self._by_rows[rows] = self._sampling(rows)
        return self._by_tokens[tokens] + self._by_rows[rows]


def _products_s(model: StepModel, tokens: float) -> float:
    """Matrix products and collectives of a step that samples nothing."""
    time = model.time(Batch(0.0, {}, prefill_tokens=tokens))
    return time.gemm_s + time.collective_s


def _sampling_s(model: StepModel, rows: float) -> float:
    """What sampled rows add: the LM head."""
    time = model.time(Batch(rows, {}))
    return time.gemm_s + time.collective_s - _products_s(model, rows)


def _window_attention(model: StepModel, window: int) -> Callable[[float], float]:
    """What reading so many positions within a window adds to a decode."""
    bare_s = model.decode(1.0, {}).attention_s
    return lambda mean: model.decode(1.0, {window: mean}).attention_s - bare_s


def _prefill_attention_s(model: StepModel, ratio: float) -> float:
    """Per KV token loaded or written, at `ratio` positions attended to per such token."""
    tokens = 1.0 / 2**20  # of the chunk itself: the rest is loaded
    batch = Batch(0.0, {}, tokens, 0.0, {None: ratio}, {None: 1.0 - tokens})
    return model.time(batch).attention_s
