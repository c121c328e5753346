"""Events as lines between servers, both directions side by side.

A line is an IRC message with RFC 2813's verbs where they fit. Its tags tell the event's id (``id``) and time (``at``,
microseconds); everything that the event has and the verb has no place for is in further tags.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from culture.protocol.message import NO_TAGS, Message, ProtocolError
from culture.protocol.modes import Change
from culture.server.events import (
    AccountSet,
    Arrived,
    AwaySet,
    ChannelRenamed,
    Event,
    HostSet,
    Invited,
    Joined,
    Kicked,
    Left,
    Line,
    MetadataSet,
    ModeSet,
    Parted,
    RealnameSet,
    Redacted,
    Renamed,
    Said,
    TopicSet,
    UserModeSet,
    Walloped,
)
from culture.server.ids import Stamp

MICROSECONDS = 1_000_000
_LONGEST_SEQ = 18
_OWN = frozenset(
    {"id", "at", "account", "kind", "mentions", "lines", "v", "n", "seal", "away", "modes", "meta", "none", "got"}
    | {"shared", "unvouched"}
)

Tags = dict[str, str]


class Garbled(ProtocolError):
    """A line that is none of ours."""


def encode(event: Event) -> Message:
    """The line of an event."""
    verb, params, source, tags = _ENCODERS[type(event)](event)
    return Message(verb, params, source, {**stamp_tags(event.id), **tags})


def decode(line: Message) -> Event:
    """The event of a line; raises Garbled."""
    decoder = _DECODERS.get(line.verb)
    if decoder is None:
        raise Garbled(f"unknown verb {line.verb}")
    try:
        return decoder(line, read_stamp(line.tags))
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise Garbled(f"{line.verb}: {error}") from error


def stamp_tags(stamp: Stamp) -> Tags:
    """An event's id and time as tags."""
    origin, epoch, seq, at = stamp
    return {"id": f"{origin}.{epoch}.{seq}", "at": str(round(at * MICROSECONDS))}


def read_stamp(tags: Mapping[str, str]) -> Stamp:
    """The same again."""
    head, _, number = tags["id"].rpartition(".")
    origin, _, epoch = head.rpartition(".")
    at = tags["at"]
    if not (origin and epoch and _is_number(number) and _is_number(at)):
        raise ValueError("not an id")
    return Stamp(origin, epoch, int(number), int(at) / MICROSECONDS)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_SEQ


Encoded = tuple[str, tuple[str, ...], str, Tags]


def _optional(**tags: str | None) -> Tags:
    return {key: value for key, value in tags.items() if value}


# Arrived: NICK nick hops user host server +modes :real name, from its server (RFC 2813 §4.1.3)


def _encode_arrived(event: Arrived) -> Encoded:
    words = (event.nick, "1", event.username, event.host, event.server, f"+{event.modes}", event.realname)
    return "NICK", words, event.server, _optional(account=event.account, kind=event.kind)


def _decode_nick(line: Message, stamp: Stamp) -> Event:
    if len(line.params) == 1:
        return Renamed(stamp, line.source, line.params[0])
    nick, _, username, host, server, modes, realname = line.params
    return Arrived(
        stamp,
        nick,
        username,
        host,
        realname,
        server,
        line.tags.get("account"),
        line.tags.get("kind", "unknown"),
        modes.removeprefix("+"),
    )


# Left and what else users do by themselves


def _encode_left(event: Left) -> Encoded:
    return "QUIT", (event.reason,), event.source, {}


def _decode_left(line: Message, stamp: Stamp) -> Event:
    return Left(stamp, line.source, line.params[0])


def _encode_renamed(event: Renamed) -> Encoded:
    return "NICK", (event.new,), event.source, {}


def _encode_away(event: AwaySet) -> Encoded:
    return "AWAY", () if event.message is None else (event.message,), event.source, {}


def _decode_away(line: Message, stamp: Stamp) -> Event:
    return AwaySet(stamp, line.source, line.params[0] if line.params else None)


def _encode_account(event: AccountSet) -> Encoded:
    return "ACCOUNT", (event.account or "*", event.kind), event.source, {}


def _decode_account(line: Message, stamp: Stamp) -> Event:
    account, kind = line.params
    return AccountSet(stamp, line.source, None if account == "*" else account, kind)


