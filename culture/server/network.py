"""The state of the mesh. ``apply`` is the only code that changes it, and says who shall see the change."""

from collections import Counter, deque
from collections.abc import Collection, Iterable
from itertools import chain
from typing import NamedTuple

from culture.protocol.modes import Change
from culture.protocol.names import fold
from culture.server.events import (
    Arrived,
    AwaySet,
    Event,
    Invited,
    Joined,
    Kicked,
    Left,
    ModeSet,
    Parted,
    Renamed,
    Said,
    TopicSet,
    UserModeSet,
    Walloped,
    nick_of,
)
from culture.server.ids import Stamp
from culture.server.state import MEMBER_MODES, Channel, ListEntry, Topic, User

Seers = Collection[User]


class Gone(NamedTuple):
    """Somebody who was here (WHOWAS)."""

    nick: str
    username: str
    host: str
    realname: str
    server: str
    account: str | None
    at: float


class Network:
    """Users and channels, by folded name."""

    def __init__(self, standing: Iterable[str] = (), channel_modes: str = "nt", remember: int = 1000) -> None:
        self.users: dict[str, User] = {}
        self.channels: dict[str, Channel] = {}
        self.gone: deque[Gone] = deque(maxlen=remember)
        self.channel_modes = channel_modes
        self.most_users = 0
        self._knows_people = False
        self._modes: Counter[str] = Counter()
        self._standing = {fold(name): name for name in standing}

    def user(self, nick: str) -> User | None:
        """Whoever has this nick."""
        return self.users.get(nick) or self.users.get(fold(nick))

    def channel(self, name: str) -> Channel | None:
        """The channel of this name."""
        return self.channels.get(name) or self.channels.get(fold(name))

    def by_account(self, account: str) -> User | None:
        """The user who is logged in to this account."""
        return next((user for user in self.users.values() if user.account == account), None)

    def count(self, mode: str) -> int:
        """How many users have this mode."""
        return self._modes[mode]

    def know_people(self, known: bool) -> None:
        """Say whether an account of class human exists: then nobody is a person by their own word."""
        self._knows_people = known
        for user in self.users.values():
            user.classify(known)

    def open_standing(self, at: float) -> None:
        """Make the channels that are always there."""
        for name in self._standing.values():
            self._open(name, at)

    def peers(self, user: User) -> set[User]:
        """Everybody who shares a channel with the user, the user too."""
        return set(chain((user,), *(channel.members for channel in user.channels)))

    def apply(self, event: Event) -> Seers:
        """Make the change; the users who shall see it."""
        match event:
            case Said():
                return ()  # changes nothing; the router finds its hearers
            case Arrived():
                return self._arrive(event)
            case Left():
                return self._leave(event)
            case Renamed():
                return self._rename(event)
            case Joined():
                return self._join(event)
            case Parted(channel=name) | Kicked(channel=name):
                return self._part(event, name)
            case TopicSet():
                return self._set_topic(event)
            case ModeSet():
                return self._set_modes(event)
            case UserModeSet():
                return self._set_user_modes(event)
            case AwaySet():
                return self._set_away(event)
            case Invited():
                return self._invite(event)
            case Walloped():
                return [user for user in self.users.values() if "w" in user.modes]

    def _arrive(self, event: Arrived) -> Seers:
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
        self.users[fold(event.nick)] = user
        user.classify(self._knows_people)
        self._modes.update(user.modes)
        self.most_users = max(self.most_users, len(self.users))
        return ()

    def _leave(self, event: Left) -> Seers:
        nick = nick_of(event.source)
        user = self.users.pop(fold(nick), None)
        if user is None:
            return ()
        seers = self.peers(user)
        seers.discard(user)
        for channel in list(user.channels):
            self._drop(channel, user)
        for channel in user.invitations:
            channel.invited.discard(user)
        self._modes.subtract(user.modes)
        self._remember(user, event.id)
        return seers

    def _rename(self, event: Renamed) -> Seers:
        user = self.users.pop(fold(nick_of(event.source)), None)
        if user is None:
            return ()
        self._remember(user, event.id)
        user.rename(event.new)
        self.users[fold(event.new)] = user
        return self.peers(user)

    def _join(self, event: Joined) -> Seers:
        user = self.user(nick_of(event.source))
        if user is None:
            return ()
        channel = self.channel(event.channel) or self._open(event.channel, event.id.at)
        channel.members[user] = event.status
        user.invitations -= {channel}
        channel.invited.discard(user)
        user.channels.add(channel)
        return channel.members

    def _part(self, event: Parted | Kicked, name: str) -> Seers:
        channel = self.channel(name)
        user = self.user(event.nick if isinstance(event, Kicked) else nick_of(event.source))
        if channel is None or user is None or user not in channel.members:
            return ()
        seers = list(channel.members)
        self._drop(channel, user)
        return seers

    def _set_topic(self, event: TopicSet) -> Seers:
        channel = self.channel(event.channel)
        if channel is None:
            return ()
        channel.topic = Topic(event.text, event.source, event.id.at) if event.text else None
        return channel.members

    def _set_modes(self, event: ModeSet) -> Seers:
        channel = self.channel(event.channel)
        if channel is None:
            return ()
        for change in event.changes:
            self._set_mode(channel, change, event)
        return channel.members

    def _set_mode(self, channel: Channel, change: Change, event: ModeSet) -> None:
        add, mode, param = change
        if mode in MEMBER_MODES:
            user = self.user(param or "")
            if user in channel.members:
                held = set(channel.members[user]) | {mode} if add else set(channel.members[user]) - {mode}
                channel.members[user] = "".join(each for each in MEMBER_MODES if each in held)
        elif mode in "beI":
            entries = channel.lists.setdefault(mode, {})
            if add:
                entries[param or ""] = ListEntry(event.source, event.id.at)
            else:
                entries.pop(param or "", None)
        elif mode == "k":
            channel.key = param if add else None
        elif mode == "l":
            channel.limit = int(param or 0) if add else None
        elif add:
            channel.flags.add(mode)
        else:
            channel.flags.discard(mode)
        channel.guard()

    def _set_user_modes(self, event: UserModeSet) -> Seers:
        user = self.user(nick_of(event.source))
        if user is None:
            return ()
        self._modes.subtract(user.modes)
        for add, mode, _ in event.changes:
            if add:
                user.modes.add(mode)
            else:
                user.modes.discard(mode)
        self._modes.update(user.modes)
        user.classify(self._knows_people)
        return (user,)

    def _set_away(self, event: AwaySet) -> Seers:
        user = self.user(nick_of(event.source))
        if user is None:
            return ()
        user.away = event.message
        return self.peers(user)

    def _invite(self, event: Invited) -> Seers:
        user, channel = self.user(event.nick), self.channel(event.channel)
        if user is None:
            return ()
        if channel is not None:
            user.invitations |= {channel}
            channel.invited.add(user)
        return (user,)

    def _open(self, name: str, at: float) -> Channel:
        folded = fold(name)
        channel = Channel(self._standing.get(folded, name), at, folded in self._standing, flags=set(self.channel_modes))
        channel.guard()
        self.channels[folded] = channel
        return channel

    def _drop(self, channel: Channel, user: User) -> None:
        channel.members.pop(user, None)
        user.channels.discard(channel)
        if not channel.members and not channel.standing:
            for invited in channel.invited:
                invited.invitations -= {channel}
            del self.channels[fold(channel.name)]

    def _remember(self, user: User, stamp: Stamp) -> None:
        self.gone.append(Gone(user.nick, user.username, user.host, user.realname, user.server, user.account, stamp.at))
