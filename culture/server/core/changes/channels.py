"""Changes of channels: members, topic, modes, invitations, name.

Each part of a channel (topic, a mode, an entry of a list, a member's rank) carries a mark: version, time and origin of
its last change. Servers that change the same part at the same time compare marks, so all end with the same value.
"""

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
"""The version of a change that follows from another one; it sets no mark."""
LATEST = 10**15
"""The highest version; of two changes with it, the later one wins."""
_MOST_MARKS = 1_000
_REMEMBERED = 200  # marks of removed masks and metadata that are remembered, so that no server brings them back


def join(network: "Network", event: Joined) -> Seers:
    """Add a member to a channel, which the first member creates; return the channel's members."""
    user = network.user(nick_of(event.source))
    if user is None:
        return ()
    channel = network.channel(event.channel) or network.open(event.channel, event.id.at)
    if not channel.members and not channel.is_registered:
        channel.founded = event.id.at
    channel.members[user] = _rank(channel, fold(user.nick), event, next_version(network, channel))
    channel.uninvite(user)
    user.channels[channel] = None
    return channel.members


def _rank(channel: Channel, key: str, event: Joined, version: int) -> str:
    """Return the rank of a joining user: the one in the event, unless a newer change came first.

    ``key``: the user's folded nick. ``version``: the version of the join; of two changes the greater version wins.
    """
    joined = Mark(version, event.id.told, event.id.origin, event.id.seq)
    if version >= 0:
        channel.joins[key] = joined
    rank = ""
    for mode in MEMBER_MODES:
        part = f"{mode}:{key}"
        granted = channel.absent.pop(part, None)
        if granted is not None and channel.marks[part] > joined:
            rank += mode if granted else ""
            continue
        if granted is not None:
            del channel.marks[part]
        rank += mode if mode in event.status else ""
    return rank


def part(network: "Network", event: Parted) -> Seers:
    """Remove a member who left a channel; return the users who see that."""
    return _drop(network, event.channel, nick_of(event.source))


def kick(network: "Network", event: Kicked) -> Seers:
    """Remove a member who was kicked from a channel; return the users who see that."""
    return _drop(network, event.channel, event.nick)


def _drop(network: "Network", name: str, nick: str) -> Seers:
    channel, user = network.channel(name), network.user(nick)
    if channel is None or user is None or user not in channel.members:
        return ()
    seers = list(channel.members)
    network.drop(channel, user)
    return seers


def set_topic(network: "Network", event: TopicSet) -> Seers:
    """Set a channel's topic (an empty text removes it); return the channel's members."""
    channel = network.channel(event.channel)
    if channel is None:
        return ()
    channel.topic = Topic(event.text, event.source, event.id.told) if event.text else None
    mark(channel, next_version(network, channel), event.id, "topic")
    return channel.members


def next_version(network: "Network", channel: Channel) -> int:
    """Return the version to give to a change of the channel that is applied now.

    It is the version that another server gave to the change, else one more than the latest of the channel.
    """
    version = min(channel.clock + 1, LATEST) if network.version is None else network.version
    channel.clock = max(channel.clock, version)
    return version


def mark(channel: Channel, version: int, stamp: EventId, part: str) -> None:
    """Record the version of a part of the channel, with the event's id.

    A negative version is not recorded. ``part``: key of the part, such as ``topic`` or ``b:mask``.
    """
    if version >= 0:
        channel.marks[part] = Mark(version, stamp.told, stamp.origin, stamp.seq)


def part_of(change: ModeChange) -> str:
    """Return the key of the part of a channel that a mode change sets, such as ``b:mask``.

    By this key the versions of parts (``Channel.marks``) are found.
    """
    _, mode, param = change
    if mode in MEMBER_MODES:
        return f"{mode}:{fold(param or '')}"
    return f"{mode}:{param}" if mode in "beI" else mode


def set_modes(network: "Network", event: ModeSet) -> Seers:
    """Change modes of a channel and ranks of its members; return the channel's members."""
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
    """Drop the oldest marks (versions) of removed masks and metadata keys, if there are many."""
    if len(channel.marks) > _MOST_MARKS:
        removed = [part for part in channel.marks if _is_removed(channel, part)]
        for part in sorted(removed, key=channel.marks.__getitem__)[:-_REMEMBERED]:
            del channel.marks[part]


def _is_removed(channel: Channel, part: str) -> bool:
    kind, colon, name = part.partition(":")
    if kind == "meta":
        return name not in (channel.metadata or {})
    return bool(colon) and kind in ("b", "e", "I") and name not in channel.lists.get(kind, {})


def _set_mode(network: "Network", channel: Channel, change: ModeChange, event: ModeSet) -> None:
    add, mode, param = change
    if mode in MEMBER_MODES:
        user = network.user(param or "")
        if user in channel.members:
            rank = set(channel.members[user]) | {mode} if add else set(channel.members[user]) - {mode}
            channel.members[user] = "".join(each for each in MEMBER_MODES if each in rank)
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
    """Record that a user may join a channel; return the invited user."""
    user, channel = network.user(event.nick), network.channel(event.channel)
    if user is None:
        return ()
    if channel is not None:
        channel.invite(user)
    return (user,)


def rename(network: "Network", event: ChannelRenamed) -> Seers:
    """Give a channel another name; return its members."""
    channel = network.channels.get(fold(event.channel))
    if channel is None:
        return ()
    network.remove_channel(channel)
    channel.name = event.new
    network.add_channel(channel)
    return channel.members


def redact(network: "Network", event: Redacted) -> Seers:
    """Return the users who could read a redacted message; nothing is changed.

    They are the members of the channel, or the sender and the recipient.
    """
    channel = network.channel(event.target)
    if channel is not None:
        return channel.members
    users = (network.user(event.target), network.user(nick_of(event.source)))
    return {user for user in users if user is not None}
