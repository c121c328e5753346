"""Changes of users and servers: arrival, nick, modes, away, account, metadata, departure."""

from collections.abc import Collection, Iterable, Iterator, Set
from itertools import chain
from typing import TYPE_CHECKING

from culture.protocol.names import fold, is_channel, short_name
from culture.server.core.changes.channels import forget_removed, mark, next_version
from culture.server.core.state import MEMBER_MODES, Channel, Server, User
from culture.server.events import (
    AccountSet,
    Arrived,
    AwaySet,
    HostSet,
    Left,
    Linked,
    MetadataSet,
    RealnameSet,
    Renamed,
    Unlinked,
    UserModeSet,
    Walloped,
    nick_of,
)

if TYPE_CHECKING:
    from culture.server.core.network import Network

Seers = Collection[User]
_MOST_RENAMES = 1_000


def arrive(network: "Network", event: Arrived) -> Seers:
    """Add a user to the network; return nobody, since no other user shares a channel yet."""
    user = User(
        event.nick,
        event.username,
        event.host,
        event.realname,
        event.server,
        event.account,
        event.kind,
        event.id.at,
        set(event.modes),
    )
    network.users[fold(event.nick)] = user
    network.renames.pop(fold(event.nick), None)
    network.classify(user)
    network.modes.update(user.modes)
    network.most_users = max(network.most_users, len(network.users))
    return ()


class _Left(Set[User]):
    """The users who shared a channel with a user who left; the set is computed only when needed."""

    def __init__(self, channels: Iterable[Channel]) -> None:
        self._members = [channel.members for channel in channels]

    def __contains__(self, user: object) -> bool:
        return any(user in members for members in self._members)

    def __iter__(self) -> Iterator[User]:
        return iter(dict.fromkeys(chain.from_iterable(self._members)))

    def __len__(self) -> int:
        return len(set(chain.from_iterable(self._members)))


def leave(network: "Network", event: Left) -> Seers:
    """Remove a user from all channels and the network; return the users who shared a channel."""
    user = network.users.pop(fold(nick_of(event.source)), None)
    if user is None:
        return ()
    seers = _Left(user.channels)
    for channel in list(user.channels):
        network.drop(channel, user)
    for channel in user.invitations:
        channel.uninvite(user)
    network.modes.subtract(user.modes)
    network.remember(user, event.id)
    return seers


def rename(network: "Network", event: Renamed) -> Seers:
    """Change a user's nick; return the users who share a channel with the user, and the user."""
    old, new = fold(nick_of(event.source)), fold(event.new)
    user = network.users.pop(old, None)
    if user is None:
        return ()
    network.remember(user, event.id)
    user.rename(event.new)
    network.users[new] = user
    if old != new:
        _note_rename(network, old, event.new)
        for channel in user.channels:
            _move_marks(channel, old, new)
    return network.peers(user)


def _note_rename(network: "Network", old: str, nick: str) -> None:
    network.renames.pop(fold(nick), None)
    network.renames[old] = nick
    if len(network.renames) > _MOST_RENAMES:
        del network.renames[next(iter(network.renames))]


def _move_marks(channel: Channel, old: str, new: str) -> None:
    """Move a member's marks (versions of ranks) from the folded nick ``old`` to ``new``.

    Marks of an earlier user of the nick ``new`` are dropped.
    """
    if (joined := channel.joins.pop(old, None)) is not None:
        channel.joins[new] = joined
    for mode in MEMBER_MODES:
        channel.marks.pop(f"{mode}:{new}", None)
        channel.absent.pop(f"{mode}:{new}", None)
        if (mark := channel.marks.pop(f"{mode}:{old}", None)) is not None:
            channel.marks[f"{mode}:{new}"] = mark


def set_modes(network: "Network", event: UserModeSet) -> Seers:
    """Change a user's modes; return the user, who alone sees the change."""
    user = network.user(nick_of(event.source))
    if user is None:
        return ()
    network.modes.subtract(user.modes)
    for add, mode, _ in event.changes:
        if add:
            user.modes.add(mode)
        else:
            user.modes.discard(mode)
    network.modes.update(user.modes)
    network.classify(user)
    return (user,)


def set_away(network: "Network", event: AwaySet) -> Seers:
    """Set or remove a user's away text; return the users who share a channel with the user."""
    user = network.user(nick_of(event.source))
    if user is None:
        return ()
    user.away = event.message
    others = network.peers(user)
    del others[user]
    return others


def set_account(network: "Network", event: AccountSet) -> Seers:
    """Log a user in or out; return the users who share a channel with the user, and the user."""
    user = network.user(nick_of(event.source))
    if user is None:
        return ()
    user.account, user.account_kind = event.account, event.kind
    network.classify(user)
    return network.peers(user)


def set_realname(network: "Network", event: RealnameSet) -> Seers:
    """Change a user's real name.

    Return the users who share a channel with the user, and the user.
    """
    user = network.user(nick_of(event.source))
    if user is None:
        return ()
    user.realname = event.realname
    return network.peers(user)


def set_host(network: "Network", event: HostSet) -> Seers:
    """Change the user name and host that others see.

    Return the users who share a channel with the user, and the user.
    """
    user = network.user(nick_of(event.source))
    if user is None:
        return ()
    user.username, user.host = event.username, event.host
    user.rename(user.nick)
    return network.peers(user)


def set_metadata(network: "Network", event: MetadataSet) -> Seers:
    """Set metadata of a user or channel.

    Return nobody, since who sees it depends on subscriptions.
    """
    owner = network.channel(event.target) if is_channel(event.target) else network.user(event.target)
    if owner is not None:
        metadata = dict(owner.metadata or {})
        metadata.pop(event.key, None)
        if event.value is not None:
            metadata[event.key] = event.value
        owner.metadata = metadata or None
    if isinstance(owner, Channel):
        mark(owner, next_version(network, owner), event.id, f"meta:{event.key}")
        forget_removed(owner)
    return ()


def link(network: "Network", event: Linked) -> Seers:
    """Add a linked server, or replace the way to it; return nobody, since clients do not see it."""
    network.servers[short_name(event.name)] = Server(event.name, event.description, event.hops, event.via)
    return ()


def unlink(network: "Network", event: Unlinked) -> Seers:
    """Remove a server whose users have left before; return nobody, since clients do not see it."""
    network.servers.pop(short_name(event.name), None)
    return ()


def hear_wallops(network: "Network", _event: Walloped) -> Seers:
    """Return the users who get messages of WALLOPS: those with mode +w; nothing is changed."""
    return [user for user in network.users.values() if "w" in user.modes]
