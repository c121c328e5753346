"""Questions and votes on disk, so that a daemon that was killed finds them as they were."""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from culture.clients.shared.inbox import SELF
from culture.clients.shared.questions.model import Answer, Question
from culture.clients.shared.questions.rows import COLUMNS, as_data, question_of
from culture.clients.shared.records import Records
from culture.clients.shared.trust import Vote
from culture.protocol.names import fold
from culture.protocol.vocabulary import UserClass
from culture.runtime import REAL, Runtime

KEPT_SECONDS = 30 * 86400.0
KEPT = 10_000
"""So many that are closed are remembered at most."""
NAMELESS = "-"
"""Stands for the ids of lines that a server gave none."""
_FORGET_EVERY = 86400.0


class QuestionStore:
    """The questions of one agent; a number is never used twice."""

    def __init__(self, records: Records, *, runtime: Runtime = REAL) -> None:
        self._records = records
        self.clock = runtime.now
        self._open = {question.number: question for question in self._select("answer IS NULL")}
        self._forgot = 0.0

    def forget_old(self) -> None:
        """Let go of what was answered long ago, and of the oldest where there are too many."""
        self._forgot, before = self.clock(), self.clock() - KEPT_SECONDS
        with self._records.change() as records:
            (newest,) = records.execute("SELECT coalesce(max(number), 0) FROM questions").fetchone()
            records.execute(
                "DELETE FROM questions WHERE closed < ? OR (closed > 0 AND number <= ?)", (before, newest - KEPT)
            )
            records.execute("DELETE FROM votes WHERE question NOT IN (SELECT number FROM questions)")
            records.execute("DELETE FROM verdicts WHERE question NOT IN (SELECT number FROM questions)")
            records.execute("DELETE FROM details WHERE question NOT IN (SELECT number FROM questions)")

    @property
    def open(self) -> list[Question]:
        """Those that wait, the oldest first."""
        return list(self._open.values())

    def add(self, question: Question, detail: str = "") -> Question:
        """Keep a new question, with what its text leaves out; it gets its number."""
        if self.clock() - self._forgot > _FORGET_EVERY:
            self.forget_old()
        with self._records.change() as records:
            number = records.execute(
                "INSERT INTO questions (place, text, options, tool, electorate, task, asked, deadline, action)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    question.place,
                    question.text,
                    json.dumps(question.options),
                    question.tool,
                    json.dumps(question.electorate),
                    question.task,
                    question.asked,
                    question.deadline,
                    question.action,
                ),
            ).lastrowid
            assert number is not None
            if detail:
                records.execute("INSERT INTO details VALUES (?, ?)", (number, detail))
        return self._note(replace(question, number=number))

    def remove(self, number: int) -> None:
        """A question that was never asked."""
        with self._records.change() as records:
            records.execute("DELETE FROM questions WHERE number = ?", (number,))
            records.execute("DELETE FROM details WHERE question = ?", (number,))
        self._open.pop(number, None)

    def get(self, number: int) -> Question | None:
        """The question of that number."""
        found = self._open.get(number) or next(iter(self._select("number = ?", number)), None)
        return found

    def detail(self, number: int) -> str:
        """What the text of a question leaves out: a diff, a whole command; empty when nothing."""
        row = self._records.execute("SELECT text FROM details WHERE question = ?", (number,)).fetchone()
        return str(row[0]) if row else ""

    def same(self, place: str, text: str, options: Sequence[str], tool: str = "", detail: str = "") -> Question | None:
        """The same question, still open, or closed without the agent having heard how.

        One for leave to use a tool is never one of the agent's own in the same words, which others may answer.
        """
        wanted = (fold(place), text, tuple(options), tool)
        # Of one that nobody answered the agent reads in this turn: to ask again is to ask once more.
        unheard = (
            "answer IS NOT NULL AND told = 0 AND NOT EXISTS (SELECT 1 FROM remarks JOIN messages USING (msgid)"
            " WHERE remarks.question = questions.number AND sender = ? AND state = 'given')"
        )
        for question in [*self.open, *self._select(unheard, SELF)]:
            found = (fold(question.place), question.text, question.options, question.tool)
            if found == wanted and self.detail(question.number) == detail:
                return question
        return None

    def posted_as(self, msgid: str) -> Question | None:
        """The question that was posted in this message."""
        if msgid == NAMELESS:
            return None
        for question in self._select("instr(msgids, ?) > 0", json.dumps(msgid)):
            return question
        return None

    def last_closed(self, may_be: Callable[[Question], bool], since: float) -> Question | None:
        """The one that was closed last, of those that may be meant."""
        for question in self._select("closed >= ? ORDER BY closed DESC, number DESC LIMIT 20", since):
            if may_be(question):
                return question
        return None

    def untold(self) -> list[Question]:
        """Those whose end the agent has not heard of."""
        return self._select("answer IS NOT NULL AND told = 0")

    def recent(self, limit: int) -> list[Question]:
        """The last that are closed, the newest first."""
        return self._select("answer IS NOT NULL ORDER BY closed DESC LIMIT ?", limit)

    def counted(self, msgid: str) -> Question | None:
        """The question to which this message was counted."""
        row = self._records.execute("SELECT question FROM votes WHERE msgid = ?", (msgid,)).fetchone()
        return self.get(row[0]) if row else None

    def posted(self, question: Question, msgids: Sequence[str]) -> Question:
        """It is on IRC."""
        self._update(question.number, "msgids = ?", json.dumps(list(msgids)))
        return self._note(replace(question, msgids=tuple(msgids)))

    def shorten(self, question: Question, deadline: float) -> Question:
        """It waits no longer than this."""
        self._update(question.number, "deadline = ?", deadline)
        return self._note(replace(question, deadline=deadline))

    def vote(self, question: Question, vote: Vote) -> list[Vote]:
        """Count a message; all that count, in the order in which they came."""
        self._records.execute(
            "INSERT OR IGNORE INTO votes VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                question.number,
                vote.msgid,
                vote.nick,
                vote.kind.value,
                vote.account,
                vote.operator,
                vote.choice,
                vote.text,
            ),
        )
        return self.votes(question)

    def votes(self, question: Question) -> list[Vote]:
        """The votes on a question."""
        rows = self._records.execute(
            "SELECT nick, kind, choice, account, operator, msgid, text FROM votes WHERE question = ? ORDER BY rowid",
            (question.number,),
        )
        return [Vote(row[0], UserClass(row[1]), row[2], row[3], bool(row[4]), row[5], row[6]) for row in rows]

    def close(self, question: Question, answer: Answer, choice: str = "", *, told: bool) -> Question:
        """It has an end."""
        now = self.clock()
        self._update(
            question.number,
            "answer = ?, choice = ?, closed = ?, told = ?",
            json.dumps(answer.as_data()),
            choice,
            now,
            told,
        )
        self._open.pop(question.number, None)
        return replace(question, answer=answer, choice=choice, closed=now, told=told)

    def at_once(self) -> AbstractContextManager[Records]:
        """What is noted within this happens whole or not at all."""
        return self._records.change()

    def tell(self, question: Question, *, told: bool = True) -> None:
        """The agent knows the end, or does not after all."""
        self._update(question.number, "told = ?", told)

    def settle(self) -> None:
        """A turn is over: what is closed the agent has heard of, but for answers that wait in its inbox."""
        self._records.execute(
            "UPDATE questions SET told = 1 WHERE answer IS NOT NULL AND told = 0 AND NOT EXISTS (SELECT 1 FROM remarks"
            " JOIN messages USING (msgid) WHERE remarks.question = questions.number AND state IN ('unread', 'given'))"
        )

    def has_mail(self, question: Question) -> bool:
        """Whether the agent was given a message that is about it."""
        found = self._records.execute("SELECT 1 FROM remarks WHERE question = ? LIMIT 1", (question.number,))
        return found.fetchone() is not None

    def discuss(self, question: Question) -> Question:
        """One more message about it that is no answer."""
        self._update(question.number, "discussed = 1, asides = asides + 1")
        return self._note(replace(question, discussed=True, asides=question.asides + 1))

    def note_verdict(self, number: int, verified: object, why: str) -> None:
        """Keep what the server found when it looked up the answer: true, false, or "unknown"."""
        row = (number, json.dumps(verified), why)
        self._records.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", row)

    def as_data(self, questions: Sequence[Question]) -> list[dict[str, Any]]:
        """The questions as JSON has them, answers with what the server found of them."""
        return as_data(questions, self._records.execute)

    def overrule(self, question: Question) -> None:
        """Somebody whose word counts more has said otherwise."""
        self._update(question.number, "overruled = 1")

    def _update(self, number: int, change: str, *values: object) -> None:
        self._records.execute(f"UPDATE questions SET {change} WHERE number = ?", (*values, number))

    def _note(self, question: Question) -> Question:
        self._open[question.number] = question
        return question

    def _select(self, which: str, *values: object) -> list[Question]:
        rest = which if "ORDER BY" in which else f"{which} ORDER BY number"
        return [
            question_of(row) for row in self._records.execute(f"SELECT {COLUMNS} FROM questions WHERE {rest}", values)
        ]
