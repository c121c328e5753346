"""What the server has told us: its features (005), the channels we are in, the users in them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from culture.protocol.modes import ModeKind
from culture.protocol.names import fold
from culture.protocol.vocabulary import Feature, UserClass
from culture.transport.types import ChannelMember

_RFC1459 = str.maketrans("[]\\~", "{}|^")
_STRICT = str.maketrans("[]\\", "{}|")
_KINDS = (ModeKind.LIST, ModeKind.ALWAYS, ModeKind.WHEN_SET, ModeKind.FLAG)


class ISupport:
    """The tokens of the server's 005 lines by name; tokens not sent have the RFC 2812 defaults."""

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}

    def take(self, words: Iterable[str]) -> None:
        """Add the tokens of one 005 line, and remove those that ``words`` names with a minus sign."""
        for word in words:
            name, _, value = word.partition("=")
            if name.startswith("-"):
                self.tokens.pop(name[1:], None)
            elif name:
                self.tokens[name] = value

    def __contains__(self, name: str) -> bool:
        return name in self.tokens

    def number(self, name: str, default: int) -> int:
        """Return the value of the token ``name`` as a number; ``default`` if it is not at least 1."""
        value = self.tokens.get(name, "")
        return int(value) if value.isascii() and value.isdigit() and value.strip("0") else default

    @property
    def prefixes(self) -> dict[str, str]:
        """The mode letter of each member prefix, the highest rank first: ``{"@": "o", "+": "v"}``."""
        modes, _, signs = self.tokens.get("PREFIX", "(ov)@+").lstrip("(").partition(")")
        return dict(zip(signs, modes, strict=False))

    @property
    def kinds(self) -> dict[str, ModeKind]:
        """The kind of each channel mode by its letter; the kind says when the mode has a parameter."""
        groups = self.tokens.get("CHANMODES", "beI,k,l,imnpst").split(",")
        kinds = {letter: kind for kind, letters in zip(_KINDS, groups, strict=False) for letter in letters}
        return {**kinds, **dict.fromkeys(self.prefixes.values(), ModeKind.PREFIX)}

    @property
    def fold(self) -> Callable[[str], str]:
        """Function that maps names which are equal on this server (CASEMAPPING) to the same string."""
        match self.tokens.get("CASEMAPPING", "rfc1459"):
            case "rfc1459":
                return lambda name: fold(name).translate(_RFC1459)
            case "rfc1459-strict":
                return lambda name: fold(name).translate(_STRICT)
            case _:
                return fold

    def is_channel(self, target: str) -> bool:
        """Whether a target is a channel: its first character is in the server's CHANTYPES."""
        return target[:1] != "" and target[0] in (self.tokens.get("CHANTYPES") or "#&")

    def channel_of(self, target: str) -> str:
        """Return the channel of a target such as ``@#room`` (members of a rank only: STATUSMSG).

        Any other target, also a nick, is returned unchanged.
        """
        bare = target.lstrip(self.tokens.get("STATUSMSG", ""))
        return bare if self.is_channel(bare) else target


class UserView:
    """Data of the server about a user who shares a channel with us, or about ourselves."""

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
    """Data of the server about a channel that we are in."""

    __slots__ = ("flags", "members", "metadata", "name", "topic")

    def __init__(self, name: str) -> None:
        self.name = name
        self.topic = ""
        self.flags: set[str] = set()
        """Mode letters without a parameter, as far as known."""
        self.members: dict[str, str] = {}
        """Mode letters of each member's rank, by folded nick."""
        self.metadata: dict[str, str] = {}


