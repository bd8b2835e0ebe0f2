"""Files of texts, whose tokens are estimated: ShareGPT conversations, vLLM's custom prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from capplan.simulator.traffic.replay.json_rows import Json, objects_of
from capplan.simulator.traffic.replay.rows import Row, RowError, tokens_of

_TURNS = ("conversations", "conversation", "messages")
_USERS = ("human", "user")
_MODELS = ("gpt", "assistant", "chatgpt", "bing", "bard")


def is_conversation(entry: Json) -> bool:
    return any(isinstance(entry.get(name), list) for name in _TURNS)


def is_custom_prompt(entry: Json) -> bool:
    return isinstance(entry.get("prompt"), str)


def conversation_rows(path: Path, characters_per_token: float) -> Iterator[Row | RowError]:
    """The first question of each conversation and its answer, as `vllm bench serve` takes them."""

    def lengths(entry: Json) -> tuple[int, int]:
        question, answer = _first_exchange(entry)
        prompt = _estimate(question, characters_per_token, "question")
        return prompt, _estimate(answer, characters_per_token, "answer")

    return _rows(path, lengths)


def custom_rows(
    path: Path, characters_per_token: float, needs_output: bool
) -> Iterator[Row | RowError]:
    """`prompt`, a text, and `output_tokens`."""

    def lengths(entry: Json) -> tuple[int, int]:
        prompt = entry.get("prompt")
        if not isinstance(prompt, str):
            raise RowError("with a field missing", "there is no text `prompt` in this row")
        output = entry.get("output_tokens")
        if output is None and needs_output:
            hint = "give them with `output` (--output-tokens), or `skip_bad_rows`"
            message = "there is no `output_tokens` in this row"
            raise RowError("with a field missing", message, hint)
        tokens = _estimate(prompt, characters_per_token, "prompt")
        return tokens, 0 if output is None else tokens_of(output, "output_tokens", output=True)

    return _rows(path, lengths)


def _rows(path: Path, lengths: Callable[[Json], tuple[int, int]]) -> Iterator[Row | RowError]:
    for number, entry in objects_of(path):
        if isinstance(entry, RowError):
            yield entry
            continue
        try:
            prompt, output = lengths(entry)
        except RowError as fault:
            yield fault.at(number)
        else:
            yield Row(number, None, prompt, output)


def _first_exchange(entry: Json) -> tuple[str, str]:
    turns: Any = next((entry[name] for name in _TURNS if isinstance(entry.get(name), list)), None)
    if turns is None:
        raise RowError("with a field missing", "there is no list `conversations` in this row")
    said = [_said(turn) for turn in turns]
    for (who, question), (then, answer) in pairwise(said):
        if who in _USERS and then in _MODELS:
            return question, answer
    raise RowError("without an answer", "the conversation has no question with an answer after it")


def _said(turn: Any) -> tuple[str, str]:
    """(who, text) of a turn of either spelling."""
    if isinstance(turn, dict):
        who = turn.get("from", turn.get("role"))
        text = turn.get("value", turn.get("content"))
        if isinstance(who, str) and isinstance(text, str):
            return who, text
    return "", ""


def _estimate(text: str, characters_per_token: float, what: str) -> int:
    if not text.strip():
        raise RowError(f"with an empty {what}", f"the {what} is empty")
    return max(1, round(len(text) / characters_per_token))
