"""Schedulers other than vLLM's own, each a small policy on one counter-based loop."""
