"""MODE: modes of channels, members and users."""

from collections.abc import Iterable, Iterator
from itertools import chain

from culture.protocol.message import Message
from culture.protocol.modes import ModeChange, ModeKind, groups, parse_changes
from culture.protocol.names import fold, is_channel, short_name, valid_short_name
from culture.protocol.numerics import Numeric
from culture.protocol.split import room
from culture.protocol.vocabulary import ChannelMode
from culture.server.channels.ownership import check_registration, may_operate, may_release
from culture.server.commands import command
from culture.server.context import Context
from culture.server.core.isupport import KEY_LENGTH, MODE_KINDS, USER_MODES
from culture.server.core.state import Channel, full_mask
from culture.server.core.visibility import sees_channel
from culture.server.errors import Refused
from culture.server.events import ModeSet, UserModeSet

_LISTS = {
    "b": (Numeric.RPL_BANLIST, Numeric.RPL_ENDOFBANLIST),
    "e": (Numeric.RPL_EXCEPTLIST, Numeric.RPL_ENDOFEXCEPTLIST),
    "I": (Numeric.RPL_INVEXLIST, Numeric.RPL_ENDOFINVEXLIST),
}
_USER_KINDS = dict.fromkeys(USER_MODES, ModeKind.FLAG)
_RELEASE = ModeChange(False, ChannelMode.REGISTERED.value)
_LIMIT_DIGITS = 9
_MOST_SERVERS = 20  # that a channel can be shared with
_NOT_IN_KEY = frozenset(" ,\t\v\f")  # JOIN would read a comma as two keys


@command("MODE", params=1)
def mode(ctx: Context, message: Message) -> None:
    """``MODE #channel +o nick`` or ``MODE nick +i``: show or change modes (RFC 2812 §3.1.5)."""
    target, *words = message.params
    if is_channel(target):
        _channel_mode(ctx, ctx.find_channel(target), words)
    else:
        _user_mode(ctx, target, words)


def _user_mode(ctx: Context, nick: str, words: list[str]) -> None:
    user = ctx.user
    if ctx.find_user(nick) is not user:
        raise Refused(Numeric.ERR_USERSDONTMATCH)
    if not words:
        ctx.reply(Numeric.RPL_UMODEIS, "+" + "".join(sorted(user.modes)))
        return
    changes, unknown = parse_changes(words, _USER_KINDS)
    if unknown:
        ctx.reply(Numeric.ERR_UMODEUNKNOWNFLAG)
    # +o comes from OPER only.
    last = {each.mode: each for each in changes if each != ModeChange(True, "o")}
    effective = tuple(each for each in last.values() if each.add != (each.mode in user.modes))
    if effective:
        ctx.publish(UserModeSet(ctx.stamp(), user.source, effective))


def _channel_mode(ctx: Context, channel: Channel, words: list[str]) -> None:
    if not sees_channel(ctx.user, channel):
        raise Refused(Numeric.ERR_NOTONCHANNEL, channel.name)
    if not words:
        _show(ctx, channel)
        return
    changes, unknown = parse_changes(words, MODE_KINDS)
    for letter in unknown:
        ctx.refuse(Refused(Numeric.ERR_UNKNOWNMODE, letter))
    queries = dict.fromkeys(each.mode for each in changes if _is_query(each))
    requested = [each for each in changes if not _is_query(each)]
    if requested:
        ctx.each(_change, channel, requested)
    if queries:
        ctx.pull(chain.from_iterable(_list(ctx, channel, each) for each in queries))


def _is_query(change: ModeChange) -> bool:
    return MODE_KINDS[change.mode] is ModeKind.LIST and change.param is None


def _show(ctx: Context, channel: Channel) -> None:
    """Send the client a channel's modes (324; only members see the key) and age (329)."""
    letters, params = "".join(sorted(channel.flags)), []
    if channel.key is not None:
        letters += "k"
        params.append(channel.key if ctx.user in channel.members else "*")
    if channel.limit is not None:
        letters += "l"
        params.append(str(channel.limit))
    if channel.shared is not None:
        letters += ChannelMode.SHARED
        params.append(",".join(channel.shared))
    ctx.reply(Numeric.RPL_CHANNELMODEIS, channel.name, f"+{letters}", *params)
    ctx.reply(Numeric.RPL_CHANNELCREATED, channel.name, str(int(channel.created)))


