"""What is no product and no attention: norms, rotations, activation functions, sampling."""

from __future__ import annotations

from dataclasses import dataclass

from capplan.formulas.number_formats import FORMATS
from capplan.performance.kernel_rates import KernelRate
from capplan.performance.work import WorkModel
from capplan.specs.ffns import DenseFFN
from capplan.specs.mixers import Attention

KERNELS_PER_LAYER = 4  # two norms with the residual, rotation and cache write, activation
# Logits in 16 bits written, read, scaled and sampled in 32: 20 bytes moved for each, at half the
# bandwidth; a dozen small kernels.
LOGIT_BYTES = 20.0
LOGIT_BANDWIDTH = 0.5
SAMPLING_KERNELS = 12


@dataclass(frozen=True, slots=True)
class Elementwise:
    """Seconds of these kernels on one GPU, all layers together."""

    fixed_s: float
    s_per_token: float
    sampling_fixed_s: float
    sampling_s_per_row: float

    def layers_s(self, tokens: float) -> float:
        return (tokens > 0) * self.fixed_s + tokens * self.s_per_token

    def sampling_s(self, rows: float) -> float:
        return (rows > 0) * self.sampling_fixed_s + rows * self.sampling_s_per_row


def elementwise_of(work: WorkModel, rate: KernelRate) -> Elementwise:
    """Bytes moved by each token in the activations' format; see docs/model.md for the count."""
    model, tp = work.model, work.tp
    element = FORMATS[work.activation_dtype].bits / 8
    moved = 0.0
    for name, count in model.mixer_counts.items():
        mixer = model.mixers[name]
        moved += count * 4 * model.hidden_size  # norm: read, residual in and out, write
        if isinstance(mixer, Attention):
            heads = mixer.num_heads + 2 * mixer.num_kv_heads
            moved += count * 2 * heads * mixer.head_dim / tp
    for name, count in model.ffn_counts.items():
        ffn = model.ffns[name]
        moved += count * 4 * model.hidden_size
        if isinstance(ffn, DenseFFN):
            moved += count * 3 * ffn.intermediate_size / tp
        else:
            moved += count * 3 * ffn.shared_intermediate_size / tp
            # Sorting tokens to experts and summing what comes back.
            moved += count * 2 * ffn.experts_per_token * model.hidden_size / tp
    return Elementwise(
        fixed_s=KERNELS_PER_LAYER * model.num_layers * rate.fixed_s,
        s_per_token=moved * element / rate.bytes_per_s,
        sampling_fixed_s=SAMPLING_KERNELS * rate.fixed_s,
        sampling_s_per_row=LOGIT_BYTES
        * model.vocab_size
        / tp
        / (LOGIT_BANDWIDTH * work.hardware.memory.bandwidth),
    )