def _encode_realname(event: RealnameSet) -> Encoded:
    return "SETNAME", (event.realname,), event.source, {}


def _decode_realname(line: Message, stamp: Stamp) -> Event:
    return RealnameSet(stamp, line.source, line.params[0])


def _encode_host(event: HostSet) -> Encoded:
    return "CHGHOST", (event.username, event.host), event.source, {}


def _decode_host(line: Message, stamp: Stamp) -> Event:
    username, host = line.params
    return HostSet(stamp, line.source, username, host)


def _encode_walloped(event: Walloped) -> Encoded:
    return "WALLOPS", (event.text,), event.source, {}


def _decode_walloped(line: Message, stamp: Stamp) -> Event:
    return Walloped(stamp, line.source, line.params[0])


# Modes: MODE target :[[add, letter, parameter], …]; parameters may have any character


def _encode_user_modes(event: UserModeSet) -> Encoded:
    return "UMODE", (_changes(event.changes),), event.source, {}


def _decode_user_modes(line: Message, stamp: Stamp) -> Event:
    return UserModeSet(stamp, line.source, _read_changes(line.params[0]))


def _encode_modes(event: ModeSet) -> Encoded:
    return "MODE", (event.channel, _changes(event.changes)), event.source, {}


def _decode_modes(line: Message, stamp: Stamp) -> Event:
    channel, changes = line.params
    return ModeSet(stamp, line.source, channel, _read_changes(changes))


def _changes(changes: tuple[Change, ...]) -> str:
    return json.dumps(changes, ensure_ascii=False, separators=(",", ":"))


def _read_changes(text: str) -> tuple[Change, ...]:
    read = []
    for add, mode, param in json.loads(text):
        if not (isinstance(add, bool) and isinstance(mode, str) and len(mode) == 1):
            raise ValueError("not a change of modes")
        if not (param is None or isinstance(param, str)):
            raise ValueError("not a parameter")
        read.append(Change(add, mode, param))
    return tuple(read)


# Channels


def _encode_joined(event: Joined) -> Encoded:
    tags = _optional(account=event.account)
    return "JOIN", (event.channel, f"+{event.status}", event.realname), event.source, tags


def _decode_joined(line: Message, stamp: Stamp) -> Event:
    channel, status, realname = line.params
    return Joined(stamp, line.source, channel, status.removeprefix("+"), line.tags.get("account"), realname)


def _encode_parted(event: Parted) -> Encoded:
    return "PART", (event.channel,) if event.reason is None else (event.channel, event.reason), event.source, {}


def _decode_parted(line: Message, stamp: Stamp) -> Event:
    channel, *reason = line.params
    return Parted(stamp, line.source, channel, reason[0] if reason else None)


def _encode_kicked(event: Kicked) -> Encoded:
    return "KICK", (event.channel, event.nick, event.reason), event.source, {}


def _decode_kicked(line: Message, stamp: Stamp) -> Event:
    channel, nick, reason = line.params
    return Kicked(stamp, line.source, channel, nick, reason)


def _encode_topic(event: TopicSet) -> Encoded:
    return "TOPIC", (event.channel, event.text), event.source, {}


def _decode_topic(line: Message, stamp: Stamp) -> Event:
    channel, text = line.params
    return TopicSet(stamp, line.source, channel, text)


def _encode_invited(event: Invited) -> Encoded:
    return "INVITE", (event.nick, event.channel), event.source, {}


def _decode_invited(line: Message, stamp: Stamp) -> Event:
    nick, channel = line.params
    return Invited(stamp, line.source, nick, channel)


def _encode_channel_renamed(event: ChannelRenamed) -> Encoded:
    return "RENAME", (event.channel, event.new, event.reason), event.source, {}


def _decode_channel_renamed(line: Message, stamp: Stamp) -> Event:
    channel, new, reason = line.params
    return ChannelRenamed(stamp, line.source, channel, new, reason)


def _encode_metadata(event: MetadataSet) -> Encoded:
    words = (event.target, event.key, event.visibility)
    return "METADATA", words if event.value is None else (*words, event.value), event.source, {}


