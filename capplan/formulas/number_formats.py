"""Number formats of weights and KV: bits an element, and bits of scale a group shares."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """``block`` is the (rows, columns) tile that shares one scale of ``scale_bits``, or None.

    ``compute`` names the peak that products in this format reach: weight-only formats are
    expanded to 16 bits before the tensor core sees them. A ``variant`` is how some checkpoints
    are stored; it is not offered as a format to convert to.
    """

    bits: int
    compute: str | None  # None: as the activations
    scale_bits: int = 0
    block: tuple[int, int] | None = None
    variant: bool = False

    def weight_bytes(self, rows: int, columns: int) -> int:
        """Bytes of a rows x columns matrix with its scales, packed.

        >>> FORMATS["fp8"].weight_bytes(256, 128), FORMATS["mxfp4"].weight_bytes(1, 64)
        (32768, 34)
        """
        scales = 0
        if self.block is not None:
            tile_rows, tile_columns = self.block
            scales = -(-rows // tile_rows) * -(-columns // tile_columns)
        return (rows * columns * self.bits + scales * self.scale_bits + 7) // 8


FORMATS: dict[str, NumberFormat] = {
    "fp32": NumberFormat(32, "fp32"),
    "bf16": NumberFormat(16, "bf16"),
    "fp16": NumberFormat(16, "fp16"),
    # One scale a tensor or channel: below a thousandth of the bytes, left out.
    "fp8": NumberFormat(8, "fp8"),
    # DeepSeek-V3 (arXiv:2412.19437), sec. 3.3: 128 x 128 tiles, FP32 scales.
    "fp8-block128": NumberFormat(8, "fp8", 32, (128, 128)),
    # On accelerators without FP8 tensor cores engines expand the weights (vLLM's Marlin kernels).
    "fp8-weight-only": NumberFormat(8, None, variant=True),
    "int8": NumberFormat(8, "int8"),
    # W8A16: only the weights are narrow.
    "int8-weight-only": NumberFormat(8, None, variant=True),
    # AWQ and GPTQ: groups of 128 along the input, FP16 scale and 4-bit zero point.
    "int4": NumberFormat(4, None, 20, (1, 128)),
    "int4-group32": NumberFormat(4, None, 20, (1, 32), variant=True),
    "int4-group64": NumberFormat(4, None, 20, (1, 64), variant=True),
    # compressed-tensors `pack-quantized`, symmetric: a 16-bit scale and no zero point.
    "int4-symmetric": NumberFormat(4, None, 16, (1, 128), variant=True),
    "int4-symmetric-group32": NumberFormat(4, None, 16, (1, 32), variant=True),
    # bitsandbytes (QLoRA, arXiv:2305.14314): 64 elements share an FP32 scale; with double
    # quantisation the scales are 8 bits, and 256 of them share an FP32 scale.
    "nf4": NumberFormat(4, None, 32, (1, 64), variant=True),
    "nf4-double": NumberFormat(4, None, 8, (1, 64), variant=True),
    # OCP Microscaling v1.0: 32 elements share an 8-bit exponent.
    "mxfp4": NumberFormat(4, None, 8, (1, 32)),
    "mxfp8": NumberFormat(8, "fp8", 8, (1, 32), variant=True),
    # NVFP4: 16 elements share an FP8 scale.
    "nvfp4": NumberFormat(4, "fp4", 8, (1, 16)),
    # The same bits, expanded to 16 before the product (W4A16).
    "nvfp4-weight-only": NumberFormat(4, None, 8, (1, 16), variant=True),
}

OFFERED_FORMATS = tuple(name for name, form in FORMATS.items() if not form.variant)
