"""What the ledger is told of an agent beside its state: turns, tasks, questions and alerts, without what is private."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from culture.clients.shared.questions import QuestionStore
from culture.clients.shared.records import Records
from culture.clients.shared.reports import Report
from culture.clients.shared.trust import rules, who_may
from culture.config.agents import TrustConfig
from culture.protocol.names import is_channel
from culture.protocol.split import clip
from culture.protocol.vocabulary import FactKind
from culture.transport import IRCTransport

_LONGEST_TEXT = 500
_LONGEST_FACT = 1_500
"""So many bytes of JSON a fact with an excerpt has: on its way it may take twice as many, and a server takes 2,000."""
_LONGEST_OPTION, _MOST_OPTIONS = 100, 20
_HIDDEN = frozenset("iks")


class AgentFacts:
    """Reads them off the records, as they are now."""

    def __init__(
        self, records: Records, transport: IRCTransport, questions: QuestionStore, trust: TrustConfig | None
    ) -> None:
        self._records = records
        self._transport = transport
        self._questions = questions
        self._trust = trust

    def of(self, report: Report) -> tuple[str, Mapping[str, Any]] | None:
        """The key and the value of a fact; None for what is no more."""
        [key] = report.keys
        match report.kind:
            case FactKind.SPEND:
                spent = self._spent(int(key))
                return None if spent is None else (f"turn-{key}", spent)
            case FactKind.TASK:
                task = self._task_of(int(key))
                return None if task is None else (f"turn-{key}", task)
            case FactKind.QUESTION:
                asked = self._asked(int(key))
                return None if asked is None else (f"q{key}", asked)
        fact = {"event": key, **({"text": _short(report.text)} if is_open(self._transport, report.place) else {})}
        return f"{key}-{report.numbers[0]}", fact

    def note_verdict(self, report: Report, verified: object, why: object) -> None:
        """Keep what the server found of the answer to a question."""
        self._questions.note_verdict(int(report.keys[0]), verified, str(why))

    def _task_of(self, number: int) -> Mapping[str, Any] | None:
        """What a turn was for: where and by whom it was asked, and how it ended."""
        row = self._records.execute(
            "SELECT place, task, began, ended, outcome FROM turns WHERE number = ?", (number,)
        ).fetchone()
        if row is None:
            return None
        place, text, began, ended, outcome = row
        fact: dict[str, Any] = {"began": _moment(began), "ended": _moment(ended)}
        if outcome is not None:
            fact["outcome"] = str(outcome).partition(":")[0]
        if is_open(self._transport, place):
            fact |= {"place": place, "text": _short(text), "by": self._asker(number)}
        return fact

    def _asker(self, number: int) -> str | None:
        row = self._records.execute(
            "SELECT sender FROM messages WHERE turn = ? ORDER BY number LIMIT 1", (number,)
        ).fetchone()
        return None if row is None else str(row[0])

    def _spent(self, number: int) -> Mapping[str, Any] | None:
        row = self._records.execute(
            "SELECT began, ended, outcome, tokens, cost_usd FROM turns WHERE number = ?", (number,)
        ).fetchone()
        if row is None:
            return None
        began, ended, outcome, tokens, cost = row
        how = str(outcome).partition(":")[0]  # behind it may be anybody's words
        return {"began": _moment(began), "ended": _moment(ended), "outcome": how, "tokens": tokens, "cost_usd": cost}

    def _asked(self, number: int) -> Mapping[str, Any] | None:
        question = self._questions.get(number)
        if question is None:
            return None
        fact: dict[str, Any] = {"open": question.is_open, "asked": _moment(question.asked)}
        fact["deadline"] = _moment(question.deadline)
        fact["who"] = who_may(rules(self._trust, question.tool), question.electorate)
        if is_open(self._transport, question.place):
            fact |= {"place": question.place, "text": _short(question.text)}
            fact |= {"options": list(question.options)} if _fit(question.options) else {}
        if question.answer is not None:
            answer = question.answer
            fact |= {"outcome": answer.outcome.value, "by": answer.by, "class": answer.kind}
            fact |= {"human_confirmed": answer.human_confirmed, "choice": _short(question.choice)}
            fact |= {"answer": answer.msgid} if answer.msgid else {}  # which the server looks up
        if "text" in fact and (detail := self._questions.detail(number)):
            fact |= _excerpt(detail, _LONGEST_FACT - len(json.dumps(fact, ensure_ascii=False).encode(errors="replace")))
        return fact


def is_open(transport: IRCTransport, place: str) -> bool:
    """May everybody know what is said there?"""
    channel = transport.view.channel(place)
    return is_channel(place) and (channel is None or not _HIDDEN & channel.flags)


def _short(text: str) -> str:
    return clip(text, _LONGEST_TEXT)


def _excerpt(detail: str, room: int) -> dict[str, Any]:
    """The first lines of a detail that fit into so many bytes of JSON, and how many lines are left out."""
    lines = detail.split("\n")
    kept = []
    for line in lines:
        room -= len(json.dumps(line, ensure_ascii=False).encode(errors="replace")) + 2
        if room < 0:
            break
        kept.append(line)
    return {"detail": kept, "more": len(lines) - len(kept)}


def _fit(options: Sequence[str]) -> bool:
    """Whether all there is to choose from can be told: half an answer would be none."""
    longest = max((len(option.encode()) for option in options), default=0)
    if not 0 < longest <= _LONGEST_OPTION or len(options) > _MOST_OPTIONS:
        return False
    return sum(len(each.encode()) for each in options) <= _LONGEST_TEXT


def _moment(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
