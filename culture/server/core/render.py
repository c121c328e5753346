"""An event as the line that a client with these capabilities shall get."""

import time
from enum import IntFlag

from culture.protocol.caps import MULTILINE, MULTILINE_CONCAT
from culture.protocol.message import Message, escape
from culture.protocol.modes import format_changes
from culture.protocol.vocabulary import Cap, Tag
from culture.server.core.encode import wire
from culture.server.core.ids import MICROSECONDS
from culture.server.events import (
    AccountSet,
    AwaySet,
    ChannelRenamed,
    Event,
    HostSet,
    Invited,
    Joined,
    Kicked,
    Left,
    ModeSet,
    Parted,
    RealnameSet,
    Redacted,
    Renamed,
    Said,
    TopicSet,
    UserModeSet,
    Walloped,
    nick_of,
)


class Flavour(IntFlag):
    """The capabilities that decide how a line looks; sessions with equal flavours share its bytes."""

    PLAIN = 0
    TIME = 1
    TAGS = 2
    MENTIONS = 4
    ACCOUNT = 8
    # What follows concerns other events than messages.
    EXTENDED_JOIN = 16
    ACCOUNT_NOTIFY = 32
    AWAY_NOTIFY = 64
    INVITE_NOTIFY = 128
    CHGHOST = 256
    SETNAME = 512
    REDACTION = 1024
    RENAME = 2048
    # Messages of several lines.
    MULTILINE = 4096


SAID = Flavour.TIME | Flavour.TAGS | Flavour.MENTIONS | Flavour.ACCOUNT
"""What decides how a message looks."""

LONG = SAID | Flavour.MULTILINE
"""What decides how a message of several lines looks."""

FLAVOURS = {
    "server-time": Flavour.TIME,
    "message-tags": Flavour.TAGS,
    Cap.MENTIONS.value: Flavour.MENTIONS,
    "account-tag": Flavour.ACCOUNT,
    "extended-join": Flavour.EXTENDED_JOIN,
    "account-notify": Flavour.ACCOUNT_NOTIFY,
    "away-notify": Flavour.AWAY_NOTIFY,
    "invite-notify": Flavour.INVITE_NOTIFY,
    "chghost": Flavour.CHGHOST,
    "setname": Flavour.SETNAME,
    "draft/message-redaction": Flavour.REDACTION,
    "draft/channel-rename": Flavour.RENAME,
    MULTILINE: Flavour.MULTILINE,
}
_TAGS_REPEATED = 512  # bytes: with more, a hundred lines would fill the queue of whoever hears them


def flavour_of(caps: frozenset[str]) -> Flavour:
    """What a session with these capabilities wants."""
    flavour = Flavour.PLAIN
    for cap in caps:
        flavour |= FLAVOURS.get(cap, Flavour.PLAIN)
    return flavour if "batch" in caps else flavour & ~Flavour.MULTILINE