def _list(ctx: Context, channel: Channel, mode: str) -> Iterator[Message]:
    row, end = _LISTS[mode]
    for mask, entry in list(channel.lists.get(mode, {}).items()):
        yield ctx.numeric(row, channel.name, mask, entry.by, str(int(entry.at)))
    yield ctx.numeric(end, channel.name)


def _change(ctx: Context, channel: Channel, changes: list[ModeChange]) -> None:
    if changes == [_RELEASE] and may_release(ctx.user, channel):
        _release(ctx, channel)
        return
    if ctx.user not in channel.members:
        raise Refused(Numeric.ERR_NOTONCHANNEL, channel.name)
    if not channel.is_operator(ctx.user):
        raise Refused(Numeric.ERR_CHANOPRIVSNEEDED, channel.name)
    effective = _effective(ctx, channel, _last_changes(_valid(ctx, channel, changes)))
    for group in groups(effective, room=room(ctx.user.source, "MODE", channel.name)):
        ctx.publish(ModeSet(ctx.stamp(), ctx.user.source, channel.name, tuple(group)))


def _release(ctx: Context, channel: Channel) -> None:
    """Unregister a channel by order of its founder or an IRC operator, who may be outside of it."""
    if channel.is_registered:
        was_outside = ctx.user not in channel.members
        ctx.publish(ModeSet(ctx.stamp(), ctx.user.source, channel.name, (_RELEASE,)))
        if was_outside:
            ctx.send("MODE", channel.name, f"-{_RELEASE.mode}", source=ctx.user.source)


def _valid(ctx: Context, channel: Channel, changes: list[ModeChange]) -> Iterator[ModeChange]:
    """Yield the valid mode changes, with checked parameters.

    Send the client errors for the others. Changes above the limit for one command (MODES in 005) are ignored.
    """
    left = ctx.config.limits.modes
    for change in changes:
        left -= change.param is not None
        if left < 0:
            return
        try:
            yield _checked(ctx, channel, change)
        except Refused as refused:
            ctx.refuse(refused)


def _checked(ctx: Context, channel: Channel, change: ModeChange) -> ModeChange:
    add, mode, param = change
    match MODE_KINDS[mode]:
        case ModeKind.PREFIX:
            return ModeChange(add, mode, _member(ctx, channel, param or "", is_promoted=add and mode == "o"))
        case ModeKind.LIST:
            return ModeChange(add, mode, _mask(ctx, channel, mode, param or ""))
        case ModeKind.ALWAYS:
            return ModeChange(add, mode, _key(channel, param or "") if add else "*")
        case ModeKind.WHEN_SET if add and mode == ChannelMode.SHARED:
            return ModeChange(add, mode, _servers(ctx, channel, param or ""))
        case ModeKind.WHEN_SET if add:
            return ModeChange(add, mode, _limit(channel, param or ""))
        case ModeKind.FLAG if mode == ChannelMode.REGISTERED and add != channel.is_registered:
            check_registration(ctx, channel, add)
    return change


def _member(ctx: Context, channel: Channel, nick: str, is_promoted: bool) -> str:
    user = ctx.find_user(nick)
    if user not in channel.members:
        raise Refused(Numeric.ERR_USERNOTINCHANNEL, user.nick, channel.name)
    if is_promoted and not may_operate(ctx.network, channel, user):
        text = f"Only people who are logged in operate a channel of the configuration, and {user.nick} is not one"
        raise Refused(Numeric.ERR_CHANOPRIVSNEEDED, channel.name, text=text)
    return user.nick


