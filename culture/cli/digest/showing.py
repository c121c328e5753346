"""A digest as text for people, and as data for programs."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any

from culture.cli.agents.asked import span
from culture.cli.agents.table import plain
from culture.facts.digest import Broken, Deeds, Digest, Room
from culture.facts.questions import Question
from culture.facts.spend import Spent
from culture.facts.tasks import Errand
from culture.transport import Message

_LONGEST = 90
_ERRANDS = 5
_TALKERS = 5
_REMEDY = {
    "paused": "`culture resume {nick}`",
    "spiralling": "`@{nick} resume` or `@{nick} abort`",
    "parked": "`culture logs {nick}`, then `culture resume {nick}`",
    "crashed": "`culture logs {nick}`",
    "gone": "`culture status {nick}`",
    "endless": "`@{nick} status`",
    "budget": "`@{nick} budget`",
    "errors": "`culture logs {nick}`",
}


def shown(digest: Digest, brief: bool = False) -> str:
    """The digest in lines; a brief one is for a channel, and says of each agent one line."""
    parts = [
        ("", _head(digest)),
        ("Waiting for an answer", [*map(_waiting_at(digest), digest.waiting), *map(_call, digest.calls)]),
        ("Stuck", [line for deeds in digest.stuck for line in _stuck(deeds, digest.until)]),
        ("Agents", [line for deeds in digest.deeds for line in _deeds(deeds, brief)]),
        ("Rooms", list(map(_room, digest.rooms))),
        ("Links", list(map(_link, digest.broken))),
    ]
    return "\n".join(line for title, lines in parts for line in _part(title, lines, brief))


def as_data(digest: Digest) -> dict[str, Any]:
    """The same for programs."""
    data: dict[str, Any] = _simple(asdict(digest))
    data["calls"] = [_message(each) for each in digest.calls]
    for deeds, told in zip(digest.deeds, data["deeds"], strict=True):
        told["outcomes"] = deeds.outcomes
    return data


def _part(title: str, lines: Iterable[str], brief: bool) -> Iterator[str]:
    kept = list(lines)
    if not kept:
        return
    if title:
        yield from ([title + ":"] if brief else ["", title])
    yield from (f"  {line}" if title else line for line in kept)


def _head(digest: Digest) -> list[str]:
    length = span((digest.until - digest.since).total_seconds())
    first = f"From {_moment(digest.since)} to {_moment(digest.until)} ({length}): {_spent(digest.spent)}."
    if not (digest.deeds or digest.waiting or digest.rooms or digest.calls or digest.broken):
        return [first, "Nothing happened."]
    quiet = [plain(f"Nothing to tell of {', '.join(digest.quiet)}.", 300)] if digest.quiet else []
    return [first, *quiet]


def _waiting_at(digest: Digest) -> Any:
    def line(question: Question) -> str:
        where = f" in {question.place}" if question.place else " in private"
        text = plain(question.text or "(asked in private)", _LONGEST)
        open_for = span(question.age(digest.until))
        return plain(f"{question.nick} {question.id}, open for {open_for}{where}: {text}")

    return line


def _call(message: Message) -> str:
    where = "wrote to you" if message.private else f"called you in {message.channel}"
    return plain(f"{message.sender} {where} at {_moment(message.timestamp)}: {plain(message.text, _LONGEST)}")


def _stuck(deeds: Deeds, now: datetime) -> Iterator[str]:
    for each in deeds.stuck:
        since = f" (for {span((now - each.since).total_seconds())})" if each.since else ""
        remedy = _REMEDY.get(each.why, "").format(nick=deeds.nick)
        yield plain(f"{deeds.nick}{since}: {plain(each.text, 200)}") + (f"  → {remedy}" if remedy else "")


def _deeds(deeds: Deeds, brief: bool) -> Iterator[str]:
    ended = ", ".join(f"{number} {outcome}" for outcome, number in deeds.outcomes.items())
    how = f" ({ended})" if ended else ""
    yield plain(f"{deeds.nick}, {deeds.state}: {_spent(deeds.spent)}{how}")
    if brief:
        return
    for errand in deeds.errands[:_ERRANDS]:
        yield f"  {_errand(errand)}"
    if len(deeds.errands) > _ERRANDS:
        yield f"  … and {len(deeds.errands) - _ERRANDS} more"
    for question in deeds.asked:
        if not question.is_open:
            yield f"  {_closed(question)}"
    for alert in deeds.alerts:
        if alert.gravity != "info":
            yield plain(f"  called people at {_moment(alert.at)}: {plain(alert.text or alert.event, 120)}")


def _errand(errand: Errand) -> str:
    text = plain(errand.text or "(in private)", 60)
    by = f", for {errand.by}" if errand.by else ""
    where = f" in {errand.place}" if errand.place else ""
    return plain(f"{text}{where}{by}: {errand.outcome or 'at work'}")


def _closed(question: Question) -> str:
    verdict = f" ({question.verdict})" if question.verdict else ""
    by = f" by {question.by}{verdict}" if question.by else ""
    choice = f" “{plain(question.choice, 40)}”" if question.choice else ""
    text = plain(question.text or "(in private)", 60)
    return plain(f"asked {question.id} “{text}”: {question.outcome or 'closed'}{choice}{by}")


def _room(room: Room) -> str:
    by = ", ".join(f"{nick} {number}" for nick, number in room.by[:_TALKERS])
    more = f" and {len(room.by) - _TALKERS} more" if len(room.by) > _TALKERS else ""
    return plain(f"{room.name}: {room.said} said, by {by}{more}")


def _link(link: Broken) -> str:
    when = f" since {_moment(link.since)}" if link.since else ""
    new = "" if link.is_down or link.outages else "; it was not there before"
    return plain(f"{link.ends[0]} – {link.ends[1]}: {link.state}{when}{new or _outages(link)}")


def _outages(link: Broken) -> str:
    told = [
        f"{span((ended - began).total_seconds())} ({_moment(began)} – {_moment(ended)})"
        for began, ended in link.outages
    ]
    return f"; it was down for {', '.join(told)}" if told else ""


def _spent(spent: Spent) -> str:
    turns = "1 turn" if spent.turns == 1 else f"{spent.turns} turns"
    return f"{turns}, {spent.tokens:,} tokens, {spent.cost_usd:.2f} USD"


def _moment(at: datetime) -> str:
    return at.astimezone().strftime("%a %H:%M")


def _message(message: Message) -> dict[str, Any]:
    return {
        "at": message.timestamp.isoformat(),
        "place": message.channel,
        "sender": message.sender,
        "text": message.text,
        "private": message.private,
    }


def _simple(value: Any) -> Any:
    """Without what JSON has no word for."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): _simple(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_simple(each) for each in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
