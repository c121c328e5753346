"""Render an event as the line for a client with given capabilities.

The capabilities that change how a line looks are a flavour (a bit set). A line is rendered once per flavour among its
recipients, so a message to a thousand clients costs a few renderings and a thousand references to the same bytes.
"""

from enum import IntFlag
from time import gmtime

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
    """The capabilities of a client that change how lines look, as bits.

    A line is rendered once for all sessions with equal bits.
    """

    PLAIN = 0
    TIME = 1
    TAGS = 2
    MENTIONS = 4
    ACCOUNT = 8
    # The following ones apply to other events than messages.
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
"""The flavour bits that change how a message looks."""

LONG = SAID | Flavour.MULTILINE
"""The flavour bits that change how a message of several lines looks."""

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
_TAGS_REPEATED = 512  # bytes of tags; longer ones, repeated on a hundred lines, would fill a send queue


def flavour_of(caps: frozenset[str]) -> Flavour:
    """Return those of the capabilities that change how lines look to a client, as bits."""
    flavour = Flavour.PLAIN
    for cap in caps:
        flavour |= FLAVOURS.get(cap, Flavour.PLAIN)
    return flavour if "batch" in caps else flavour & ~Flavour.MULTILINE


def iso_time(at: float) -> str:
    """Return a time (seconds since 1970) in the form of IRCv3 server-time, with milliseconds."""
    whole, rest = divmod(round(at * MICROSECONDS), MICROSECONDS)
    year, month, day, hour, minute, second = gmtime(whole)[:6]
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{rest // 1000:03}Z"


def render(event: Event, wants: int, account: str | None = None) -> bytes | None:
    """Return the line that shows an event to a client, with CRLF; None if it does not get one.

    ``wants``: the client's flavour (``Flavour``, the capabilities that change how lines look). ``account``: the account
    of the user who caused the event.
    """
    if isinstance(event, Said):
        return render_said(event, wants)
    message = _message(event, wants)
    if message is None:
        return None
    return _tags(event, wants, account).encode() + wire(message)


def render_said(message: Said, flavour: int) -> bytes | None:
    """Return a chat message as one or several lines; None if the client does not get it.

    ``flavour``: capabilities that change how lines look (``Flavour``). A Said never contains a line end, so for speed
    the line is put together without checks.
    """
    if message.lines:
        return _batch(message, flavour) if flavour & Flavour.MULTILINE else _one_by_one(message, flavour)
    if message.verb == "TAGMSG":
        if not flavour & Flavour.TAGS:
            return None
        tags = _tags(message, flavour, message.account)
        return f"{tags}:{message.source} TAGMSG {message.status}{message.target}\r\n".encode()
    line = f":{message.source} {message.verb} {message.status}{message.target} :{message.text}\r\n"
    return (_tags(message, flavour, message.account) + line if flavour else line).encode()


def _batch(message: Said, flavour: int) -> bytes:
    """Return a message of several lines as an IRCv3 batch, whose opening line has the tags.

    ``flavour``: capabilities of the client that change how lines look (``Flavour``).
    """
    name, addressed = f"m{message.id.seq}", f"{message.status}{message.target}"
    rows = [f"{_tags(message, flavour, message.account)}:{message.source} BATCH +{name} {MULTILINE} {addressed}\r\n"]
    for text, concat in message.lines:
        tags = f"@batch={name};{MULTILINE_CONCAT}" if concat else f"@batch={name}"
        rows.append(f"{tags} :{message.source} {message.verb} {addressed} :{text}\r\n")
    rows.append(f":{message.source} BATCH -{name}\r\n")
    return "".join(rows).encode()


def _one_by_one(message: Said, flavour: int) -> bytes:
    """Return a message of several lines as ordinary messages; only the first has the msgid.

    ``flavour``: capabilities of the client that change how lines look (``Flavour``).
    """
    tags = _tags(message, flavour, message.account)
    again = _tags(message, flavour, message.account, again=True)
    if len(again.encode()) > _TAGS_REPEATED:
        again = _tags(message, flavour & ~Flavour.TAGS, message.account, again=True)
    addressed = f"{message.status}{message.target}"
    rows: list[str] = []
    for text, _ in message.lines:
        if text:
            rows.append(f"{again if rows else tags}:{message.source} {message.verb} {addressed} :{text}\r\n")
    return "".join(rows).encode()


def _tags(event: Event, wants: int, account: str | None, again: bool = False) -> str:
    """Return an event's message tags as ``@tags `` (with the trailing space); "" without tags.

    ``wants``: the flavour (``Flavour``, capabilities that change how lines look). ``account``: that of the user who
    caused the event. ``again``: this is a later line of a multiline message, so tags that only its first line carries
    are left out.
    """
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
            params = (channel, account or "*", realname) if wants & Flavour.EXTENDED_JOIN else (channel,)
            return Message("JOIN", params, source)
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
    """Return the line for an event that IRC shows only to clients with a certain capability.

    ``wants``: the client's flavour (``Flavour``). None if the client lacks the capability, or for any other event.
    """
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
