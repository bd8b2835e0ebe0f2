"""Public questions with known answers: one command each, and whether we agree."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import questions_page
from questions import Outcome, ask, load

LOADED = load()
QUESTIONS = {question["id"]: question for question in LOADED["questions"]}


@cache
def _asked(name: str) -> tuple[list[Outcome], list[Outcome]]:
    return ask(QUESTIONS[name])


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_answer_agrees_or_is_known_not_to(name: str) -> None:
    """Where this fails after a change of the model, look whether it is better, then write it down:
    `agrees` and what is missing in tests/data/questions.yaml."""
    question = QUESTIONS[name]
    answer, figures = _asked(name)
    assert all(outcome.agrees for outcome in answer) is question["agrees"], answer
    for figure, outcome in zip(question.get("figures", []), figures, strict=bool(figures)):
        assert outcome.agrees is figure.get("agrees", True), outcome


def test_enough_are_answered_and_agree() -> None:
    agreed = [question for question in QUESTIONS.values() if question["agrees"]]
    assert len(QUESTIONS) >= 60
    assert len(agreed) >= 0.8 * len(QUESTIONS)


def test_what_is_missing_is_said_of_all_others() -> None:
    others = [name for group in LOADED["not_answered"] for name in group["ids"]]
    assert not set(others) & set(QUESTIONS)
    assert len(QUESTIONS) == len(LOADED["questions"])
    assert len(QUESTIONS) + len(others) == 86
    assert all("missing" in q for q in (*LOADED["not_answered"], *QUESTIONS.values()) if _is_no(q))


def _is_no(question: dict[str, Any]) -> bool:
    return not question.get("agrees", False)


def test_the_page_is_current(golden: Callable[[Path, str], None]) -> None:
    golden(
        questions_page.PAGE, questions_page.page(LOADED, {name: _asked(name) for name in QUESTIONS})
    )
