"""Bytes of the KV cache, per layer: what one token, one sequence and one GPU hold."""

from __future__ import annotations


def kv_bytes_per_token(
    num_kv_heads: int, key_dim: int, value_dim: int, bytes_per_element: float
) -> float:
    """One layer's K and V of one token, bytes; MHA, GQA and MQA differ in ``num_kv_heads`` only.

    Source: Ainslie et al. 2023 (arXiv:2305.13245) for GQA.

    >>> 32 * kv_bytes_per_token(4, 128, 128, 2)  # 32 layers, 4 KV heads, FP16
    65536
    """
    return num_kv_heads * (key_dim + value_dim) * bytes_per_element


def mla_bytes_per_token(
    kv_lora_rank: int, qk_rope_head_dim: int, bytes_per_element: float
) -> float:
    """One layer's compressed latent and its rotary key, bytes (DeepSeek-V2, arXiv:2405.04434).

    >>> 61 * mla_bytes_per_token(512, 64, 2)  # DeepSeek-V3
    70272
    """
    return (kv_lora_rank + qk_rope_head_dim) * bytes_per_element


def packed_mla_bytes_per_token(kv_lora_rank: int, qk_rope_head_dim: int) -> int:
    """The same as FlashMLA packs it (`fp8_ds_mla`): latent in FP8, rotary key in 16 bits.

    128 elements of the latent share an FP32 scale.

    >>> packed_mla_bytes_per_token(512, 64)
    656
    """
    return kv_lora_rank + 4 * (kv_lora_rank // 128) + 2 * qk_rope_head_dim


def indexer_bytes_per_token(head_dim: int) -> int:
    """One layer's key of DeepSeek-V3.2's sparse-attention indexer, bytes.

    FP8 elements and an FP32 scale for each 128 of them, whatever the format of the KV itself
    (DeepSeek-V3.2-Exp report, 2025, sec. 1; the layout is FlashMLA's and vLLM's).

    >>> indexer_bytes_per_token(128)
    132
    """
    return head_dim + 4 * -(-head_dim // 128)


def kv_heads_per_gpu(num_kv_heads: int, tp: int) -> int:
    """KV heads on each rank; below one head a rank they are replicated, never split.

    >>> [kv_heads_per_gpu(8, tp) for tp in (1, 4, 8, 16)]
    [8, 2, 1, 1]
    """
    return max(1, num_kv_heads // tp)


def tokens_held(context_tokens: int, window: int | None) -> int:
    """Tokens whose KV a layer still needs: all of them, or the last ``window``.

    >>> tokens_held(4096, 1024), tokens_held(100, 1024), tokens_held(4096, None)
    (1024, 100, 4096)
    """
    return context_tokens if window is None else min(context_tokens, window)
