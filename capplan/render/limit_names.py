"""Limits by name, and what it means to miss them."""

from __future__ import annotations

WHY_NOT = {
    "weights": "the weights do not fit",
    "kv_memory": "the KV pool does not hold one request",
    "tpot": "TPOT cannot be met",
    "ttft": "TTFT cannot be met",
    "e2e": "E2E cannot be met",
    "token_budget": "a step's token budget is too small",
    "interconnect": "interconnect",
    "load": "the limits fail under any load",
    "dominated": "cannot be better",
    "unsupported": "not supported",
}
_NAMES = {
    "ttft": "TTFT", "tpot": "TPOT", "e2e": "E2E", "itl": "ITL", "goodput": "goodput",
    "kv_memory": "KV memory", "token_budget": "token budget",
}  # fmt: skip


def limit_name(key: str) -> str:
    return _NAMES.get(key, key)
