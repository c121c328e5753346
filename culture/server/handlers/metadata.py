"""METADATA: keys and values of users and channels (IRCv3 draft/metadata-3)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from culture.protocol.caps import lines
from culture.protocol.message import Message
from culture.protocol.names import is_channel
from culture.protocol.numerics import Numeric
from culture.protocol.split import room
from culture.protocol.vocabulary import ChannelKey, UserClass
from culture.server.commands import command
from culture.server.context import Context, as_word
from culture.server.core.state import Channel, User, same
from culture.server.core.visibility import sees_channel
from culture.server.errors import Failed
from culture.server.events import MetadataSet
from culture.server.subscriptions.metadata_replies import (
    ALL,
    VERB,
    answer,
    may_read,
    row,
    sync_later,
    synced,
    synced_all,
)

_KEY = re.compile(r"[a-z0-9_./-]+")
_ROOM = 350  # bytes of a line for the list of keys
_NOT_A_KEY = "A key consists of a-z, 0-9 and _./-"


class MetadataTarget(NamedTuple):
    """The target of METADATA: a user, a channel, or (None) the unregistered client itself."""

    name: str
    owner: User | Channel | None
    values: Mapping[str, str]


@command("METADATA", params=2, early=True)
def metadata(ctx: Context, message: Message) -> None:
    """``METADATA nick|#channel|* GET|SET|LIST|CLEAR|SYNC key value``: read or set metadata.

    METADATA * SUB|UNSUB key key subscribes to keys, METADATA * SUBS lists the subscriptions.
    """
    name, word, *rest = message.params
    action = _ACTIONS.get(word.upper())
    if action is None or (action.needs_key and not rest):
        text = "Not enough parameters" if action else f"The subcommands are {', '.join(_ACTIONS)}"
        raise Failed(VERB, "INVALID_PARAMS", word, text=text)
    action.do(ctx, name, rest)


def _get(ctx: Context, name: str, keys: list[str]) -> None:
    target = _readable(ctx, name)
    answer(ctx, _looked_up(ctx, target, keys), "metadata", target.name)


def _looked_up(ctx: Context, target: MetadataTarget, keys: Sequence[str]) -> Iterator[Message]:
    for key in keys:
        if _is_key(ctx, key):
            yield row(ctx, target.name, key, target.values.get(key))
        else:
            yield _warning(ctx, key)


def _list(ctx: Context, name: str, _rest: list[str]) -> None:
    target = _readable(ctx, name)
    answer(ctx, [row(ctx, target.name, *pair) for pair in target.values.items()], "metadata", target.name)


def _set(ctx: Context, name: str, words: list[str]) -> None:
    key, value = words[0], words[1] if len(words) > 1 and words[1] else None
    target = _find(ctx, name)
    if not _is_key(ctx, key):
        raise Failed(VERB, "INVALID_KEY", key, text=_NOT_A_KEY)
    _check_may_set(ctx, target, key)
    if value is not None:
        _check_value(ctx, target, key, value)
    if target.values.get(key) != value:
        _put(ctx, target, key, value)
    ctx.session.send(bytes(row(ctx, target.name, key, value)))


def _clear(ctx: Context, name: str, _rest: list[str]) -> None:
    target = _find(ctx, name)
    _check_may_set(ctx, target, "*")
    keys = list(target.values)
    for key in keys:
        _put(ctx, target, key, None)
    answer(ctx, [row(ctx, target.name, key, None) for key in keys], "metadata", target.name)


def _put(ctx: Context, target: MetadataTarget, key: str, value: str | None) -> None:
    subscriptions = ctx.parts.subscriptions
    if target.owner is not None:
        with subscriptions.made_by(ctx.session):
            ctx.publish(MetadataSet(ctx.stamp(), ctx.user.source, target.name, key, value))
    elif value is None:
        subscriptions.early.get(ctx.session, {}).pop(key, None)
    else:
        subscriptions.early.setdefault(ctx.session, {})[key] = value


def _sub(ctx: Context, name: str, keys: list[str]) -> None:
    _check_self(ctx, name)
    subscriptions, limit = ctx.parts.subscriptions, ctx.config.limits.metadata_subs
    before = set(subscriptions.of(ctx.session))
    done: dict[str, None] = {}
    wrong = []
    full = None
    for key in keys:
        if not _is_key(ctx, key):
            wrong.append(key)
            continue
        if key not in subscriptions.of(ctx.session) and len(subscriptions.of(ctx.session)) >= limit:
            full = key
            break
        subscriptions.add(ctx.session, key)
        done[key] = None
    _show_keys(ctx, Numeric.RPL_METADATASUBOK, done)
    _warn(ctx, wrong)
    if full is not None:
        text = f"No more than {limit} subscriptions"
        ctx.send("FAIL", VERB, "LIMIT_REACHED", "SUB", full, str(limit), text)
    if ctx.session.user is not None and done.keys() - before:
        ctx.pull([sync_later(ctx, ALL)])


def _unsub(ctx: Context, name: str, keys: list[str]) -> None:
    _check_self(ctx, name)
    valid = [key for key in keys if _is_key(ctx, key)]
    for key in valid:
        ctx.parts.subscriptions.remove(ctx.session, key)
    _show_keys(ctx, Numeric.RPL_METADATAUNSUBOK, dict.fromkeys(valid))
    _warn(ctx, [key for key in keys if not _is_key(ctx, key)])


def _subs(ctx: Context, name: str, _rest: list[str]) -> None:
    _check_self(ctx, name)
    keys = list(ctx.parts.subscriptions.of(ctx.session))
    rows = [ctx.numeric(Numeric.RPL_METADATASUBS, *line.split(" ")) for line in lines(keys, _ROOM) if line]
    answer(ctx, rows, "metadata-subs")


def _sync(ctx: Context, name: str, _rest: list[str]) -> None:
    if name == ALL and ctx.session.user is not None:
        answer(ctx, synced_all(ctx), "metadata", ALL)
        return
    target = _readable(ctx, name)
    answer(ctx, synced(ctx, target.owner) if target.owner is not None else (), "metadata", target.name)


class _Action(NamedTuple):
    do: Callable[[Context, str, list[str]], None]
    needs_key: bool = False


_ACTIONS = {
    "GET": _Action(_get, needs_key=True),
    "LIST": _Action(_list),
    "SET": _Action(_set, needs_key=True),
    "CLEAR": _Action(_clear),
    "SUB": _Action(_sub, needs_key=True),
    "UNSUB": _Action(_unsub, needs_key=True),
    "SUBS": _Action(_subs),
    "SYNC": _Action(_sync),
}


def _find(ctx: Context, name: str) -> MetadataTarget:
    user = ctx.session.user
    owner: User | Channel | None = None
    if user is None:
        if name == "*":
            return MetadataTarget("*", None, ctx.parts.subscriptions.early.get(ctx.session, {}))
    elif name == "*":
        owner = user
    elif is_channel(name):
        channel = ctx.network.channel(name)
        owner = channel if channel is not None and sees_channel(user, channel) else None
    else:
        owner = ctx.network.user(name)
    if owner is None:
        raise Failed(VERB, "INVALID_TARGET", name, text="There is no user and no channel of this name")
    return MetadataTarget(owner.name if isinstance(owner, Channel) else owner.nick, owner, owner.metadata or {})


def _readable(ctx: Context, name: str) -> MetadataTarget:
    target = _find(ctx, name)
    if isinstance(target.owner, Channel) and not may_read(ctx, target.owner):
        raise Failed(VERB, "KEY_NO_PERMISSION", target.name, "*", text="Only members of the channel may do this")
    return target


def _check_self(ctx: Context, name: str) -> None:
    if name != "*" and (ctx.session.user is None or not same(name, ctx.nick)):
        raise Failed(VERB, "INVALID_TARGET", name, text="You can only change your own subscriptions: use *")


def _check_may_set(ctx: Context, target: MetadataTarget, key: str) -> None:
    owner = target.owner
    may = owner.is_operator(ctx.user) if isinstance(owner, Channel) else owner is ctx.session.user
    if not may:
        text = "Only its operators may do this" if isinstance(owner, Channel) else "Only the user may do this"
        raise Failed(VERB, "KEY_NO_PERMISSION", target.name, key, text=text)
    if isinstance(owner, Channel) and key == ChannelKey.TAGS and not _may_call_agents(ctx):
        raise Failed(VERB, "KEY_NO_PERMISSION", target.name, key, text="Tags invite agents: log in first")


def _may_call_agents(ctx: Context) -> bool:
    """Return whether the user may set a channel's tags, by which agents are invited to it."""
    return not ctx.network.knows_people or ctx.user.kind in (UserClass.HUMAN, UserClass.AGENT)


