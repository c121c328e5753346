"""How much of what a peer says is believed: names as they may be, accounts as its own, classes as far as trust goes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from culture.federation.codec.fields import Garbled
from culture.federation.trust import check_source
from culture.protocol.channel_names import fault_in
from culture.protocol.mentions import mentions
from culture.protocol.modes import ModeChange, ModeKind
from culture.protocol.names import fold, is_channel, valid_channel, valid_short_name
from culture.protocol.vocabulary import ChannelMode, LoginProof, Tag, UserClass, Verified
from culture.server.core.isupport import MODE_KINDS, USER_MODES
from culture.server.core.network import Network
from culture.server.core.state import Channel
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
    MetadataSet,
    ModeSet,
    Noted,
    Redacted,
    Said,
    TopicSet,
    UserModeSet,
    Walloped,
    nick_of,
)

# Registered and local is each server's own word.
OWN_MODES = frozenset({ChannelMode.REGISTERED.value, ChannelMode.LOCAL.value})
_THEIR_MODES = MODE_KINDS.keys() - OWN_MODES
_ACCOUNT = re.compile(r"[^\x00-\x20\x7f:,!*?][^\x00-\x20\x7f,!*?]{0,63}")
_LONGEST = 600  # bytes of what was said, or of a name
_MOST_LINES, _LONGEST_SAID = 2_000, 1 << 18
_LONGEST_TEXT = 8_192  # bytes of any other text: another server may allow more than we do
# What is believed here is told on, in one line for each user and channel (settings.py, roster.py): it has to fit there,
# else a peer that did nothing would lose its link by it.
_LONGEST_SET = 590
_LONGEST_SOURCE, _LONGEST_NAME = 300, 100
_MOST_CHANGES = 500
_MOST_LISTED, _LARGEST_LISTS = 400, 30_000
_MOST_KEYS, _LARGEST_METADATA = 400, 50_000
_BREAKS = frozenset(" \r\n\0")
_LIMIT_DIGITS = 10
_LONGEST_CHANNEL = 200
_MOST_TAGS = 4094
_CLASSES = frozenset(UserClass)
_PROOFS = frozenset(LoginProof)
_VERDICTS = frozenset(Verified)
_LONGEST_WHY = 300


def qualified(account: str | None, server: str) -> str | None:
    """An account of another server: no name of ours has an @, so it is never taken for one of them."""
    if account is None:
        return None
    name = account.partition("@")[0]
    if not _ACCOUNT.fullmatch(name):
        raise Garbled("an account that is none")
    return f"{name}@{server}"


def believed(network: Network, event: Event, vouched: bool) -> Event | None:
    """What of an event from elsewhere happens here; None: nothing. ``vouched``: its users have a say."""
    check_source(event)
    check_words(event)
    origin = event.id.origin
    if isinstance(event, Arrived | AccountSet | Said):
        account = qualified(event.account, origin)
        event = event._replace(account=account, kind=kind_of(network, event.kind, account, vouched))
    elif isinstance(event, Joined):
        event = event._replace(account=qualified(event.account, origin))
    elif isinstance(event, ModeSet):
        changes = tuple(_in_bounds(each) for each in event.changes if each.mode in _THEIR_MODES)
        if len(changes) > _MOST_CHANGES:
            raise Garbled("more changes than anybody makes at once")
        event = event._replace(changes=with_room(network.channel(event.channel), changes))
    elif isinstance(event, UserModeSet):
        event = event._replace(
            changes=tuple(ModeChange(add, mode) for add, mode, _ in event.changes if mode in USER_MODES)
        )
    elif isinstance(event, ChannelRenamed) and network.channel(event.new) not in (None, network.channel(event.channel)):
        return None  # there is a channel of that name here
    elif isinstance(event, MetadataSet) and event.value is not None and not _has_room(network, event):
        return None
    if isinstance(event, ModeSet | UserModeSet) and not event.changes:
        return None
    if isinstance(event, Noted) and (event.verified not in _VERDICTS or len(event.why.encode()) > _LONGEST_WHY):
        event = event._replace(verified="", why="")
    if isinstance(event, Said):
        called = tuple(nick for nick in event.mentions if not _BREAKS.intersection(nick))
        event = event._replace(tags=_believed_tags(event, vouched), mentions=called)
    return event if vouched else _unvouched(network, event)


# Shared by all meshes of a process, since it decides nothing: a plain message (plain.py) has neither account, mentions
# nor lines, and with a text that surely fits, ``check_source`` and ``check_words`` depend on origin, source and target
# alone. Who stands here has passed them; who does not is checked, with the same result.
_checked: set[tuple[str, str, str]] = set()
_MOST_CHECKED = 10_000
_SURELY_FITS = 150  # characters of a text, at most four bytes each


def believed_plain(network: Network, said: Said) -> Said:
    """The same for a message in its commonest form, of a server whose users have a say."""
    speaker = (said.id.origin, said.source, said.target)
    if speaker not in _checked or len(said.text) > _SURELY_FITS or "\0" in said.text:
        check_source(said)
        check_words(said)
        if len(_checked) >= _MOST_CHECKED:
            _checked.clear()
        _checked.add(speaker)
    kind = kind_of(network, said.kind, None, True)
    return said if kind == said.kind else said._replace(kind=kind)


def _in_bounds(change: ModeChange) -> ModeChange:
    """A parameter as a client here could have said it."""
    add, mode, param = change
    kind = MODE_KINDS[mode]
    if kind is ModeKind.FLAG or (kind is ModeKind.WHEN_SET and not add):
        return ModeChange(add, mode)
    if not param or param[0] == ":" or len(param.encode()) > _LONGEST_SET or _BREAKS.intersection(param):
        raise Garbled(f"a parameter of mode {mode} that is none")
    if mode == "l" and add and not (param.isascii() and param.isdigit() and len(param) < _LIMIT_DIGITS):
        raise Garbled("a limit that is none")
    if mode == ChannelMode.SHARED and add and not all(map(valid_short_name, param.split(","))):
        raise Garbled("servers that are none")
    return change


def with_room(channel: Channel | None, changes: Sequence[ModeChange]) -> tuple[ModeChange, ...]:
    """Without the masks for which the channel's lists have no room."""
    if not any(change.add and MODE_KINDS[change.mode] is ModeKind.LIST for change in changes):
        return tuple(changes)
    listed = [mask for entries in channel.lists.values() for mask in entries] if channel is not None else []
    count, size, kept = len(listed), sum(len(mask.encode()) for mask in listed), []
    for change in changes:
        if change.add and MODE_KINDS[change.mode] is ModeKind.LIST:
            count, size = count + 1, size + len((change.param or "").encode())
            if count > _MOST_LISTED or size > _LARGEST_LISTS:
                continue
        kept.append(change)
    return tuple(kept)


