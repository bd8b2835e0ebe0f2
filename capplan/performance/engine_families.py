"""The overheads of an engine's family: apart from them, as most plans never ask for an engine."""

from __future__ import annotations

from capplan.performance.overheads import PLAIN_KERNELS, EngineKernels, EngineOverheads
from capplan.specs.engine import version_key
from capplan.specs.engine_performance import EnginePerformance


def engine_overheads(spec: EnginePerformance) -> EngineOverheads:
    """A family's figures."""
    return EngineOverheads(
        name=spec.name,
        step_s=spec.step,
        sequence_s=spec.sequence,
        launch_s_per_layer=spec.launch_per_layer,
        fixed_factor=spec.fixed_factor,
        front_end_s=spec.front_end,
        prompt_token_s=spec.prompt_token,
        intake_s=spec.intake,
        cuda_graph_max_bs=spec.cuda_graph_max_bs,
        eager_s_per_layer=spec.eager_per_layer,
        mixed_tile_rows=spec.mixed_tile_rows,
        expert_backends=spec.expert_backends,
        quantizes_dispatch=spec.quantizes_dispatch,
    )


def engine_kernels(
    spec: EnginePerformance,
    version: tuple[int, ...] | None,
    vendor: str,
    *,
    chunks_prefill: bool = False,
    is_vendors_build: bool = False,
) -> EngineKernels:
    """What the kernels of this version reach on an accelerator of ``vendor``.

    A build of the accelerator's own maker has its tuned kernels. A version that is not known is
    taken for the newest of the family.
    """
    for row in spec.kernels:
        if row.vendor is not None and (row.vendor != vendor or is_vendors_build):
            continue
        if row.before is not None and (version is None or version >= version_key(row.before)):
            continue
        return EngineKernels(
            compute=row.compute,
            bandwidth=row.bandwidth,
            decode=row.decode,
            prefill=row.prefill * (row.chunked_prefill if chunks_prefill else 1.0),
            latency=row.latency,
            link=row.link,
            decode_groups=row.decode_groups,
        )
    return PLAIN_KERNELS
