"""Format events as log lines for people, in the format of weechat's logs."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from culture.protocol.modes import ModeChange, format_changes
from culture.server.core.render import iso_time
from culture.server.events import (
    ChannelRenamed,
    Joined,
    Kicked,
    Left,
    ModeSet,
    Parted,
    Redacted,
    Renamed,
    Said,
    TopicSet,
    nick_of,
)

CAME, WENT, NOTED, ACTED, CONTINUED = "-->", "<--", "--", " *", " |"
"""Marks in place of a nick; none of them is a valid nick."""

_MAX_REMEMBERED = 10_000  # messages, to say which one was redacted
_ONE_LINE = 1_000_000

Logged = Said | Joined | Parted | Left | Renamed | Kicked | TopicSet | ModeSet | Redacted | ChannelRenamed


class LogLine(NamedTuple):
    """One line of a channel's log, before its text is cleaned."""

    channel: str
    at: float
    who: str
    text: str


class ChannelLogFormat:
    """Formats events as log lines.

    It remembers recent messages, to name the message that a redaction removes.
    """

    def __init__(self) -> None:
        self._recent: OrderedDict[str, tuple[float, str]] = OrderedDict()

    def rows(self, event: Logged, concerned: Iterable[str] = ()) -> Iterator[LogLine]:
        """Yield the log lines of an event.

        ``concerned``: the channels of the user, for the events "user quit" and "nick changed", which name no channel.
        """
        if isinstance(event, Said):
            self._remember(event)
            yield from _said(event)
        elif isinstance(event, Redacted):
            yield LogLine(event.target, event.id.at, NOTED, self._redaction_text(event))
        else:
            who, text = _text_of(event)
            for channel in _channels(event, concerned):
                yield LogLine(channel, event.id.at, who, text)

    def _remember(self, said: Said) -> None:
        self._recent[said.id.msgid] = said.id.at, nick_of(said.source)
        if len(self._recent) > _MAX_REMEMBERED:
            self._recent.popitem(last=False)

    def _redaction_text(self, event: Redacted) -> str:
        at, nick = self._recent.pop(event.msgid, (None, ""))
        what = "an earlier message" if at is None else f"what {nick} said at {moment(at)}"
        return f"{nick_of(event.source)} took back {what}{_because(event.reason)}"


def moment(at: float) -> str:
    """Return a time (seconds since 1970) in UTC as the logs show it: ``2026-03-19 10:00:00``."""
    return _second(int(at))


@lru_cache(maxsize=64)
def _second(whole: int) -> str:
    return iso_time(whole)[:19].replace("T", " ")


def _said(said: Said) -> Iterator[LogLine]:
    channel, at, nick = said.target, said.id.at, nick_of(said.source)
    who, text = nick, said.text
    if text[:1] == "\x01":
        word, _, rest = text[1:].removesuffix("\x01").partition(" ")
        is_action = word == "ACTION" and said.verb == "PRIVMSG"
        who, text = (ACTED, f"{nick} {rest}") if is_action else (NOTED, f"CTCP {word} from {nick}: {rest}")
    elif said.verb == "NOTICE":
        who, text = NOTED, f"Notice({nick}): {text}"
    for line in text.split("\n"):
        yield LogLine(channel, at, who, line)
        who = CONTINUED


def _channels(event: Logged, concerned: Iterable[str]) -> Iterable[str]:
    match event:
        case Left() | Renamed():
            return concerned
        case ChannelRenamed():
            return event.channel, event.new
        case Said() | Redacted():
            return (event.target,)
    return (event.channel,)


def _text_of(event: Logged) -> tuple[str, str]:
    nick, _, address = event.source.partition("!")
    shown = f"{nick} ({address})" if address else nick
    match event:
        case Joined():
            return CAME, f"{shown} has joined {event.channel}"
        case Parted():
            return WENT, f"{shown} has left {event.channel}{_because(event.reason)}"
        case Left():
            return WENT, f"{shown} has quit{_because(event.reason)}"
        case Kicked():
            return WENT, f"{nick} has kicked {event.nick}{_because(event.reason)}"
    return NOTED, _change_text(event, nick)


def _change_text(event: Logged, nick: str) -> str:
    match event:
        case Renamed():
            return f"{nick} is now known as {event.new}"
        case TopicSet(text=""):
            return f"{nick} has unset the topic of {event.channel}"
        case TopicSet():
            return f"{nick} has changed the topic of {event.channel} to: {event.text}"
        case ModeSet():
            return f"Mode {event.channel} [{_modes(event.changes)}] by {nick}"
        case ChannelRenamed():
            return f"{nick} has renamed {event.channel} to {event.new}{_because(event.reason)}"
    raise TypeError(f"{type(event).__name__} is not for logs")


def _because(reason: str | None) -> str:
    return f" ({reason})" if reason else ""


def _modes(changes: Iterable[ModeChange]) -> str:
    """Return mode changes as text, without the channel's key: more people can read the logs."""
    masked = [change._replace(param="*") if change.mode == "k" and change.param else change for change in changes]
    return " ".join(format_changes(masked, len(masked), _ONE_LINE)[0])
