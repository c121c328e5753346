"""An event as the line that a client with these capabilities shall get."""

import time
from enum import IntFlag

from culture.protocol.message import Message, escape
from culture.protocol.modes import Change, format_changes
from culture.protocol.stream import LINE_LIMIT
from culture.protocol.vocabulary import Tag
from culture.server.events import (
    Arrived,
    AwaySet,
    Event,
    Invited,
    Joined,
    Kicked,
    Left,
    ModeSet,
    Parted,
    Renamed,
    Said,
    TopicSet,
    UserModeSet,
    Walloped,
    nick_of,
)
from culture.server.wire import wire


class Flavour(IntFlag):
    """The capabilities that decide how a line looks; sessions with equal flavours share its bytes."""

    PLAIN = 0
    TIME = 1
    TAGS = 2
    MENTIONS = 4


def iso_time(at: float) -> str:
    """Seconds since 1970 as server-time writes them."""
    whole = int(at)
    year, month, day, hour, minute, second = time.gmtime(whole)[:6]
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{int((at - whole) * 1000):03}Z"


def render(event: Event, flavour: int) -> bytes | None:
    """The line with its CR LF; None where this client is not told."""
    if isinstance(event, Said):
        return render_said(event, flavour)
    message = _message(event)
    if message is None:
        return None
    return _tags(event, flavour).encode() + wire(message)


def render_said(said: Said, flavour: int) -> bytes | None:
    """The hot line: made once per flavour, so by hand; nothing gets into a Said that could end a line."""
    if said.verb == "TAGMSG":
        return (
            f"{_tags(said, flavour)}:{said.source} TAGMSG {said.status}{said.target}\r\n".encode()
            if flavour & 2
            else None
        )
    line = f":{said.source} {said.verb} {said.status}{said.target} :{said.text}\r\n"
    return (_tags(said, flavour) + line if flavour else line).encode()


def _tags(event: Event, flavour: int) -> str:
    words = []
    if flavour & Flavour.TIME:
        words.append("time=" + iso_time(event.id.at))
    if flavour & Flavour.TAGS:
        words.append("msgid=" + event.id.msgid)
        if isinstance(event, Said):
            words += [f"{key}={escape(value)}" if value else key for key, value in event.tags.items()]
            words.append(f"{Tag.CLASS}={event.kind}")
    if flavour & Flavour.MENTIONS and isinstance(event, Said) and event.mentions:
        words.append(f"{Tag.MENTIONS}={','.join(event.mentions)}")
    return f"@{';'.join(words)} " if words else ""


def _changes(changes: tuple[Change, ...]) -> tuple[str, ...]:
    """All of them in one line: whoever made the event saw to it that they fit."""
    return format_changes(changes, len(changes), LINE_LIMIT)[0]


def _message(event: Event) -> Message | None:
    match event:
        case Joined(_, source, channel):
            return Message("JOIN", (channel,), source)
        case Parted(_, source, channel, reason):
            return Message("PART", (channel,) if reason is None else (channel, reason), source)
        case Left(_, source, reason):
            return Message("QUIT", (reason,), source)
        case Renamed(_, source, new):
            return Message("NICK", (new,), source)
        case Kicked(_, source, channel, nick, reason):
            return Message("KICK", (channel, nick, reason), source)
        case TopicSet(_, source, channel, text):
            return Message("TOPIC", (channel, text), source)
        case ModeSet(_, source, channel, changes):
            return Message("MODE", (channel, *_changes(changes)), source)
        case UserModeSet(_, source, changes):
            return Message("MODE", (nick_of(source), *_changes(changes)), source)
        case Invited(_, source, nick, channel):
            return Message("INVITE", (nick, channel), source)
        case Walloped(_, source, text):
            return Message("WALLOPS", (text,), source)
        case Arrived() | AwaySet() | Said():
            return None
