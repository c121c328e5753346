"""Who comes, goes and changes: the lines about users."""

from culture.federation.codec.fields import Decoders, Encoded, Encoders, optional
from culture.protocol.message import Message
from culture.server.core.ids import EventId
from culture.server.events import AccountSet, Arrived, AwaySet, Event, HostSet, Left, RealnameSet, Renamed, Walloped

# Arrived: NICK nick hops user host server +modes :real name, from its server (RFC 2813 §4.1.3)


def _encode_arrived(event: Arrived) -> Encoded:
    words = (event.nick, "1", event.username, event.host, event.server, f"+{event.modes}", event.realname)
    return "NICK", words, event.server, optional(account=event.account, kind=event.kind)


def _decode_nick(line: Message, stamp: EventId) -> Event:
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


def _decode_left(line: Message, stamp: EventId) -> Event:
    return Left(stamp, line.source, line.params[0])


def _encode_renamed(event: Renamed) -> Encoded:
    return "NICK", (event.new,), event.source, {}


def _encode_away(event: AwaySet) -> Encoded:
    return "AWAY", () if event.message is None else (event.message,), event.source, {}


def _decode_away(line: Message, stamp: EventId) -> Event:
    return AwaySet(stamp, line.source, line.params[0] if line.params else None)


def _encode_account(event: AccountSet) -> Encoded:
    return "ACCOUNT", (event.account or "*", event.kind), event.source, {}


def _decode_account(line: Message, stamp: EventId) -> Event:
    account, kind = line.params
    return AccountSet(stamp, line.source, None if account == "*" else account, kind)


def _encode_realname(event: RealnameSet) -> Encoded:
    return "SETNAME", (event.realname,), event.source, {}


def _decode_realname(line: Message, stamp: EventId) -> Event:
    return RealnameSet(stamp, line.source, line.params[0])


def _encode_host(event: HostSet) -> Encoded:
    return "CHGHOST", (event.username, event.host), event.source, {}


def _decode_host(line: Message, stamp: EventId) -> Event:
    username, host = line.params
    return HostSet(stamp, line.source, username, host)


def _encode_walloped(event: Walloped) -> Encoded:
    return "WALLOPS", (event.text,), event.source, {}


def _decode_walloped(line: Message, stamp: EventId) -> Event:
    return Walloped(stamp, line.source, line.params[0])


ENCODERS: Encoders = {
    Arrived: _encode_arrived,
    Left: _encode_left,
    Renamed: _encode_renamed,
    AwaySet: _encode_away,
    AccountSet: _encode_account,
    RealnameSet: _encode_realname,
    HostSet: _encode_host,
    Walloped: _encode_walloped,
}
DECODERS: Decoders = {
    "NICK": _decode_nick,
    "QUIT": _decode_left,
    "AWAY": _decode_away,
    "ACCOUNT": _decode_account,
    "SETNAME": _decode_realname,
    "CHGHOST": _decode_host,
    "WALLOPS": _decode_walloped,
}
