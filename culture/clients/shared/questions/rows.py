"""A question as a row of the agent's file."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from culture.clients.shared.questions.model import Answer, Question

COLUMNS = (
    "number, place, text, options, tool, electorate, task, asked, deadline, action, msgids, answer, choice, closed,"
    " told, discussed, asides, overruled"
)


def read_questions(execute: Callable[..., sqlite3.Cursor], *, closed: bool = False) -> list[Question]:
    """What is in a file that is only looked at: the open ones, the oldest first, then perhaps the closed ones."""
    found = [question_of(row) for row in execute(f"SELECT {COLUMNS} FROM questions ORDER BY number")]
    ended = [question for question in found if not question.is_open][::-1]
    return [*(question for question in found if question.is_open), *(ended if closed else [])]


def as_data(questions: Sequence[Question], execute: Callable[..., sqlite3.Cursor]) -> list[dict[str, Any]]:
    """Questions as JSON has them; with an answer that the server has looked up what it found."""
    verdicts = {number: found for number, *found in _rows(execute, "SELECT question, verified, why FROM verdicts")}
    details = dict(_rows(execute, "SELECT question, text FROM details"))
    return [
        {**_with_verdict(each.as_data(), verdicts.get(each.number)), "detail": details.get(each.number)}
        for each in questions
    ]


def _rows(execute: Callable[..., sqlite3.Cursor], query: str) -> list[tuple[Any, ...]]:
    """The rows; none when the file is of an older daemon and has no such table."""
    try:
        return execute(query).fetchall()
    except sqlite3.OperationalError:
        return []


def _with_verdict(data: dict[str, Any], verdict: Sequence[str] | None) -> dict[str, Any]:
    if data["answer"] is not None and verdict is not None:
        data["answer"] |= {"verified": json.loads(verdict[0]), "verified_why": verdict[1]}
    return data


def question_of(row: tuple[Any, ...]) -> Question:
    """The question of a row."""
    number, place, text, options, tool, electorate, task, asked, deadline, action, msgids, answer, *rest = row
    choice, closed, told, discussed, asides, overruled = rest
    return Question(
        number,
        place,
        text,
        tuple(json.loads(options)),
        tool,
        tuple(json.loads(electorate)),
        task,
        asked,
        deadline,
        action,
        tuple(json.loads(msgids)),
        Answer.of_data(json.loads(answer)) if answer else None,
        choice,
        closed,
        bool(told),
        bool(discussed),
        asides,
        bool(overruled),
    )
