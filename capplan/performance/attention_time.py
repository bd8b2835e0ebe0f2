"""Time of attention and of recurrent layers: linear in the sums of a batch, plus fixed times.

Being linear, it can be kept as a few coefficients (`AttentionCosts`), which the simulator asks
a million times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from capplan.formulas.smooth import smooth_max
from capplan.performance.batch import WindowSums
from capplan.performance.kernel_rates import AttentionRates
from capplan.performance.work import WorkModel
from capplan.specs.kv_cache import KvLayers, kv_layers
from capplan.specs.mixers import Attention

_NORM = 2.0  # decode attention: reading the cache against computing with it


@dataclass(frozen=True, slots=True)
class AttentionCosts:
    """Seconds for one unit of each sum, over all layers of a model on one GPU."""

    decode_s_per_position: Mapping[int | None, float]  # read, by window
    mixed_s_per_position: Mapping[int | None, float]  # the same in a step that has prefill too
    decode_s_per_sequence: float
    prefill_s_per_position: Mapping[int | None, float]  # attended to, by window
    prefill_s_per_kv_token: Mapping[int | None, float]  # loaded, by window
    prefill_s_per_token: float
    prefill_s_per_sequence: float
    decode_fixed_s: float
    prefill_fixed_s: float

    def decode_s(self, num_decodes: float, reads: WindowSums, has_prefill: float = 0.0) -> float:
        """Without the fixed time of a step that has decodes; of a mean step, ``has_prefill`` is
        the share of steps that have prefill too."""
        alone, mixed = self.decode_s_per_position, self.mixed_s_per_position
        return num_decodes * self.decode_s_per_sequence + sum(
            (cost + has_prefill * (mixed[window] - cost)) * reads.get(window, 0.0)
            for window, cost in alone.items()
        )

    def prefill_s(
        self, tokens: float, num_prefills: float, reads: WindowSums, kv_tokens: WindowSums
    ) -> float:
        """Without the fixed time of a step that has prefill."""
        return (
            tokens * self.prefill_s_per_token
            + num_prefills * self.prefill_s_per_sequence
            + sum(c * reads.get(w, 0.0) for w, c in self.prefill_s_per_position.items())
            + sum(c * kv_tokens.get(w, 0.0) for w, c in self.prefill_s_per_kv_token.items())
        )


def attention_costs(
    work: WorkModel, rates: AttentionRates, shares: int = 1, mixed_tile_rows: int = 0
) -> AttentionCosts:
    """The coefficients of a model; each kind of layer adds to them.

    Pipeline stages and attention copies each take one of ``shares`` parts of the sums. In a step
    with prefill, one kernel may attend for all sequences: each head of a decoding one then fills
    a tile of ``mixed_tile_rows`` queries (`EngineOverheads.mixed_tile_rows`).
    """
    costs = _Sums(mixed_tile_rows)
    for layer in kv_layers(work.model, work.kv_dtype, work.tp):
        if layer.bytes_per_token:
            costs.add_attention(layer, work, rates)
        else:
            costs.add_state(layer, work, rates)
    return costs.result(shares)


def _on_vector_units(layer: KvLayers, work: WorkModel, rates: AttentionRates) -> bool:
    """Whether the engine's kernels let each query head of these layers read the cache by itself."""
    mixer = work.model.mixers[layer.mixer]
    if rates.decode_groups is None or not isinstance(mixer, Attention):
        return False
    kv_heads = max(1, mixer.num_kv_heads // work.tp)
    return mixer.num_heads // work.tp // kv_heads not in rates.decode_groups


class _Sums:
    def __init__(self, mixed_tile_rows: int) -> None:
        self.mixed_tile_rows = mixed_tile_rows
        self.decode_position: dict[int | None, float] = defaultdict(float)
        self.mixed_position: dict[int | None, float] = defaultdict(float)
        self.prefill_position: dict[int | None, float] = defaultdict(float)
        self.prefill_kv: dict[int | None, float] = defaultdict(float)
        self.decode_sequence = self.prefill_token = self.prefill_sequence = 0.0
        self.decode_fixed = self.prefill_fixed = 0.0

    def add_attention(self, layer: KvLayers, work: WorkModel, rates: AttentionRates) -> None:
        num, size = layer.count, layer.bytes_per_token
        # The absorbed form multiplies as matrices: it runs at the prefill kernel's share of peak.
        decode_flop = work.mixer_flop(layer, 1.0, 0.0, absorbed=True)
        prefill_flop = work.mixer_flop(layer, 1.0, 0.0, absorbed=False)
        on_vectors = _on_vector_units(layer, work, rates)
        flops = rates.vector_flops_per_s if on_vectors else rates.decode_flops_per_s
        read = smooth_max(size / rates.decode_bytes_per_s, decode_flop / flops, _NORM)
        self.decode_position[layer.attends] += num * read
        mixer = work.model.mixers[layer.mixer]
        plain = isinstance(mixer, Attention) and not mixer.sinks  # which other kernels compute
        tile = self.mixed_tile_rows * prefill_flop / rates.prefill_flops_per_s if plain else 0.0
        self.mixed_position[layer.attends] += num * max(read, tile)
        self.decode_sequence += num * size / rates.decode_bytes_per_s  # its own token, written
        self.prefill_position[layer.attends] += num * prefill_flop / rates.prefill_flops_per_s
        self.prefill_kv[layer.window] += num * size / rates.decode_bytes_per_s
        # Tiles on the diagonal are computed whole, and short rows fill the tensor cores badly.
        extra = rates.saturation_tokens * prefill_flop / rates.prefill_flops_per_s
        self.prefill_token += num * (extra + size / rates.decode_bytes_per_s)
        if not layer.is_indexer:
            self.decode_fixed += num * rates.decode_fixed_s
            self.prefill_fixed += num * rates.prefill_fixed_s

    def add_state(self, layer: KvLayers, work: WorkModel, rates: AttentionRates) -> None:
        num = layer.count
        flop = work.mixer_flop(layer, 0.0, 1.0, absorbed=True)
        moved = 2 * layer.state_bytes / rates.state_bytes_per_s
        self.decode_sequence += num * moved
        self.prefill_sequence += num * moved
        self.prefill_token += num * flop / rates.state_flops_per_s
        self.decode_fixed += num * rates.state_fixed_s
        self.prefill_fixed += num * 2 * rates.state_fixed_s  # the chunked form is several kernels

    def result(self, shares: int) -> AttentionCosts:
        return AttentionCosts(
            decode_s_per_position={w: c / shares for w, c in self.decode_position.items()},
            mixed_s_per_position={w: c / shares for w, c in self.mixed_position.items()},
            decode_s_per_sequence=self.decode_sequence / shares,
            prefill_s_per_position={w: c / shares for w, c in self.prefill_position.items()},
            prefill_s_per_kv_token={w: c / shares for w, c in self.prefill_kv.items()},
            prefill_s_per_token=self.prefill_token / shares,
            prefill_s_per_sequence=self.prefill_sequence / shares,
            decode_fixed_s=self.decode_fixed,
            prefill_fixed_s=self.prefill_fixed,
        )
