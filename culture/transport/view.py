"""Who is where, as far as the server has told."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from culture.protocol.vocabulary import Feature, UserClass
from culture.transport.isupport import ISupport
from culture.transport.types import ChannelMember


class UserView:
    """Somebody of whom something is known."""

    __slots__ = ("account", "away", "host", "kind", "metadata", "nick", "realname", "user")

    def __init__(self, nick: str) -> None:
        self.nick = nick
        self.user = ""
        self.host = ""
        self.realname = ""
        self.account: str | None = None
        self.kind = UserClass.UNKNOWN
        self.away = False
        self.metadata: dict[str, str] = {}


class ChannelView:
    """A channel that we are in."""

    __slots__ = ("flags", "members", "metadata", "name", "topic")

    def __init__(self, name: str) -> None:
        self.name = name
        self.topic = ""
        self.flags: set[str] = set()
        """The mode letters that need no parameter, as far as they are known."""
        self.members: dict[str, str] = {}
        """Folded nicks, with the mode letters of their rank."""
        self.metadata: dict[str, str] = {}


class NetworkView:
    """The channels we are in, and everybody in them."""

    def __init__(self, nick: str = "") -> None:
        self.features = ISupport()
        self._fold = self.features.fold
        self.places: dict[str, ChannelView] = {}
        """The channels we are in, by their folded names."""
        self.people: dict[str, UserView] = {}
        """Whoever is in one of them, and ourselves, by their folded nicks."""
        self.nick = nick
        """Our own."""
        self.server = ""
        self.account: str | None = None
        """What we are logged in to."""

    @property
    def channels(self) -> list[str]:
        """The names of the channels we are in."""
        return [channel.name for channel in self.places.values()]

    def channel(self, name: str) -> ChannelView | None:
        """A channel that we are in."""
        return self.places.get(self.fold(name))

    def topic(self, channel: str) -> str:
        """What a channel is about."""
        found = self.channel(channel)
        return "" if found is None else found.topic

    def members(self, channel: str) -> list[ChannelMember]:
        """Who is in a channel of ours."""
        found = self.channel(channel)
        if found is None:
            return []
        return [self._member(self.people[folded], modes) for folded, modes in found.members.items()]

    def operators(self, channel: str) -> list[str]:
        """The nicks of those who run a channel."""
        return [member.nick for member in self.members(channel) if member.is_operator]

    def user(self, nick: str) -> ChannelMember | None:
        """Somebody who shares a channel with us, or ourselves."""
        found = self.people.get(self.fold(nick))
        return None if found is None else self._member(found, "")

    def channel_metadata(self, channel: str) -> Mapping[str, str]:
        """What a channel says of itself."""
        found = self.channel(channel)
        return MappingProxyType({} if found is None else dict(found.metadata))

    def names(self) -> Iterator[str]:
        """Every nick and channel we know of."""
        yield from self.channels
        for user in self.people.values():
            yield user.nick

    def fold(self, name: str) -> str:
        """The form in which names compare on this server."""
        return self._fold(name)

    def is_self(self, source: str) -> bool:
        """Whether this is us."""
        return self.fold(source.partition("!")[0]) == self.fold(self.nick)

    @property
    def prefix(self) -> str | None:
        """How we are shown to others, ``nick!user@host``; None as long as we do not know."""
        own = self.people.get(self.fold(self.nick))
        return f"{own.nick}!{own.user}@{own.host}" if own is not None and own.host else None

    def _member(self, user: UserView, modes: str) -> ChannelMember:
        metadata = MappingProxyType(dict(user.metadata))
        return ChannelMember(
            user.nick, modes, user.account, user.kind, user.away, user.user, user.host, user.realname, metadata
        )

    def somebody(self, nick: str) -> UserView:
        """Whoever has this nick, new or not."""
        folded = self.fold(nick)
        user = self.people.get(folded)
        if user is None:
            user = self.people[folded] = UserView(nick)
        return user

    def leave(self, channel: ChannelView, folded: str) -> None:
        """Somebody is in a channel no more."""
        channel.members.pop(folded, None)
        if folded == self.fold(self.nick):
            self.places.pop(self.fold(channel.name), None)
            for other in channel.members:
                self.forget(other)
        else:
            self.forget(folded)

    def forget(self, folded: str) -> None:
        """Whoever shares no channel with us is seen no more."""
        if folded != self.fold(self.nick) and not any(folded in each.members for each in self.places.values()):
            self.people.pop(folded, None)

    def learn(self, nick: str, user: str, host: str, flags: str, realname: str, account: str | None = None) -> None:
        """What a line of WHO says of somebody whom we see."""
        found = self.people.get(self.fold(nick))
        if found is None:
            return
        found.user, found.host, found.realname = user, host, realname
        found.away = flags.startswith("G")
        found.account = account or found.account
        kind = self.kind_by(flags)
        if kind is UserClass.HUMAN or found.kind is UserClass.UNKNOWN:
            found.kind = kind

    def kind_by(self, flags: str) -> UserClass:
        """What flags of WHO tell: a person by their account, or a program; else it is not known."""
        if self._marks(Feature.HUMAN.value, flags):
            return UserClass.HUMAN
        return UserClass.BOT if self._marks("BOT", flags) else UserClass.UNKNOWN

    def _marks(self, feature: str, flags: str) -> bool:
        letter = self.features.tokens.get(feature, "")
        return bool(letter) and letter in flags

    def refold(self) -> None:
        """Names compare as the server has said by now."""
        self._fold = self.features.fold
        self.people = {self.fold(user.nick): user for user in self.people.values()}
        self.places = {self.fold(channel.name): channel for channel in self.places.values()}
