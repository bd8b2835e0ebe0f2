"""Blocks: what a pool has, what a request takes of it, and what the engine prints of it.

Rules of vLLM 0.33 (`v1/kv_cache_interface.py`, `v1/core/kv_cache_utils.py`), checked for
equality against 44 recorded results of the engine's own functions (tests/test_kv_sizing.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from capplan.formulas.kv_groups import KvGroup, KvLayer
from capplan.formulas.paging import blocks_needed


@dataclass(frozen=True, slots=True)
class Flight:
    """The settings that decide how many blocks a request holds at once.

    ``prefix_caching`` gives each state-space layer a second block (the "align" mode);
    ``dcp`` GPUs share the tokens of full attention (decode context parallel).
    """

    max_num_batched_tokens: int
    async_scheduling: bool = False
    prefix_caching: bool = False
    dcp: int = 1
    num_speculative_tokens: int = 0

    @property
    def batches(self) -> int:
        """Steps under way at once: asynchronous scheduling prepares one while another runs."""
        return 2 if self.async_scheduling else 1

    @property
    def tokens(self) -> int:
        return self.batches * self.max_num_batched_tokens


def request_blocks(layer: KvLayer, tokens: int, flight: Flight) -> int:
    """The most blocks that a request of ``tokens`` takes in a group, at the end of its prefill.

    A window keeps the tokens of a whole step beside those that it sees, and one block more,
    since it need not begin where a block does.

    >>> window = KvLayer("sliding", 131_072, 16, 1024)
    >>> request_blocks(window, 131_072, Flight(8192)), request_blocks(window, 4096, Flight(8192))
    (577, 257)
    """
    if layer.kind == "state":
        return (2 if flight.prefix_caching else 1) + flight.num_speculative_tokens
    if layer.reach_tokens is None:
        return blocks_needed(blocks_needed(tokens, flight.dcp), layer.block_size)
    sliding = layer.kind == "sliding"
    kept = min(layer.reach_tokens - sliding + flight.tokens, tokens)
    return blocks_needed(kept, layer.block_size) + sliding


def decode_blocks(layer: KvLayer, tokens: int, flight: Flight) -> int:
    """The most blocks that a request of ``tokens`` keeps in a group once it decodes.

    Blocks behind the window go back to the pool before each step; a step under way keeps its
    own a step longer. A state-space layer updates one state in place.

    >>> decode_blocks(KvLayer("sliding", 131_072, 16, 1024), 131_072, Flight(8192))
    65
    """
    if layer.kind == "state":
        return 1 + flight.num_speculative_tokens
    most = request_blocks(layer, tokens, flight)
    if layer.reach_tokens is None:
        return most
    span = layer.reach_tokens + flight.batches - 1
    # ``span`` consecutive tokens touch one block more than they fill.
    touched = blocks_needed(span - 1, layer.block_size) + 1
    return min(touched, blocks_needed(tokens, layer.block_size), most)


def blocks_of(
    count: Callable[[KvLayer, int, Flight], int],
    groups: Sequence[KvGroup],
    tokens: int,
    flight: Flight,
) -> int:
    """``request_blocks`` or ``decode_blocks`` summed over the groups."""
    return sum(count(group.layer, tokens, flight) for group in groups)


def num_blocks(available_bytes: float, block_bytes: int) -> int:
    """Blocks of a pool, the one that the engine never hands out included.

    >>> num_blocks(20_000_000_001, 2_097_152), num_blocks(-1, 2_097_152)
    (9536, 0)
    """
    return max(0, int(available_bytes // block_bytes))


def max_concurrency(blocks: int, blocks_per_request: int) -> float:
    """Requests of one length in the pool at once, as vLLM prints it.

    >>> max_concurrency(9536, 625)
    15.2576
    """
    return blocks / blocks_per_request


def printed_tokens(concurrency: float, max_model_len: int) -> int:
    """The log's "GPU KV cache size" since about vLLM 0.21: all requests at full length, tokens.

    >>> printed_tokens(15.2576, 10_000)
    152576
    """
    return int(concurrency * max_model_len)


def printed_tokens_by_groups(blocks: int, num_groups: int, block_size: int, dcp: int = 1) -> int:
    """The log's "GPU KV cache size" before about vLLM 0.21: as if each group took its share.

    >>> printed_tokens_by_groups(139, 4, 1568)
    53312
    """
    return blocks // num_groups * block_size * dcp


def starts(blocks_per_request: int, block_bytes: int, available_bytes: float) -> bool:
    """The start-up check: one request of the maximum length fits, one block put aside.

    >>> starts(8192, 2_097_152, 8193 * 2_097_152), starts(8192, 2_097_152, 8192 * 2_097_152)
    (True, False)
    """
    return blocks_per_request * block_bytes <= available_bytes - block_bytes


def layers_bytes(layers: Sequence[KvLayer], tokens: int, flight: Flight) -> int:
    """KV of one request, layer by layer without padding: the start-up check before grouping."""
    return sum(layer.page_bytes * request_blocks(layer, tokens, flight) for layer in layers)


def longest(fits: Callable[[int], bool], most: int) -> int:
    """The largest length up to ``most`` that fits; 0 where not even one token does.

    >>> longest(lambda tokens: tokens <= 625, 8192), longest(lambda tokens: False, 8192)
    (625, 0)
    """
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
