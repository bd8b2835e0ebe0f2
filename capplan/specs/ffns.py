"""The FFNs of a model's layers: dense, or a mixture of experts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from capplan.specs.fields import Count, CountOrZero, Flag, Spec, SpecError


class DenseFFN(Spec):
    kind: Literal["dense"]
    intermediate_size: Count
    gated: Flag = True  # gate and up projections (SwiGLU); False: up only
    bias: Flag = False


class MoEFFN(Spec):
    """Routed experts, with shared ones that every token passes."""

    kind: Literal["moe"]
    num_experts: Count
    experts_per_token: Count
    intermediate_size: Count  # of one expert
    shared_intermediate_size: CountOrZero = 0  # of all shared experts together
    shared_expert_gate: Flag = False
    gated: Flag = True
    bias: Flag = False  # of experts and router
    router_bias: Flag = False  # load-balancing correction, one number an expert
    router_scale: Flag = False  # a scale for each input of the router and for each expert
    # LatentMoE (Nemotron 3): routed experts work on a narrower projection of the hidden state.
    latent_size: Count | None = None
    # Norms before the experts and after each branch, beside the layer's own (Gemma 4, whose
    # dense FFN in the same layer is what every token passes: the shared expert).
    branch_norms: Flag = False
    # Hash routing (DeepSeek-V4): a table of this many tokens says which experts each takes.
    hash_table_tokens: Count | None = None

    @model_validator(mode="after")
    def _top_k(self) -> MoEFFN:
        if self.experts_per_token > self.num_experts:
            raise SpecError(
                f"{self.experts_per_token} is above `num_experts` {self.num_experts}",
                "experts_per_token",
            )
        return self


FFN = Annotated[DenseFFN | MoEFFN, Field(discriminator="kind")]
