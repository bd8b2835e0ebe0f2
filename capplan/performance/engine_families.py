"""The overheads of an engine's family: apart from them, as most plans never ask for an engine."""

from __future__ import annotations

from capplan.performance.overheads import EngineOverheads
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
        expert_backends=spec.expert_backends,
    )
