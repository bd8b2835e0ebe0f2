"""docs/questions.md from the questions and what is found: `pytest --update-golden` writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from questions import TOLERANCES, Outcome

PAGE = Path(__file__).resolve().parent.parent / "docs" / "questions.md"
_HEAD = """# Questions that people ask

Public questions about sizing, re-told, each with the answer that its thread arrived at by measuring
or computing, and one command of ours. {answered} of {all} are answered; {agreed} of the answers
agree ({share:.0%}). Of {num_figures} further figures that the threads give, {num_close} are close.
`pytest --update-golden tests/test_questions.py` writes this page from
`tests/data/questions.yaml`; a test compares, and fails where an answer begins or ceases to agree.

**When an answer agrees.** The answer is what the thread concluded: a figure where one was asked
for, else a yes or no, an order, a cause or an advice. All of its parts must agree: a computed
figure to {computed:.0%}, a measured one to {measured:.0%}, one that is said to be about so much, or
that hangs on something not told, to {about:.0%}; where capplan states a range, the figure must lie
in it; yes or no, counts and orders exactly. Further figures, in italics, are compared by the same
rule and do not decide. What a thread does not tell is left at our defaults, and said.

† marks a run that the performance model is fitted to, or a start-up log that ranges of the memory
budget were taken from. No other figure here was used to set a constant.
"""
_COLUMNS = "| question and command | stated | found | agrees |\n|---|---|---|---|"


def page(
    loaded: Mapping[str, Any], found: Mapping[str, tuple[list[Outcome], list[Outcome]]]
) -> str:
    questions = loaded["questions"]
    unanswered = loaded["not_answered"]
    figures = [outcome for _, further in found.values() for outcome in further]
    agreed = [q for q in questions if q["agrees"]]
    parts = [
        _HEAD.format(
            answered=len(questions),
            all=len(questions) + sum(len(group["ids"]) for group in unanswered),
            agreed=len(agreed),
            share=len(agreed) / len(questions),
            num_figures=len(figures),
            num_close=sum(figure.agrees for figure in figures),
            **TOLERANCES,
        )
    ]
    for topic in dict.fromkeys(q["topic"] for q in questions):
        parts += [f"## {topic[0].upper()}{topic[1:]}", "", _COLUMNS]
        parts += [_row(q, *found[q["id"]]) for q in questions if q["topic"] == topic]
        parts.append("")
    parts += ["## Where we disagree, and what is missing", ""]
    parts += [f"- {_source(q)}: {_one_line(q['missing'])}" for q in questions if not q["agrees"]]
    parts += ["", "## Not answered", "", "| what is missing | questions |", "|---|---|"]
    for group in unanswered:
        parts.append(f"| {group['missing']} | {', '.join(group['sources'])} |")
    return "\n".join(parts) + "\n"


def _row(question: Mapping[str, Any], answer: list[Outcome], figures: list[Outcome]) -> str:
    said = [_one_line(question["question"]), f"`capplan {_one_line(question['command'])}`"]
    if "note" in question:
        said.append(_one_line(question["note"]))
    said.append(_source(question))
    stated = _lines([(f"{o.what}: {o.stated}", False) for o in answer]
                    + [(f"{o.what}: {o.stated}", True) for o in figures])  # fmt: skip
    found = _lines([(o.found, False) for o in answer] + [(o.found, True) for o in figures])
    mark = ("yes" if question["agrees"] else "**no**") + (" †" if "fitted" in question else "")
    return f"| {'<br>'.join(said)} | {stated} | {found} | {mark} |"


def _lines(cells: Sequence[tuple[str, bool]]) -> str:
    return "<br>".join(f"*{text}*" if italic else text for text, italic in cells)


def _source(question: Mapping[str, Any]) -> str:
    return f"({question['source']})"


def _one_line(text: str) -> str:
    return " ".join(text.split())
