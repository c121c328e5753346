"""Changes of channels."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from culture.protocol.modes import ModeChange
from culture.protocol.names import fold
from culture.protocol.vocabulary import ChannelMode
from culture.server.core.ids import EventId
from culture.server.core.state import MEMBER_MODES, Channel, ListEntry, Mark, Topic, User
from culture.server.events import ChannelRenamed, Invited, Joined, Kicked, ModeSet, Parted, Redacted, TopicSet, nick_of

if TYPE_CHECKING:
    from culture.server.core.network import Network

Seers = Collection[User]
UNMARKED = -1
"""The version of what follows from other changes: it is no change by itself."""
LATEST = 10**15
"""No version is beyond this one: then the later of two changes holds by its time."""
_MOST_MARKS = 1_000
_REMEMBERED = 200  # masks taken off a list, and metadata, so that a server that missed it does not bring them back


def join(network: "Network", event: Joined) -> Seers:
    """One more member; the first one makes the channel."""
    user = network.user(nick_of(event.source))
    if user is None:
        return ()
    channel = network.channel(event.channel) or network.open(event.channel, event.id.at)
    if not channel.members and not channel.is_registered:
        channel.founded = event.id.at
    channel.members[user] = _rank(channel, fold(user.nick), event, next_version(network, channel))
    user.invitations -= {channel}
    channel.invited.discard(user)
    user.channels.add(channel)
    return channel.members


def _rank(channel: Channel, key: str, event: Joined, version: int) -> str:
    """The rank of who comes in: the one they come with, unless somebody heard first that they were given another."""
    joined = Mark(version, event.id.told, event.id.origin, event.id.seq)
    if version >= 0:
        channel.joins[key] = joined
    held = ""
    for mode in MEMBER_MODES:
        part = f"{mode}:{key}"
        given = channel.absent.pop(part, None)
        if given is not None and channel.marks[part] > joined:
            held += mode if given else ""
            continue
        if given is not None:
            del channel.marks[part]
        held += mode if mode in event.status else ""
    return held


def part(network: "Network", event: Parted) -> Seers:
    """One member less, by wish."""
    return _drop(network, event.channel, nick_of(event.source))


def kick(network: "Network", event: Kicked) -> Seers:
    """One member less, by somebody else's."""
    return _drop(network, event.channel, event.nick)


def _drop(network: "Network", name: str, nick: str) -> Seers:
    channel, user = network.channel(name), network.user(nick)
    if channel is None or user is None or user not in channel.members:
        return ()
    seers = list(channel.members)
    network.drop(channel, user)
    return seers


def set_topic(network: "Network", event: TopicSet) -> Seers:
    """Another topic; an empty one is none."""
    channel = network.channel(event.channel)
    if channel is None:
        return ()
    channel.topic = Topic(event.text, event.source, event.id.told) if event.text else None
    mark(channel, next_version(network, channel), event.id, "topic")
    return channel.members


def next_version(network: "Network", channel: Channel) -> int:
    """The version of a change that is made now: what another server said, or one more than all we know of."""
    version = min(channel.clock + 1, LATEST) if network.version is None else network.version
    channel.clock = max(channel.clock, version)
    return version


def mark(channel: Channel, version: int, stamp: EventId, part: str) -> None:
    """Note when a part of the channel was set."""
    if version >= 0:
        channel.marks[part] = Mark(version, stamp.told, stamp.origin, stamp.seq)


def part_of(change: ModeChange) -> str:
    """What of a channel a change of modes sets."""
    _, mode, param = change
    if mode in MEMBER_MODES:
        return f"{mode}:{fold(param or '')}"
    return f"{mode}:{param}" if mode in "beI" else mode


def set_modes(network: "Network", event: ModeSet) -> Seers:
    """Other modes, of the channel or of its members."""
    channel = network.channel(event.channel)
    if channel is None:
        return ()
    version = next_version(network, channel)
    for change in event.changes:
        mark(channel, version, event.id, part_of(change))
        _set_mode(network, channel, change, event)
    forget_removed(channel)
    channel.guard()
    network.close_if_empty(channel)
    return channel.members


def forget_removed(channel: Channel) -> None:
    """Of the masks that are on no list any more, and of metadata that are none, remember only the newest."""
    if len(channel.marks) > _MOST_MARKS:
        gone = [part for part in channel.marks if _is_removed(channel, part)]
        for part in sorted(gone, key=channel.marks.__getitem__)[:-_REMEMBERED]:
            del channel.marks[part]


def _is_removed(channel: Channel, part: str) -> bool:
    kind, colon, what = part.partition(":")
    if kind == "meta":
        return what not in (channel.metadata or {})
    return bool(colon) and kind in ("b", "e", "I") and what not in channel.lists.get(kind, {})


def _set_mode(network: "Network", channel: Channel, change: ModeChange, event: ModeSet) -> None:
    add, mode, param = change
    if mode in MEMBER_MODES:
        user = network.user(param or "")
        if user in channel.members:
            held = set(channel.members[user]) | {mode} if add else set(channel.members[user]) - {mode}
            channel.members[user] = "".join(each for each in MEMBER_MODES if each in held)
        elif (part := part_of(change)) in channel.marks:
            channel.keep_absent(part, add)
    elif mode in "beI":
        entries = channel.lists.setdefault(mode, {})
        if add:
            entries[param or ""] = ListEntry(event.source, event.id.told)
        else:
            entries.pop(param or "", None)
    elif mode == "k":
        channel.key = param if add else None
    elif mode == ChannelMode.SHARED:
        channel.shared = tuple((param or "").split(",")) if add else None
    elif mode == "l":
        channel.limit = int(param or 0) if add else None
    elif add:
        channel.flags.add(mode)
    else:
        channel.flags.discard(mode)
    if mode == ChannelMode.REGISTERED:
        founder = network.user(nick_of(event.source))
        channel.founder = founder.account if add and founder is not None else None


def invite(network: "Network", event: Invited) -> Seers:
    """Somebody may come in."""
    user, channel = network.user(event.nick), network.channel(event.channel)
    if user is None:
        return ()
    if channel is not None:
        user.invitations |= {channel}
        channel.invited.add(user)
    return (user,)


def rename(network: "Network", event: ChannelRenamed) -> Seers:
    """The same channel under another name."""
    channel = network.channels.get(fold(event.channel))
    if channel is None:
        return ()
    network.remove_channel(channel)
    channel.name = event.new
    network.add_channel(channel)
    return channel.members


def redact(network: "Network", event: Redacted) -> Seers:
    """A message taken back: those who could read it are told."""
    channel = network.channel(event.target)
    if channel is not None:
        return channel.members
    users = (network.user(event.target), network.user(nick_of(event.source)))
    return {user for user in users if user is not None}