def _check_value(ctx: Context, target: MetadataTarget, key: str, value: str) -> None:
    """Raise Failed if the value is too long for a line, or the target has too many keys."""
    limits = ctx.config.limits
    if key not in target.values and len(target.values) >= limits.metadata_keys:
        text = f"No more than {limits.metadata_keys} keys"
        raise Failed(VERB, "LIMIT_REACHED", "SET", target.name, str(limits.metadata_keys), text=text)
    longest = limits.channel_length if isinstance(target.owner, Channel) else limits.nick_length
    left = room(ctx.router.name, Numeric.RPL_KEYVALUE.code, f"{'n' * limits.nick_length} {'t' * longest} {key} *")
    allowed = min(limits.metadata_value, left)
    if len(value.encode()) > allowed:
        raise Failed(VERB, "INVALID_VALUE", key, text=f"A value has at most {allowed} bytes here")


def _is_key(ctx: Context, key: str) -> bool:
    return len(key) <= ctx.config.limits.metadata_key and _KEY.fullmatch(key) is not None


def _warning(ctx: Context, key: str) -> Message:
    return Message("WARN", (VERB, "INVALID_KEY", as_word(key), _NOT_A_KEY), ctx.router.name)


def _warn(ctx: Context, keys: Sequence[str]) -> None:
    for key in keys:
        ctx.send("WARN", *_warning(ctx, key).params)


def _show_keys(ctx: Context, numeric: Numeric, keys: Mapping[str, None]) -> None:
    for line in lines(keys, _ROOM):
        if line:
            ctx.reply(numeric, *line.split(" "))
