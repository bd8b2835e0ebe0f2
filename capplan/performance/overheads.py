"""What an engine takes beside the GPU's kernels: host time, launches, its front end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class EngineKernels:
    """What the kernels of one code base reach: factors on the accelerator's figures, mostly 1.

    ``decode_groups`` are the numbers of query heads to a KV head for which its decode attention
    runs on tensor cores; for others every head reads the cache by itself, on vector units. None:
    for all.
    """

    compute: float = 1.0  # of products
    bandwidth: float = 1.0  # at which products stream weights
    decode: float = 1.0  # bandwidth at which decode attention reads the cache
    prefill: float = 1.0  # compute of prefill attention
    latency: float = 1.0  # of collectives
    link: float = 1.0
    decode_groups: tuple[int, ...] | None = None


PLAIN_KERNELS = EngineKernels()


@dataclass(frozen=True, slots=True)
class EngineOverheads:
    """One family of an engine; the fitted figures of its profile (docs/model.md).

    ``step_s`` and ``sequence_s`` are what the GPU waits for: with asynchronous scheduling most of
    the host's work is hidden and these are what is left. A step with prefill is launched layer
    by layer (``launch_s_per_layer``), and so is a decode step of sequences that no CUDA graph was
    captured for: there nothing but the decodes before hides it (``eager_s_per_layer``).
    """

    name: str = "none"
    step_s: float = 0.0
    sequence_s: float = 0.0
    launch_s_per_layer: float = 0.0
    fixed_factor: float = 1.0  # of what each kernel takes besides its work
    front_end_s: float = 0.0  # HTTP, tokenizer, detokenizer: once a request, before its first token
    prompt_token_s: float = 0.0  # the same for each token of the prompt
    # Of `front_end_s`, what the one process that takes requests in works for each: requests that
    # come together wait for one another (simulator/intake.py).
    intake_s: float = 0.0
    # What the same process works beside it, where a chat's template is parsed for each request.
    template_s: float = 0.0
    cuda_graph_max_bs: int | None = None
    cuda_graph_sizes: tuple[int, ...] = ()  # the only ones that run in graphs; empty: all up to it
    eager_s_per_layer: float | None = None  # of a decode step without a graph; None: as launched
    # By generation: queries of a tile that every head of a decoding sequence fills in a step with
    # prefill, where one kernel attends for both (FlashAttention 2); without an entry it does not.
    mixed_tile_rows: Mapping[str, int] = field(default_factory=dict)
    # Kernel families of routed experts by number format (`mxfp4`, else `weight-only` as kernels
    # are, else `default`), the preferred one first; the first that the accelerator's generation
    # has is taken.
    expert_backends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kernels: EngineKernels = PLAIN_KERNELS
    # Under data-parallel attention tokens travel to the experts' ranks in the experts' own format.
    quantizes_dispatch: bool = False

    def has_graph(self, num_decodes: float) -> bool:
        """Whether a step of so many decodes alone is replayed from a CUDA graph.

        Plain arithmetic, so that arrays pass as well.
        """
        if self.cuda_graph_sizes:
            return sum(num_decodes == size for size in self.cuda_graph_sizes) > 0
        return self.cuda_graph_max_bs is None or num_decodes <= self.cuda_graph_max_bs

    def ttft_s(self, prompt_tokens: float) -> float:
        """What a client waits for before and beside the engine's steps."""
        return self.front_end_s + self.template_s + self.prompt_token_s * prompt_tokens


NO_ENGINE = EngineOverheads()