def _decode_metadata(line: Message, stamp: Stamp) -> Event:
    target, key, visibility, *value = line.params
    return MetadataSet(stamp, line.source, target, key, value[0] if value else None, visibility)


# Messages


def _encode_redacted(event: Redacted) -> Encoded:
    words = (event.target, event.msgid)
    return "REDACT", words if event.reason is None else (*words, event.reason), event.source, {}


def _decode_redacted(line: Message, stamp: Stamp) -> Event:
    target, msgid, *reason = line.params
    return Redacted(stamp, line.source, target, msgid, reason[0] if reason else None)


def _encode_said(event: Said) -> Encoded:
    tags = _optional(
        account=event.account,
        kind=event.kind,
        mentions=",".join(event.mentions),
        lines=json.dumps(event.lines, ensure_ascii=False, separators=(",", ":")) if event.lines else None,
    )
    theirs = {key: value for key, value in event.tags.items() if key not in _OWN}
    text = "" if event.lines else event.text
    words = (f"{event.status}{event.target}",) if event.verb == "TAGMSG" else (f"{event.status}{event.target}", text)
    return event.verb, words, event.source, {**theirs, **tags}


def _decode_said(line: Message, stamp: Stamp) -> Event:
    target, *text = line.params
    status = target[0] if target[0] in "@+" else ""
    lines = _read_lines(line.tags.get("lines"))
    said = joined(lines) if lines else "".join(text)
    theirs = {key: value for key, value in line.tags.items() if key not in _OWN}
    mentions = line.tags.get("mentions", "")
    return Said(
        stamp,
        line.source,
        line.verb,
        target.removeprefix(status),
        said,
        line.tags.get("account"),
        line.tags.get("kind", "unknown"),
        theirs or NO_TAGS,
        tuple(mentions.split(",")) if mentions else (),
        status,
        lines,
    )


def _read_lines(text: str | None) -> tuple[Line, ...]:
    if text is None:
        return ()
    lines = tuple(Line(line, concat) for line, concat in json.loads(text))
    for line, concat in lines:
        if not (isinstance(line, str) and isinstance(concat, bool)) or set(line) & set("\r\n\0"):
            raise ValueError("not lines")
    return lines


def joined(lines: tuple[Line, ...]) -> str:
    """The text of several lines."""
    text = ""
    for position, (line, concat) in enumerate(lines):
        text += line if concat or not position else f"\n{line}"
    return text


_ENCODERS: Mapping[type, Callable[[Any], Encoded]] = {
    Arrived: _encode_arrived,
    Left: _encode_left,
    Renamed: _encode_renamed,
    AwaySet: _encode_away,
    AccountSet: _encode_account,
    RealnameSet: _encode_realname,
    HostSet: _encode_host,
    Walloped: _encode_walloped,
    UserModeSet: _encode_user_modes,
    ModeSet: _encode_modes,
    Joined: _encode_joined,
    Parted: _encode_parted,
    Kicked: _encode_kicked,
    TopicSet: _encode_topic,
    Invited: _encode_invited,
    ChannelRenamed: _encode_channel_renamed,
    MetadataSet: _encode_metadata,
    Redacted: _encode_redacted,
    Said: _encode_said,
}
_DECODERS: Mapping[str, Callable[[Message, Stamp], Event]] = {
    "NICK": _decode_nick,
    "QUIT": _decode_left,
    "AWAY": _decode_away,
    "ACCOUNT": _decode_account,
    "SETNAME": _decode_realname,
    "CHGHOST": _decode_host,
    "WALLOPS": _decode_walloped,
    "UMODE": _decode_user_modes,
    "MODE": _decode_modes,
    "JOIN": _decode_joined,
    "PART": _decode_parted,
    "KICK": _decode_kicked,
    "TOPIC": _decode_topic,
    "INVITE": _decode_invited,
    "RENAME": _decode_channel_renamed,
    "METADATA": _decode_metadata,
    "REDACT": _decode_redacted,
    "PRIVMSG": _decode_said,
    "NOTICE": _decode_said,
    "TAGMSG": _decode_said,
}
VERBS = frozenset(_DECODERS)
"""The verbs that are events."""
EVENTS = tuple(_ENCODERS)
"""The kinds of event that may cross a link."""