def _mask(ctx: Context, channel: Channel, mode: str, text: str) -> str:
    """Return the full mask for a list mode, spelled as on the list if the list has it.

    Raises Refused for a text that is no mask or too long for a line.
    """
    mask = full_mask(text)
    if not mask or " " in mask or mask.startswith(":"):
        raise Refused(Numeric.ERR_INVALIDMODEPARAM, channel.name, mode, text, text="This is not a mask")
    source = ctx.user.source
    row = f"{'n' * ctx.config.limits.nick_length} {channel.name} {source} {int(ctx.now())}"
    if len(mask.encode()) > min(room(source, "MODE", f"{channel.name} +b"), room(ctx.router.name, "367", row)):
        raise Refused(Numeric.ERR_INVALIDMODEPARAM, channel.name, mode, "*", text="This mask is too long")
    return next((each for each in channel.lists.get(mode, ()) if fold(each) == fold(mask)), mask)


def _key(channel: Channel, key: str) -> str:
    """Return a channel key unchanged if it is valid (RFC 2812 §2.3.1), else raise Refused."""
    if 0 < len(key) <= KEY_LENGTH and key.isascii() and key[0] != ":" and not _NOT_IN_KEY.intersection(key):
        return key
    text = f"A key is 1 to {KEY_LENGTH} ASCII characters without spaces and commas"
    raise Refused(Numeric.ERR_INVALIDMODEPARAM, channel.name, "k", "*", text=text)


def _limit(channel: Channel, number: str) -> str:
    if number.isascii() and number.isdigit() and len(number) <= _LIMIT_DIGITS and int(number) > 0:
        return str(int(number))
    text = "A limit is a number of members, at least 1"
    raise Refused(Numeric.ERR_INVALIDMODEPARAM, channel.name, "l", number, text=text)


def _servers(ctx: Context, channel: Channel, words: str) -> str:
    """Return the parameter of mode +S, the servers that share the channel, in its stored form.

    That is the first labels of their names, sorted and separated by commas. ``words``: names or first labels of
    servers, separated by commas; this server is always added. Raises Refused if no other server or too many are named.
    """
    names = sorted({ctx.config.short_name, *(short_name(fold(name)) for name in words.split(",") if name)})
    if len(names) < 2 or len(names) > _MOST_SERVERS or not all(map(valid_short_name, names)):
        text = f"Name the servers that share the channel, at most {_MOST_SERVERS}: thor,odin"
        raise Refused(Numeric.ERR_INVALIDMODEPARAM, channel.name, ChannelMode.SHARED, words, text=text)
    return ",".join(names)


def _last_changes(changes: Iterable[ModeChange]) -> list[ModeChange]:
    """Return for each mode and parameter the last change only, so that ``+i-i`` is ``-i``."""
    last: dict[tuple[str, str], ModeChange] = {}
    for change in changes:
        own = MODE_KINDS[change.mode] in (ModeKind.PREFIX, ModeKind.LIST)
        part = change.mode, fold(change.param or "") if own else ""
        last.pop(part, None)
        last[part] = change
    return list(last.values())


def _effective(ctx: Context, channel: Channel, changes: list[ModeChange]) -> Iterator[ModeChange]:
    """Yield the mode changes that change something.

    The client gets an error for each mask for which the channel's lists have no room.
    """
    limit = ctx.config.limits.list_entries
    listed = sum(map(len, channel.lists.values()))
    for change in changes:
        if _is_set(ctx, channel, change):
            continue
        if change.mode in _LISTS:
            if change.add and listed >= limit:
                ctx.refuse(Refused(Numeric.ERR_BANLISTFULL, channel.name, change.mode))
                continue
            listed += 1 if change.add else -1
        yield change


def _is_set(ctx: Context, channel: Channel, change: ModeChange) -> bool:
    add, mode, param = change
    match MODE_KINDS[mode]:
        case ModeKind.PREFIX:
            return (mode in channel.members[ctx.find_user(param or "")]) == add
        case ModeKind.LIST:
            return (param in channel.lists.get(mode, ())) == add
        case ModeKind.ALWAYS:
            return channel.key == (param if add else None)
        case ModeKind.WHEN_SET if mode == ChannelMode.SHARED:
            return channel.shared == (tuple((param or "").split(",")) if add else None)
        case ModeKind.WHEN_SET:
            return channel.limit == (int(param or 0) if add else None)
        case ModeKind.FLAG:
            return (mode in channel.flags) == add