def iso_time(at: float) -> str:
    """Seconds since 1970 as server-time writes them; by whole microseconds, so that a time read back shows the same."""
    whole, rest = divmod(round(at * MICROSECONDS), MICROSECONDS)
    year, month, day, hour, minute, second = time.gmtime(whole)[:6]
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{rest // 1000:03}Z"


def render(event: Event, wants: int, account: str | None = None) -> bytes | None:
    """The line with its CR LF; None where this client is not told. ``account`` is that of whoever did it."""
    if isinstance(event, Said):
        return render_said(event, wants)
    message = _message(event, wants)
    if message is None:
        return None
    return _tags(event, wants, account).encode() + wire(message)


def render_said(said: Said, flavour: int) -> bytes | None:
    """The hot line: made once per flavour, so by hand; nothing gets into a Said that could end a line."""
    if said.lines:
        return _batch(said, flavour) if flavour & Flavour.MULTILINE else _one_by_one(said, flavour)
    if said.verb == "TAGMSG":
        if not flavour & Flavour.TAGS:
            return None
        return f"{_tags(said, flavour, said.account)}:{said.source} TAGMSG {said.status}{said.target}\r\n".encode()
    line = f":{said.source} {said.verb} {said.status}{said.target} :{said.text}\r\n"
    return (_tags(said, flavour, said.account) + line if flavour else line).encode()


def _batch(said: Said, flavour: int) -> bytes:
    """A message of several lines for who knows them: one batch, whose opening has the tags (IRCv3 draft/multiline)."""
    name, addressed = f"m{said.id.seq}", f"{said.status}{said.target}"
    rows = [f"{_tags(said, flavour, said.account)}:{said.source} BATCH +{name} {MULTILINE} {addressed}\r\n"]
    for text, concat in said.lines:
        tags = f"@batch={name};{MULTILINE_CONCAT}" if concat else f"@batch={name}"
        rows.append(f"{tags} :{said.source} {said.verb} {addressed} :{text}\r\n")
    rows.append(f":{said.source} BATCH -{name}\r\n")
    return "".join(rows).encode()


def _one_by_one(said: Said, flavour: int) -> bytes:
    """A message of several lines for everybody else: ordinary messages, of which the first has the id."""
    tags = _tags(said, flavour, said.account)
    again = _tags(said, flavour, said.account, again=True)
    if len(again.encode()) > _TAGS_REPEATED:
        again = _tags(said, flavour & ~Flavour.TAGS, said.account, again=True)
    rows: list[str] = []
    for text, _ in said.lines:
        if text:
            rows.append(f"{again if rows else tags}:{said.source} {said.verb} {said.status}{said.target} :{text}\r\n")
    return "".join(rows).encode()


def _tags(event: Event, wants: int, account: str | None, again: bool = False) -> str:
    """The tags with their ``@``; ``again``: what was said in a line before this one is no second message."""
    words = []
    if wants & Flavour.TIME:
        words.append("time=" + iso_time(event.id.at))
    if wants & Flavour.ACCOUNT and account is not None:
        words.append("account=" + escape(account))
    if wants & Flavour.TAGS:
        if not again:
            words.append("msgid=" + event.id.msgid)
        if isinstance(event, Said):
            words += [f"{key}={escape(value)}" if value else key for key, value in event.tags.items()]
            words.append(f"{Tag.CLASS}={event.kind}")
    if wants & Flavour.MENTIONS and isinstance(event, Said) and event.mentions and not again:
        words.append(f"{Tag.MENTIONS}={','.join(event.mentions)}")
    return f"@{';'.join(words)} " if words else ""


def _message(event: Event, wants: int) -> Message | None:
    match event:
        case Joined(_, source, channel, _, account, realname):
            shown = (channel, account or "*", realname) if wants & Flavour.EXTENDED_JOIN else (channel,)
            return Message("JOIN", shown, source)
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
            return Message("MODE", (channel, *format_changes(changes, len(changes), _ONE_LINE)[0]), source)
        case UserModeSet(_, source, changes):
            return Message("MODE", (nick_of(source), *format_changes(changes)[0]), source)
        case Invited(_, source, nick, channel):
            return Message("INVITE", (nick, channel), source)
        case Walloped(_, source, text):
            return Message("WALLOPS", (text,), source)
    return _modern(event, wants)


_ONE_LINE = 512


def _modern(event: Event, wants: int) -> Message | None:
    """What only clients hear of that asked for it."""
    match event:
        case AwaySet(_, source, message) if wants & Flavour.AWAY_NOTIFY:
            return Message("AWAY", () if message is None else (message,), source)
        case AccountSet(_, source, account, _) if wants & Flavour.ACCOUNT_NOTIFY:
            return Message("ACCOUNT", (account or "*",), source)
        case RealnameSet(_, source, realname) if wants & Flavour.SETNAME:
            return Message("SETNAME", (realname,), source)
        case HostSet(_, source, username, host) if wants & Flavour.CHGHOST:
            return Message("CHGHOST", (username, host), source)
        case Redacted(_, source, target, msgid, reason) if wants & Flavour.REDACTION:
            return Message("REDACT", (target, msgid) if reason is None else (target, msgid, reason), source)
        case ChannelRenamed(_, source, channel, new, reason) if wants & Flavour.RENAME:
            return Message("RENAME", (channel, new, reason), source)
    return None
