"""What every scheduler here has: slots, a KV pool, and a way to allocate it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from capplan.simulator.requests import Request

KvAllocation = Literal["paged", "exact", "power_of_two", "max_tokens", "max_model_len"]

V0_WATERMARK = 0.01  # vLLM 0.4 to 0.7: BlockSpaceManager


@dataclass(frozen=True, slots=True)
class LoopConfig:
    """One replica.

    `kv_allocation`: "paged" takes a block when a token needs it (and may have to evict); all
    others take the blocks of a request's whole life when it is admitted: of its true length
    ("exact", an oracle), of its prompt and the next power of two of its output, of its prompt and
    its announced `max_tokens`, or of `max_model_len`. "exact", "power_of_two" and
    "max_model_len" are Orca (Oracle), (Pow2) and (Max) of Kwon et al., 2309.06180, section 6.1.
    """

    num_blocks: int  # that requests may use
    block_size: int = 16
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    max_model_len: int = 8192
    kv_allocation: KvAllocation = "paged"
    watermark: float = 0.0  # share of the pool kept free when a request is admitted
    enable_prefix_caching: bool = False
    async_scheduling: bool = False  # the next pass is made while a step runs

    def __post_init__(self) -> None:
        counts = ("num_blocks", "block_size", "max_num_seqs", "max_num_batched_tokens")
        for name in (*counts, "max_model_len"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, must be at least 1")

    @property
    def watermark_blocks(self) -> int:
        return int(self.watermark * self.num_blocks)

    def blocks(self, tokens: int) -> int:
        """Blocks that hold this many tokens."""
        return -(-tokens // self.block_size)

    def reserved_blocks(self, request: Request) -> int:
        """Blocks that a request takes when it is admitted, for its whole life; 0 if paged."""
        prompt, output = request.prompt_tokens, request.output_tokens
        match self.kv_allocation:
            case "paged":
                return 0
            case "exact":
                tokens = prompt + output
            case "power_of_two":
                tokens = prompt + (1 << (output - 1).bit_length())
            case "max_tokens":
                tokens = prompt + max(request.max_tokens or output, output)
            case "max_model_len":
                tokens = self.max_model_len
        return self.blocks(min(tokens, self.max_model_len))


def refusal(request: Request, config: LoopConfig, longest_prompt: int | None) -> str | None:
    """Why a request can never be served, or None. It would block the queue for ever.

    `longest_prompt` is what one step may carry of a prompt that is not cut.
    """
    prompt = request.prompt_tokens
    if prompt < 1 or request.output_tokens < 1:
        return "a request has at least one prompt token and one output token"
    if prompt >= config.max_model_len:
        return f"prompt of {prompt} tokens, max_model_len is {config.max_model_len}"
    tokens = min(prompt + request.output_tokens, config.max_model_len) - 1
    needed = config.reserved_blocks(request) or config.blocks(tokens)
    if needed > config.num_blocks:
        return f"needs {needed} KV blocks, the pool has {config.num_blocks}"
    if longest_prompt is not None:
        # What is evicted is computed anew, its output so far included.
        whole = tokens if config.kv_allocation == "paged" else prompt
        if whole > longest_prompt:
            return f"{whole} tokens in one step, it may carry {longest_prompt}"
    return None
