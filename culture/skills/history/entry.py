"""What is kept of an event: one entry in each place that it concerned, and the event again from that."""

import json
from collections.abc import Sequence
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from culture.protocol.message import NO_TAGS
from culture.protocol.modes import ModeChange
from culture.protocol.names import fold
from culture.server.core.ids import MICROSECONDS, EventId
from culture.server.events import (
    Event,
    Joined,
    Kicked,
    Left,
    Line,
    ModeSet,
    Parted,
    Redacted,
    Renamed,
    Said,
    TopicSet,
)

ACCOUNT = "a:"
"""Begins the party that is an account."""
_make = tuple.__new__  # what a NamedTuple's own constructor does, without the call around it


class Sort(IntEnum):
    """What an entry is to a reader."""

    MESSAGE = 0
    """PRIVMSG and NOTICE: what everybody gets."""
    EVENT = 1
    """The rest, for who asked for it (IRCv3 draft/event-playback)."""
    REDACTED = 2
    """Was taken back: only its id is left, so that it is not taken for new when it comes again."""


_EVENT = Sort.EVENT
_SORTS = {"PRIVMSG": Sort.MESSAGE, "NOTICE": Sort.MESSAGE, "": Sort.REDACTED}


class Entry(NamedTuple):
    """An event in one place; ``at`` is the time of its origin in microseconds since 1970."""

    place: str
    origin: str
    epoch: str
    seq: int
    at: int
    verb: str
    source: str
    account: str | None
    kind: str
    text: str
    target: str = ""
    """Whom a private message was addressed to, or the name of the channel as it was spelled."""
    status: str = ""
    """The rank it was for."""
    closed: bool = False
    """Not everybody could have been there."""
    data: str = ""
    """What else the event has, as JSON."""

    @property
    def sort(self) -> Sort:
        """Whom it is for."""
        return _SORTS.get(self.verb, _EVENT)

    @property
    def is_private(self) -> bool:
        """Was it between two alone?"""
        return " " in self.place

    @property
    def redacts(self) -> str:
        """The id of the message that this one takes back."""
        return str(json.loads(self.data).get("msgid", "")) if self.verb == "REDACT" and self.data else ""

    def blank(self) -> "Entry":
        """What is left of one that was taken back."""
        return self._replace(verb="", source="", account=None, kind="", text="", data="")

    @property
    def msgid(self) -> str:
        """The id that clients know."""
        return f"{self.origin}.{self.epoch}.{self.seq}"

    @property
    def nick(self) -> str:
        """Whoever did it."""
        return self.source.partition("!")[0]


def party(account: str | None, nick: str) -> str:
    """Who somebody is to a private conversation: the account, or for want of one the nick."""
    return f"n:{fold(nick)}" if account is None else f"{ACCOUNT}{account}"


def conversation(one: str, other: str) -> str:
    """The place where two parties talk."""
    return " ".join(sorted((one, other)))


def split_msgid(msgid: str) -> tuple[str, str, int] | None:
    """Origin, epoch and number of a message; None for what cannot be an id."""
    head, _, number = msgid.rpartition(".")
    origin, _, epoch = head.rpartition(".")
    if not (origin and epoch and number.isascii() and number.isdigit() and len(number) < 19):
        return None
    return (origin, epoch, int(number)) if number == str(int(number)) else None


def said_entry(said: Said, place: str, closed: bool) -> Entry:
    """What is kept of a message."""
    origin, epoch, seq, at = said.id
    data = ""
    if said.tags or said.mentions or said.lines:
        data = _json(tags=dict(said.tags), mentions=said.mentions, lines=said.lines)
    return _make(
        Entry,
        (
            place,
            origin,
            epoch,
            seq,
            round(at * MICROSECONDS),
            said.verb,
            said.source,
            said.account,
            said.kind,
            said.text,
            said.target,
            said.status,
            closed,
            data,
        ),
    )


def event_entry(event: Event, channel: str, account: str | None, closed: bool) -> Entry | None:
    """What is kept of any other event in a channel; None where nothing is."""
    kept = _kept(event)
    if kept is None:
        return None
    verb, text, further = kept
    origin, epoch, seq, at = event.id
    source = event.source  # type: ignore[union-attr]  # Arrived alone has none, and is not kept
    return Entry(
        fold(channel),
        origin,
        epoch,
        seq,
        round(at * MICROSECONDS),
        verb,
        source,
        account,
        "",
        text,
        channel,
        "",
        closed,
        _json(**further) if further else "",
    )


def _kept(event: Event) -> tuple[str, str, dict[str, Any]] | None:
    match event:
        case Joined(status=status, realname=realname):
            return "JOIN", realname, {"status": status} if status else {}
        case Parted(reason=reason):
            return "PART", reason or "", {"has_reason": True} if reason == "" else {}
        case Left(reason=reason):
            return "QUIT", reason, {}
        case Renamed(new=new):
            return "NICK", new, {}
        case Kicked(nick=nick, reason=reason):
            return "KICK", reason, {"nick": nick}
        case TopicSet(text=text):
            return "TOPIC", text, {}
        case ModeSet(changes=changes):
            return "MODE", "", {"changes": changes}
        case Redacted(msgid=msgid, reason=reason):
            return "REDACT", reason or "", {"msgid": msgid}
    return None


def event_of(entry: Entry) -> Event:
    """The event as it was when it happened."""
    stamp = EventId(entry.origin, entry.epoch, entry.seq, entry.at / MICROSECONDS)
    data: dict[str, Any] = json.loads(entry.data) if entry.data else {}
    source, text, target = entry.source, entry.text, entry.target
    match entry.verb:
        case "JOIN":
            return Joined(stamp, source, target, data.get("status", ""), entry.account, text)
        case "PART":
            return Parted(stamp, source, target, text if text or data.get("has_reason") else None)
        case "QUIT":
            return Left(stamp, source, text)
        case "NICK":
            return Renamed(stamp, source, text)
        case "KICK":
            return Kicked(stamp, source, target, data.get("nick", ""), text)
        case "TOPIC":
            return TopicSet(stamp, source, target, text)
        case "MODE":
            return ModeSet(stamp, source, target, tuple(ModeChange(*each) for each in data.get("changes", ())))
        case "REDACT":
            return Redacted(stamp, source, target, data.get("msgid", ""), text or None)
    return _said(entry, stamp, data)


def _said(entry: Entry, stamp: EventId, data: dict[str, Any]) -> Said:
    return Said(
        stamp,
        entry.source,
        entry.verb,
        entry.target,
        entry.text,
        entry.account,
        entry.kind,
        MappingProxyType(data["tags"]) if data.get("tags") else NO_TAGS,
        tuple(data.get("mentions", ())),
        entry.status,
        _lines(data.get("lines", ())),
    )


def _lines(lines: Sequence[Sequence[Any]]) -> tuple[Line, ...]:
    return tuple(Line(text, concat) for text, concat in lines)


def _json(**data: Any) -> str:
    return json.dumps({key: value for key, value in data.items() if value}, ensure_ascii=False, separators=(",", ":"))