class NetworkView:
    """The channels we are in and the users in them, as the server has reported so far."""

    def __init__(self, nick: str = "") -> None:
        self.features = ISupport()
        self._fold = self.features.fold
        self.channels_by_name: dict[str, ChannelView] = {}
        """Channels we are in, by folded name."""
        self.users: dict[str, UserView] = {}
        """Users in these channels, and ourselves, by folded nick."""
        self.nick = nick
        """Our own nick."""
        self.server = ""
        self.account: str | None = None
        """The account we are logged in to."""

    @property
    def channels(self) -> list[str]:
        """Names of the channels that we are in."""
        return [channel.name for channel in self.channels_by_name.values()]

    def channel(self, name: str) -> ChannelView | None:
        """Return the channel with this name; None if we are not in it."""
        return self.channels_by_name.get(self.fold(name))

    def topic(self, channel: str) -> str:
        """Return the topic of a channel; empty if it has none or we are not in it."""
        entry = self.channel(channel)
        return "" if entry is None else entry.topic

    def members(self, channel: str) -> list[ChannelMember]:
        """Return the known members of a channel; empty if we are not in it."""
        entry = self.channel(channel)
        if entry is None:
            return []
        return [self._member(self.users[folded], modes) for folded, modes in entry.members.items()]

    def operators(self, channel: str) -> list[str]:
        """Return the nicks of a channel's operators; empty if we are not in it."""
        return [member.nick for member in self.members(channel) if member.is_operator]

    def user(self, nick: str) -> ChannelMember | None:
        """Return a user who shares a channel with us, or ourselves; None for any other nick.

        The rank in a channel (``modes``) is left empty.
        """
        entry = self.users.get(self.fold(nick))
        return None if entry is None else self._member(entry, "")

    def channel_metadata(self, channel: str) -> Mapping[str, str]:
        """Return the metadata of a channel; empty if we are not in it."""
        entry = self.channel(channel)
        return MappingProxyType({} if entry is None else dict(entry.metadata))

    def names(self) -> Iterator[str]:
        """Iterate over the names of the channels we are in and the nicks of the known users."""
        yield from self.channels
        for user in self.users.values():
            yield user.nick

    def fold(self, name: str) -> str:
        """Return a name in the form in which this server compares names (CASEMAPPING)."""
        return self._fold(name)

    def is_self(self, source: str) -> bool:
        """Whether ``source``, a nick or ``nick!user@host``, names ourselves."""
        return self.fold(source.partition("!")[0]) == self.fold(self.nick)

    @property
    def prefix(self) -> str | None:
        """Our ``nick!user@host`` as others see it; None until the server has reported it."""
        own = self.users.get(self.fold(self.nick))
        return f"{own.nick}!{own.user}@{own.host}" if own is not None and own.host else None

    def _member(self, user: UserView, modes: str) -> ChannelMember:
        metadata = MappingProxyType(dict(user.metadata))
        return ChannelMember(
            user.nick, modes, user.account, user.kind, user.away, user.user, user.host, user.realname, metadata
        )

    def get_or_add_user(self, nick: str) -> UserView:
        """Return the user with this nick; a nick that is not in the view is added first."""
        folded = self.fold(nick)
        user = self.users.get(folded)
        if user is None:
            user = self.users[folded] = UserView(nick)
        return user

    def remove_member(self, channel: ChannelView, folded: str) -> None:
        """Remove a user from a channel; if we are that user, remove the channel from the view.

        ``folded``: the nick in the form that ``fold`` returns.
        """
        channel.members.pop(folded, None)
        if folded == self.fold(self.nick):
            self.channels_by_name.pop(self.fold(channel.name), None)
            for other in channel.members:
                self.remove_unseen(other)
        else:
            self.remove_unseen(folded)

    def remove_unseen(self, folded: str) -> None:
        """Remove a user from the view who shares no channel with us any more.

        ``folded``: the nick in the form that ``fold`` returns.
        """
        if folded != self.fold(self.nick) and not any(
            folded in each.members for each in self.channels_by_name.values()
        ):
            self.users.pop(folded, None)

    def update_user(
        self, nick: str, user: str, host: str, flags: str, realname: str, account: str | None = None
    ) -> None:
        """Update a user from the fields of a WHO reply; do nothing if the nick is not in the view.

        ``flags``: the reply's flags, such as ``H@``; ``account`` None: unknown.
        """
        entry = self.users.get(self.fold(nick))
        if entry is None:
            return
        entry.user, entry.host, entry.realname = user, host, realname
        entry.away = flags.startswith("G")
        entry.account = account or entry.account
        kind = self.kind_of_flags(flags)
        if kind is UserClass.HUMAN or entry.kind is UserClass.UNKNOWN:
            entry.kind = kind

    def kind_of_flags(self, flags: str) -> UserClass:
        """Return the class shown by the flags of a WHO reply: human, bot, or else unknown."""
        if self._has_flag(Feature.HUMAN.value, flags):
            return UserClass.HUMAN
        return UserClass.BOT if self._has_flag("BOT", flags) else UserClass.UNKNOWN

    def _has_flag(self, feature: str, flags: str) -> bool:
        letter = self.features.tokens.get(feature, "")
        return bool(letter) and letter in flags

    def refold(self) -> None:
        """Rebuild the indexes by folded name, as the server has sent another CASEMAPPING."""
        self._fold = self.features.fold
        self.users = {self.fold(user.nick): user for user in self.users.values()}
        self.channels_by_name = {self.fold(channel.name): channel for channel in self.channels_by_name.values()}
