"""The state of the network: users, channels and servers. Only ``apply`` changes it.

``apply`` takes an event, calls the function for its kind (``core/changes``) and returns the users who shall see it.
Everything else reads the state and must not change it. Names are keys in folded form (``protocol.names.fold``).
"""

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

_MOST_BOUNDED = 1_000  # closed channels whose borders are remembered


class Gone(NamedTuple):
    """A user who had a nick earlier, as WHOWAS shows them."""

    nick: str
    username: str
    host: str
    realname: str
    server: str
    account: str | None
    at: float


class Network:
    """The users and channels by folded name, and the other servers by short name."""

    def __init__(self, standing: Iterable[str] = (), channel_modes: str = "nt", remember: int = 1000) -> None:
        self.users: dict[str, User] = {}
        self.channels: dict[str, Channel] = {}
        self.servers: dict[str, Server] = {}  # the other servers, by the first label of their names
        self.version: int | None = None  # while a remote event is applied: the version that its origin gave it
        # Changes to channels that came over a link before any of their members.
        self.ahead: dict[str, list[tuple[float, Callable[[], object]]]] = {}
        self.renames: dict[str, str] = {}  # nick that was given up → the nick that its user took
        self.gone: deque[Gone] = deque(maxlen=remember)
        self.channel_modes = channel_modes
        self.most_users = 0
        self.knows_people = False
        self.people_changed: Callable[[], None] | None = None  # called after the classes of users may have changed
        self.unvouched: set[str] = set()  # servers whose statements about their users do not count
        self.distrusted: frozenset[str] = frozenset()  # servers that we link to without full trust, linked or not
        self.bounded: dict[str, Channel] = {}  # closed channels that were hidden from some servers
        self.modes: Counter[str] = Counter()
        self._standing = {fold(name): name for name in standing}
        self._by_skeleton: dict[str, dict[Channel, None]] = {}

    def user(self, nick: str) -> User | None:
        """Return the user with this nick; None if there is none."""
        return self.users.get(nick) or self.users.get(fold(nick))

    def nick_now(self, nick: str) -> str:
        """Return the present nick of the user who last had ``nick``, which is unused now.

        Returns ``nick`` itself if that user is unknown.
        """
        seen: set[str] = set()
        while (key := fold(nick)) not in self.users and key in self.renames and key not in seen:
            seen.add(key)
            nick = self.renames[key]
        return nick

    def channel(self, name: str) -> Channel | None:
        """Return the channel with this name; None if there is none."""
        return self.channels.get(name) or self.channels.get(fold(name))

    def confusable(self, name: str) -> list[Channel]:
        """Return the other channels whose names people could confuse with ``name``."""
        candidates = chain.from_iterable(self._by_skeleton.get(skeleton, ()) for skeleton in skeletons(name))
        own = self.channel(name)
        return [channel for channel in dict.fromkeys(candidates) if channel is not own]

    def add_channel(self, channel: Channel) -> None:
        """Add a channel to the tables; only ``apply`` and ``restore`` may call it."""
        self.channels[fold(channel.name)] = channel
        for skeleton in skeletons(channel.name):
            self._by_skeleton.setdefault(skeleton, {})[channel] = None

    def remove_channel(self, channel: Channel) -> None:
        """Remove a channel from the tables; only ``apply`` may call it."""
        del self.channels[fold(channel.name)]
        for skeleton in skeletons(channel.name):
            others = self._by_skeleton[skeleton]
            del others[channel]
            if not others:
                del self._by_skeleton[skeleton]

    def by_account(self, account: str, server: str) -> User | None:
        """Return the user of this server who is logged in to this account; None if there is none."""
        users = (user for user in self.users.values() if user.account == account)
        return next((user for user in users if user.server == server), None)

    def count(self, mode: str) -> int:
        """Return the number of users who have this user mode, such as ``i``."""
        return self.modes[mode]

    def know_people(self, exists: bool) -> None:
        """Record whether an account of class human exists, and recompute the classes of all users.

        If one exists, users without an account do not count as people.
        """
        self.knows_people = exists
        for user in self.users.values():
            self.classify(user)
        if self.people_changed is not None:
            self.people_changed()

    def classify(self, user: User) -> None:
        """Recompute the class of a user (human, agent, bot, unknown), which others see."""
        user.classify(self.knows_people, owner(fold(user.nick)) not in self.unvouched)

    def is_agent(self, user: User) -> bool:
        """Return whether the user is an agent: by account, or by +B while no person has an account."""
        return user.kind == UserClass.AGENT or (not self.knows_people and user.kind == UserClass.BOT)

    def doubt(self, server: str, is_doubted: bool) -> None:
        """Record whether a linked server's statements about its users are doubted.

        The class of these users is then unknown, or bot by mode +B. ``server``: the server's short name.
        """
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
        """Create the channels of the configuration, which always exist.

        ``at``: the present time in seconds since 1970.
        """
        for name in self._standing.values():
            self.open(name, at)

    def peers(self, user: User) -> dict[User, None]:
        """Return the user and all users who share a channel with the user."""
        return dict.fromkeys(chain((user,), *(channel.members for channel in user.channels)))

    def apply(self, event: Event) -> Collection[User]:
        """Apply an event to users, channels and servers; return the users to whom it is shown."""
        change = CHANGES.get(type(event))
        return change(self, event) if change is not None else ()

    def open(self, name: str, at: float) -> Channel:
        """Create a channel with this name and return it; only ``apply`` may call this.

        ``at``: its time of creation, in seconds since 1970.
        """
        folded = fold(name)
        channel = Channel(self._standing.get(folded, name), at, folded in self._standing, flags=set(self.channel_modes))
        channel.guard()
        self.add_channel(channel)
        self.bounded.pop(folded, None)
        return channel

    def drop(self, channel: Channel, user: User) -> None:
        """Remove a member from a channel, and the channel if it is then empty.

        Only ``apply`` may call it.
        """
        rank, key = channel.members.pop(user, ""), fold(user.nick)
        channel.joins.pop(key, None)
        for mode in MEMBER_MODES:
            if (part := f"{mode}:{key}") in channel.marks:
                channel.keep_absent(part, mode in rank)
        user.channels.pop(channel, None)
        self.close_if_empty(channel)

    def close_if_empty(self, channel: Channel) -> None:
        """Remove a channel without members, unless it is registered or of the configuration.

        Only ``apply`` may call it.
        """
        if not channel.members and not channel.is_kept:
            for invited in list(channel.invited):
                channel.uninvite(invited)
            self.remove_channel(channel)
            if channel.is_bounded:
                self._keep_border(channel)

    def _keep_border(self, channel: Channel) -> None:
        """Remember from which servers a removed channel is hidden: they must not get its last PART."""
        self.bounded[fold(channel.name)] = channel
        if len(self.bounded) > _MOST_BOUNDED:
            del self.bounded[next(iter(self.bounded))]

    def restore(self, channel: Channel) -> None:
        """Add a registered channel with its saved settings, before any user is connected."""
        channel.standing = fold(channel.name) in self._standing
        if (present := self.channel(channel.name)) is not None:
            self.remove_channel(present)
        self.add_channel(channel)

    def remember(self, user: User, stamp: EventId) -> None:
        """Add a user who left or changed nick to the list for WHOWAS; only ``apply`` may call this.

        ``stamp``: id and time of the event.
        """
        self.gone.append(Gone(user.nick, user.username, user.host, user.realname, user.server, user.account, stamp.at))
