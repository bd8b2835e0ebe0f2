"""Whether a run's requests were chats, for which the server renders a template."""

from __future__ import annotations

from collections.abc import Callable

from capplan.accuracy.engines import Engine
from capplan.accuracy.measured import MeasuredRun
from capplan.specs.model import ModelSpec

_CHAT_WORDS = ("chat/completions", "openai-chat")


def renders_template(
    run: MeasuredRun, engine: Engine, model: ModelSpec, assume: Callable[[str, str, str], None]
) -> bool:
    """Chats are named in the notes; `vllm bench serve` of GPUStack's performance lab sends them.

    That is inferred: of a thousand requests at once the models whose template vLLM 0.11.0 parses
    wait 12 to 17 s longer there than under 0.10.2, 0.13 or other engines, those of gpt-oss, which
    it renders without a template (`use_harmony`, entrypoints/openai/serving_chat.py), do not.
    """
    if engine.kind != "vllm" or model.name.lower().startswith("gpt-oss"):
        return False
    notes = f"{run.columns.get('notes', '')} {run.columns.get('settings_notes', '')}"
    if any(word in notes for word in _CHAT_WORDS):
        return True
    lab = "gpustack" in run.columns.get("source", "") and "vllm bench serve" in notes
    if lab:
        assume("endpoint", "/v1/chat/completions", "notes")
    return lab
