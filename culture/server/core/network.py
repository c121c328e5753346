"""The state of the mesh. ``apply`` is the only code that changes it, and says who shall see the change."""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable
from itertools import chain
from typing import NamedTuple

from culture.protocol.channel_names import skeletons
from culture.protocol.names import fold, owner
from culture.protocol.vocabulary import UserClass
from culture.server.core.changes import CHANGES
from culture.server.core.ids import EventId
from culture.server.core.state import MEMBER_MODES, Channel, Server, User
from culture.server.events import Event

_MOST_BOUNDED = 1_000


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
        self.servers: dict[str, Server] = {}  # the others, by the first label of their names
        self.version: int | None = None  # while an event from elsewhere is applied: what its origin called it
        self.ahead: dict[
            str, list[tuple[float, Callable[[], object]]]
        ] = {}  # what was told of channels before anybody in them
        self.renames: dict[str, str] = {}  # nicks that were given up, and what those who had them took
        self.gone: deque[Gone] = deque(maxlen=remember)
        self.channel_modes = channel_modes
        self.most_users = 0
        self.knows_people = False
        self.people_changed: Callable[[], None] | None = None  # called after every look at who is a person
        self.unvouched: set[str] = set()  # servers whose users are nothing by their own word
        self.distrusted: frozenset[str] = frozenset()  # servers with a link of ours without full trust, linked or not
        self.bounded: dict[str, Channel] = {}  # channels that are no more, and were not for every server
        self.modes: Counter[str] = Counter()
        self._standing = {fold(name): name for name in standing}
        self._by_skeleton: dict[str, dict[Channel, None]] = {}

    def user(self, nick: str) -> User | None:
        """Whoever has this nick."""
        return self.users.get(nick) or self.users.get(fold(nick))

    def nick_now(self, nick: str) -> str:
        """What whoever had this nick goes by, if they have taken another and nobody has this one."""
        seen: set[str] = set()
        while (key := fold(nick)) not in self.users and key in self.renames and key not in seen:
            seen.add(key)
            nick = self.renames[key]
        return nick

    def channel(self, name: str) -> Channel | None:
        """The channel of this name."""
        return self.channels.get(name) or self.channels.get(fold(name))

    def confusable(self, name: str) -> list[Channel]:
        """Channels of other names that people would take for this one."""
        found = chain.from_iterable(self._by_skeleton.get(skeleton, ()) for skeleton in skeletons(name))
        own = self.channel(name)
        return [channel for channel in dict.fromkeys(found) if channel is not own]

    def add_channel(self, channel: Channel) -> None:
        """List a channel under its name, for ``apply`` and ``restore`` alone."""
        self.channels[fold(channel.name)] = channel
        for skeleton in skeletons(channel.name):
            self._by_skeleton.setdefault(skeleton, {})[channel] = None

    def remove_channel(self, channel: Channel) -> None:
        """Take a channel off the list, for ``apply`` alone."""
        del self.channels[fold(channel.name)]
        for skeleton in skeletons(channel.name):
            others = self._by_skeleton[skeleton]
            del others[channel]
            if not others:
                del self._by_skeleton[skeleton]

    def by_account(self, account: str, server: str) -> User | None:
        """The user who is logged in to this account of a server: another one may have its own of that name."""
        users = (user for user in self.users.values() if user.account == account)
        return next((user for user in users if user.server == server), None)

    def count(self, mode: str) -> int:
        """How many users have this mode."""
        return self.modes[mode]

    def know_people(self, known: bool) -> None:
        """Say whether an account of class human exists: then nobody is a person by their own word."""
        self.knows_people = known
        for user in self.users.values():
            self.classify(user)
        if self.people_changed is not None:
            self.people_changed()

    def classify(self, user: User) -> None:
        """Find the class that others are told."""
        user.classify(self.knows_people, owner(fold(user.nick)) not in self.unvouched)

    def is_agent(self, user: User) -> bool:
        """Is this an agent by more than its own word (+B)? That will do where no person has an account."""
        return user.kind == UserClass.AGENT or (not self.knows_people and user.kind == UserClass.BOT)

    def doubt(self, server: str, is_doubted: bool) -> None:
        """Say whether anybody stands for what a server says of its users."""
        if is_doubted == (server in self.unvouched):
            return
        if is_doubted:
            self.unvouched.add(server)
        else:
            self.unvouched.discard(server)
        for user in self.users.values():
            if owner(fold(user.nick)) == server:
                self.classify(user)

    def open_standing(self, at: float) -> None:
        """Make the channels that are always there."""
        for name in self._standing.values():
            self.open(name, at)

    def peers(self, user: User) -> set[User]:
        """Everybody who shares a channel with the user, the user too."""
        return set(chain((user,), *(channel.members for channel in user.channels)))

    def apply(self, event: Event) -> Collection[User]:
        """Make the change; the users who shall see it. What was said changes nothing."""
        change = CHANGES.get(type(event))
        return change(self, event) if change is not None else ()

    def open(self, name: str, at: float) -> Channel:
        """A new channel, for ``apply`` alone."""
        folded = fold(name)
        channel = Channel(self._standing.get(folded, name), at, folded in self._standing, flags=set(self.channel_modes))
        channel.guard()
        self.add_channel(channel)
        self.bounded.pop(folded, None)
        return channel

    def drop(self, channel: Channel, user: User) -> None:
        """One member less, for ``apply`` alone; with the last one the channel may go."""
        rank, key = channel.members.pop(user, ""), fold(user.nick)
        channel.joins.pop(key, None)
        for mode in MEMBER_MODES:
            if (part := f"{mode}:{key}") in channel.marks:
                channel.keep_absent(part, mode in rank)
        user.channels.discard(channel)
        self.close_if_empty(channel)

    def close_if_empty(self, channel: Channel) -> None:
        """Without members only a standing or registered channel goes on, for ``apply`` alone."""
        if not channel.members and not channel.is_kept:
            for invited in channel.invited:
                invited.invitations -= {channel}
            self.remove_channel(channel)
            if channel.is_bounded:
                self._keep_border(channel)

    def _keep_border(self, channel: Channel) -> None:
        """Who left it last must not be told to those whom it was hidden from."""
        self.bounded[fold(channel.name)] = channel
        if len(self.bounded) > _MOST_BOUNDED:
            del self.bounded[next(iter(self.bounded))]

    def restore(self, channel: Channel) -> None:
        """A registered channel as it was when the server ended; before anybody is here."""
        channel.standing = fold(channel.name) in self._standing
        if (standing := self.channel(channel.name)) is not None:
            self.remove_channel(standing)
        self.add_channel(channel)

    def remember(self, user: User, stamp: EventId) -> None:
        """Keep who had this nick, for ``apply`` alone."""
        self.gone.append(Gone(user.nick, user.username, user.host, user.realname, user.server, user.account, stamp.at))