def _has_room(network: Network, event: MetadataSet) -> bool:
    owner = network.channel(event.target) if is_channel(event.target) else network.user(event.target)
    kept = {**((owner.metadata if owner is not None else None) or {}), event.key: event.value or ""}
    return fits(kept)


def fits(metadata: Mapping[str, str]) -> bool:
    """Is it no more than somebody who is told of it takes?"""
    size = sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items())
    return len(metadata) <= _MOST_KEYS and size <= _LARGEST_METADATA


def kind_of(network: Network, kind: str, account: str | None, vouched: bool) -> str:
    """The class of somebody elsewhere, as it is shown here."""
    if not vouched or kind not in _CLASSES:
        return UserClass.UNKNOWN
    if kind == UserClass.HUMAN and account is None and network.knows_people:
        return UserClass.UNKNOWN  # by their own word only, which does not count where people have accounts
    return kind


def _believed_tags(said: Said, vouched: bool) -> dict[str, str]:
    """What clients may say about their messages, and what the server of a user says of their login.

    A login counts as proven only where a server that is vouched for says so: one that says nothing, since it is older
    or the user was logged in by local uid, proves nothing.
    """
    tags, kept = said.tags, {}
    if said.account is not None:
        if (key := Tag.KEYBOARD.value) in tags:
            kept[key] = ""
        elif vouched and tags.get(Tag.LOGIN.value) in _PROOFS:
            kept[Tag.LOGIN.value] = tags[Tag.LOGIN.value]
    theirs = {key: value for key, value in tags.items() if key.startswith("+") or key == "bot"}
    if sum(len(key) + len(value.encode()) for key, value in theirs.items()) <= _MOST_TAGS:
        kept |= theirs
    return kept


