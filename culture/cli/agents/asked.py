"""What agents have asked: from their daemons, and from the files of those that do not run."""

import sqlite3
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from typing import Any

from culture.cli.agents.known import load, picked
from culture.cli.agents.table import plain
from culture.cli.output import shown
from culture.clients.shared import pidfile
from culture.clients.shared.skill.call import CallFailed, call
from culture.config import paths
from culture.config.agents import TrustConfig
from culture.config.errors import ConfigError

PATIENCE = 5.0
_AT_ONCE = 16
_LONGEST_TEXT = 60
_HEADINGS = ("AGENT", "ID", "AGE", "LEFT", "WHERE", "WHO MAY ANSWER", "QUESTION")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def asked(nick: str | None, *, closed: bool) -> list[dict[str, Any]]:
    """The questions of all agents or of one, the oldest first, each with the agent's nick."""
    try:
        config = load()
        trust = {agent.nick: (config.agent(agent.nick) or agent).trust for agent in config.agents}
    except ConfigError:
        trust = {}
    names = list(dict.fromkeys([*trust, *pidfile.all_running()]))
    if nick is not None:
        names = picked(names, [nick], everyone=False)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda name: _of(name, trust.get(name), closed=closed), names)
        return sorted((each for several in found for each in several), key=lambda each: str(each["asked"]))


def _of(nick: str, trust: TrustConfig | None, *, closed: bool) -> list[dict[str, Any]]:
    if pidfile.running(nick) is not None:
        try:
            said = call(nick, "questions", {"closed": closed}, patience=PATIENCE)
        except CallFailed:
            pass
        else:
            return [{"nick": nick, **each} for each in said["questions"]] if isinstance(said, dict) else []
    return _at_rest(nick, trust, closed=closed)


def _at_rest(nick: str, trust: TrustConfig | None, *, closed: bool) -> list[dict[str, Any]]:
    file = paths.inbox_file(nick)
    if not file.exists():
        return []
    # Of a daemon that runs none of this is needed, and it brings all that an agent works with.
    from culture.clients.shared.questions.rows import as_data, read_questions
    from culture.clients.shared.trust import rules, who_may

    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=PATIENCE)) as records:
        try:
            questions = read_questions(records.execute, closed=closed)
            data = as_data(questions, records.execute)
        except sqlite3.OperationalError:
            # A file of an agent that never asked.
            return []
    who = [who_may(rules(trust, each.tool), each.electorate) for each in questions]
    return [{"nick": nick, **each, "who": may} for each, may in zip(data, who, strict=True)]


def age(question: dict[str, Any], now: datetime) -> float:
    """For how many seconds it is there."""
    return (now - datetime.fromisoformat(question["asked"])).total_seconds()


def table(questions: Sequence[dict[str, Any]], now: datetime) -> str:
    """One line per question."""
    rows = [_HEADINGS, *(tuple(map(plain, _row(each, now))) for each in questions)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _row(question: dict[str, Any], now: datetime) -> tuple[str, ...]:
    left = (datetime.fromisoformat(question["deadline"]) - now).total_seconds()
    end = question["answer"]
    return (
        question["nick"],
        question["id"],
        span(age(question, now)),
        end["outcome"].lower().replace("_", " ") if end else span(left) if left > 0 else "over",
        question["place"],
        _answered_by(end) if end else question["who"],
        plain(question["text"], _LONGEST_TEXT),
    )


def whole(question: dict[str, Any], now: datetime) -> str:
    """One question with all that there is to read before it is answered."""
    nick, id, end = plain(question["nick"]), question["id"], question["answer"]
    left = (datetime.fromisoformat(question["deadline"]) - now).total_seconds()
    when = f"asked {span(age(question, now))} ago in {plain(question['place'])}"
    state = f"{plain(end['outcome'].lower())} by {plain(_answered_by(end))}" if end else f"{span(left)} left"
    words = "/".join(map(plain, question["options"])) or "TEXT"
    rest = f"May answer: {plain(question['who'])}\nAnswer with: culture answer {nick} {id} {words}"
    parts = [f"{nick} {id}, {when}, {state}", *([f'Task: "{plain(question["task"])}"'] if question["task"] else [])]
    parts += [f"  {line}" for line in map(plain, question["text"].split("\n"))]
    # An older daemon tells no detail.
    parts += [f"  {shown(line)}" for line in (question.get("detail") or "").split("\n") if line]
    return "\n".join([*parts, *([] if end else [rest])])


def _answered_by(answer: dict[str, Any]) -> str:
    """Nick that answered, with the verdict of the server on that answer."""
    if not answer["by"]:
        return "-"
    found = {True: ", verified", False: ", NOT verified", "unknown": ", unverified"}.get(answer.get("verified", ""), "")
    return f"{answer['by']}{found}"


def span(seconds: float) -> str:
    """``45s``, ``12m``, ``3h``, ``2d``."""
    for unit, letter in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if seconds >= unit:
            return f"{seconds // unit:.0f}{letter}"
    return f"{max(seconds, 0):.0f}s"


def by_agent(questions: Iterable[dict[str, Any]]) -> dict[str, list[str]]:
    """The ids of the questions of each agent."""
    found: dict[str, list[str]] = {}
    for each in questions:
        found.setdefault(each["nick"], []).append(each["id"])
    return found
