"""Over how many GPUs a run spread its model: stated, or the least that fits."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from capplan.accuracy.measured import MeasuredRun
from capplan.accuracy.names import NamedModel
from capplan.errors import UnsupportedError
from capplan.specs.hardware import HardwareSpec
from capplan.specs.tensors import num_params_total, weight_bytes_per_gpu

# Of an unknown degree, the least at which weights leave this share of memory for the rest.
_MOST_WEIGHTS_FRACTION = 0.65
_MOST_LOADED = 0.92  # with anything left to run in
_DEGREES = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Degrees:
    """A replica is ``tp`` x ``pp`` x ``dp`` GPUs; ``ep`` ranks share out the experts."""

    tp: int
    pp: int
    dp: int
    ep: int
    num_replicas: int


@dataclass(frozen=True)
class Parallelism:
    """``assume(what, value, column)`` takes what the row does not state."""

    run: MeasuredRun
    named: NamedModel
    hardware: HardwareSpec
    assume: Callable[[str, str, str], object]

    def degrees(self) -> Degrees:
        """As stated, and what follows from it."""
        run, gpus, pp = self.run, self.run.num_gpus or 1, self.run.pp or 1
        if pp > gpus:
            self.assume("GPUs", f"{pp}, one a pipeline stage", "num_gpus")
            gpus = pp
        pp = pp if gpus % pp == 0 else 1
        moe = self.named.spec.has_experts
        if run.attention_dp and moe and gpus > 1 and not self.without_degree():
            ranks = run.tp or gpus // pp
            return Degrees(1, pp, ranks, run.ep or ranks, max(1, gpus // (ranks * pp)))
        tp = run.tp or (self.least_tp(gpus) if run.ep is None else gpus // pp)
        if run.tp is None:
            self.assume("tensor parallel", f"{tp}: the least that fits", "tp")
        elif not self.fits(tp * pp, 1.0):
            # The run took place: the row counts its GPUs wrongly.
            tp = next((more for more in _DEGREES if self.fits(more * pp, _MOST_LOADED)), tp)
            gpus = max(gpus, tp * pp)
            self.assume("GPUs", f"{tp}, as the weights do not fit {run.tp}", "tp")
        if run.num_gpus is None:
            self.assume("GPUs", str(tp * pp), "num_gpus")
            gpus = tp * pp
        ep = min(run.ep or 1, tp) if moe else 1
        return Degrees(tp, pp, 1, ep, max(1, gpus // (tp * pp)))

    def without_degree(self) -> bool:
        """SGLang's `--enable-dp-attention` does nothing without `--dp-size`.

        sglang/srt/server_args.py, _handle_data_parallelism (0.5.3 to 0.5.6).
        """
        notes = self.run.columns.get("notes", "")
        asked = "--enable-dp-attention" in notes
        off = asked and not re.search(r"--dp(-size)?[ =]|--data-parallel-size[ =]", notes)
        if off:
            self.assume("attention DP", "off: its flag does nothing without a degree", "notes")
        return off

    def least_tp(self, gpus: int) -> int:
        """Powers of two up to what the run had; beyond it where the weights cannot fit at all."""
        domain = min(gpus, self.hardware.node.gpus if gpus > self.hardware.node.gpus else gpus)
        degrees = [tp for tp in _DEGREES if tp <= domain and gpus % tp == 0]
        for tp in degrees:
            if self.fits(tp, _MOST_WEIGHTS_FRACTION):
                return tp
        if self.fits(degrees[-1], _MOST_LOADED):
            return degrees[-1]
        for tp in _DEGREES:
            if tp > degrees[-1] and self.fits(tp, _MOST_WEIGHTS_FRACTION):
                self.assume("GPUs", f"{tp}, as the weights do not fit {gpus}", "num_gpus")
                return tp
        raise UnsupportedError(
            f"{num_params_total(self.named.spec) / 1e9:.0f} B parameters do not fit {gpus} x "
            f"{self.hardware.name}"
        )

    def fits(self, num_shards: int, fraction: float) -> bool:
        """Whether weights in so many parts take at most this fraction of a GPU."""
        memory = self.hardware.visible_memory_bytes
        size = weight_bytes_per_gpu(self.named.spec, num_shards, self.named.dtype)
        return size <= fraction * memory