def _unvouched(network: Network, event: Event) -> Event | None:
    """Users who are shown, and change nothing that is not theirs."""
    origin = event.id.origin
    match event:
        case ModeSet() | ChannelRenamed() | Invited() | Walloped() | Noted():
            return None
        case Kicked(nick=nick):
            return event if fold(nick).partition("-")[0] == origin else None
        case MetadataSet(target=target):
            return None if is_channel(target) else event
        case TopicSet(channel=name):
            channel = network.channel(name)
            return event if channel is not None and "t" not in channel.flags else None
        case Joined(channel=name):
            return event._replace(status="") if may_begin(network, name, vouched=False) else None
        case Arrived():
            return event._replace(modes="".join(mode for mode in event.modes if mode != "o"))
        case UserModeSet():
            return event._replace(changes=tuple(each for each in event.changes if each != ModeChange(True, "o")))
        case Redacted(msgid=msgid):
            return event if msgid.startswith(f"{origin}.") else None
        case Said():
            return _unvouched_words(network, event)
    return event


def may_begin(network: Network, name: str, vouched: bool) -> bool:
    """May a channel of this name appear here because a peer has users in it?

    A peer with a say may be an older server that has such a channel already; both sides know it then. What others
    found under a name that cannot be read stays with them.
    """
    return vouched or network.channel(name) is not None or fault_in(name) is None


def _unvouched_words(network: Network, said: Said) -> Said | None:
    """What is banned or moderated here is not heard; only people call everybody."""
    channel, user = network.channel(said.target), network.user(nick_of(said.source))
    if channel is None:
        return said
    if user is not None and (channel.is_muted(user) or ("m" in channel.flags and not channel.members.get(user))):
        return None
    called = set(mentions(said.text, (member.nick for member in channel.members))) if said.mentions else ()
    return said._replace(mentions=tuple(nick for nick in said.mentions if nick in called))


def check_words(event: Event) -> None:
    """Names, hosts and texts as a server lets them be; raises Garbled."""
    channels = [event.new] if isinstance(event, ChannelRenamed) else []
    if isinstance(event, Said):
        channels = [event.target] if is_channel(event.target) else []
        if len(event.lines) > _MOST_LINES or len(event.text) > _LONGEST_SAID:
            raise Garbled("more lines than anybody says at once")
    for name in [*channels, getattr(event, "channel", "#none")]:
        if not valid_channel(name, _LONGEST_CHANNEL):
            raise Garbled(f"{name[:_LONGEST_CHANNEL]} is no channel")
    if isinstance(event, Arrived | HostSet):
        for word in (event.username, event.host):
            if not word or set(word) & set(" !@\0") or len(word.encode()) > _LONGEST_NAME:
                raise Garbled("a user name or host that is none")
    if len(getattr(event, "source", "").encode()) > _LONGEST_SOURCE:
        raise Garbled("a source that is too long")
    if isinstance(event, TopicSet | AwaySet | MetadataSet):
        for text in filter(None, event[2:]):
            if len(text.encode()) > _LONGEST_SET:
                raise Garbled("a text that is too long")
    for text in _texts(event):
        if len(text.encode()) > (_LONGEST if isinstance(event, Said) else _LONGEST_TEXT) or "\0" in text:
            raise Garbled("a text that is too long")


def _texts(event: Any) -> list[str]:
    if isinstance(event, Said):
        lines = [line.text for line in event.lines] or [event.text]
        return [event.source, event.target, event.account or "", *event.mentions, *lines]
    return [word for word in event if isinstance(word, str)]
