"""Users, channels and servers as data, and the rules that need nothing else."""

from dataclasses import dataclass, field
from typing import NamedTuple

from culture.protocol.names import fold, matches, normal_mask
from culture.protocol.vocabulary import ChannelMode, UserClass

MEMBER_MODES = {"o": "@", "v": "+"}  # highest first
# Extended bans: ``m:`` keeps a user from speaking only; ``a:`` matches an account instead of a mask.
MUTE = "m:"
_CLOSING = frozenset("is")
ACCOUNT = "a:"
_MOST_ABSENT = 100


class Topic(NamedTuple):
    """The topic of a channel, who set it and when."""

    text: str
    by: str
    at: float


class Server(NamedTuple):
    """Another server of the mesh: its name, its description and the way to it."""

    name: str
    description: str
    hops: int
    via: str


class Mark(NamedTuple):
    """Version of one part of a channel: of two marks the greater one wins, on every server."""

    version: int
    at: float
    origin: str
    seq: int


class ListEntry(NamedTuple):
    """An entry of a ban, exception or invitation list: who set it, and when."""

    by: str
    at: float


@dataclass(slots=True, eq=False)
class User:
    """A user of the network: data, not a connection."""

    nick: str
    username: str
    host: str
    realname: str
    server: str
    account: str | None
    account_kind: str
    since: float
    modes: set[str] = field(default_factory=set)
    away: str | None = None
    channels: "dict[Channel, None]" = field(default_factory=dict)
    invitations: "tuple[Channel, ...]" = ()
    source: str = ""
    kind: str = UserClass.UNKNOWN
    metadata: dict[str, str] | None = None

    def __post_init__(self) -> None:
        """Set ``source``, the ``nick!user@host`` that others see."""
        self.rename(self.nick)

    def rename(self, nick: str) -> None:
        """Change the nick, and with it ``source``, the ``nick!user@host`` that others see."""
        self.nick = nick
        self.source = f"{nick}!{self.username}@{self.host}"

    def classify(self, knows_people: bool, is_vouched: bool = True) -> None:
        """Set ``kind``, the user class that others see.

        It is the class of the account. Without an account, mode +B makes a bot; other users count as people only if
        they are not logged in and ``knows_people`` is False (no person has an account). Without ``is_vouched`` (nobody
        vouches for the user's server) the class is unknown; +B alone still shows a program.
        """
        if not is_vouched:
            self.kind = UserClass.UNKNOWN
        elif self.account_kind != UserClass.UNKNOWN:
            self.kind = self.account_kind
        elif "B" in self.modes:
            self.kind = UserClass.BOT
        else:
            self.kind = UserClass.UNKNOWN if knows_people or self.account is not None else UserClass.HUMAN

    @property
    def is_agent(self) -> bool:
        """Return whether the user is a program, by class or by mode +B, which any user can set."""
        return self.kind in (UserClass.AGENT, UserClass.BOT) or "B" in self.modes


@dataclass(slots=True, eq=False)
class Channel:
    """A channel: its members and settings."""

    name: str
    created: float
    standing: bool = False
    topic: Topic | None = None
    flags: set[str] = field(default_factory=set)
    key: str | None = None
    limit: int | None = None
    lists: dict[str, dict[str, ListEntry]] = field(default_factory=dict)
    members: dict[User, str] = field(default_factory=dict)
    invited: dict[User, None] = field(default_factory=dict)
    is_guarded: bool = False  # a mode may keep a member from speaking
    founder: str | None = None  # the account that registered it
    metadata: dict[str, str] | None = None
    shared: tuple[str, ...] | None = None  # the servers it is shared with; None: all
    founded: float = 0.0  # time when the first of its present members joined
    clock: int = 0  # version of the last change, local or remote
    marks: dict[str, Mark] = field(default_factory=dict)  # by part: ``topic``, ``i``, ``b:mask``, ``o:nick``
    joins: dict[str, Mark] = field(default_factory=dict)  # by folded nick: older ranks do not count
    absent: dict[str, bool] = field(default_factory=dict)  # by part: ranks of users who are not here yet

    @property
    def is_registered(self) -> bool:
        """Return whether the channel is registered: saved on disk, with or without members."""
        return ChannelMode.REGISTERED in self.flags

    @property
    def is_kept(self) -> bool:
        """Return whether the channel outlives its members: registered, or of the configuration."""
        return self.standing or self.is_registered

    @property
    def is_bounded(self) -> bool:
        """Return whether the channel is hidden from some servers of the mesh."""
        return self.shared is not None or ChannelMode.LOCAL in self.flags

    @property
    def is_open(self) -> bool:
        """Return whether anybody may join the channel and see that it exists."""
        return self.key is None and _CLOSING.isdisjoint(self.flags)

    def is_founder(self, user: User) -> bool:
        """Return whether this user's account registered the channel."""
        return self.founder is not None and user.account is not None and same(self.founder, user.account)

    def guard(self) -> None:
        """Recompute ``is_guarded`` (a mode may keep a member from speaking) after a change of modes."""
        self.is_guarded = bool(self.flags & {"m", "C"} or self.lists.get("b"))

    def invite(self, user: User) -> None:
        """Record that a user was invited; only changes of the network may call it."""
        if user not in self.invited:
            self.invited[user] = None
            user.invitations = (*user.invitations, self)

    def uninvite(self, user: User) -> None:
        """Remove a user's invitation, if there is one; only changes of the network may call it."""
        if user in self.invited:
            del self.invited[user]
            user.invitations = tuple(channel for channel in user.invitations if channel is not self)

    def keep_absent(self, part: str, held: bool) -> None:
        """Record a change of the rank of a user who is not in the channel, as far as we know.

        Other servers may know the user as a member. ``part``: the rank and the folded nick, such as ``o:nick``;
        ``held``: whether the rank was given or taken.
        """
        self.absent[part] = held
        if len(self.absent) > _MOST_ABSENT:
            oldest = next(iter(self.absent))
            del self.absent[oldest]
            self.marks.pop(oldest, None)

    def is_operator(self, user: User) -> bool:
        """Return whether this user is a channel operator."""
        return "o" in self.members.get(user, "")

    def may_invite(self, user: User) -> bool:
        """Return whether this member may invite others: operators only in a channel with mode +i."""
        return "i" not in self.flags or self.is_operator(user)

    def listed(self, mode: str, user: User) -> bool:
        """Return whether the user is on the list ``mode``: ban (b), exception (e) or invitation (I)."""
        return any(covers(mask, user) for mask in self.lists.get(mode, ()))

    def is_muted(self, user: User) -> bool:
        """Return whether a ban or a mute extban keeps this user from speaking."""
        entries = self.lists.get("b")
        if not entries:
            return False
        silenced = any(covers(mask.removeprefix(MUTE), user) for mask in entries)
        return silenced and not self.listed("e", user) and not self.excepted_from_mute(user)

    def excepted_from_mute(self, user: User) -> bool:
        """Return whether an entry of the exception list exempts the user from mutes."""
        entries = self.lists.get("e", {})
        return any(covers(mask.removeprefix(MUTE), user) for mask in entries if mask.startswith(MUTE))

    def may_speak(self, user: User) -> bool:
        """Return whether this user may send to the channel, by its modes and ban list."""
        status = self.members.get(user)
        if status:
            return True
        if status is None and "n" in self.flags:
            return False
        return "m" not in self.flags and not self.is_muted(user)


def covers(mask: str, user: User) -> bool:
    """Return whether a mask of a channel's list matches this user.

    An account extban is compared with the user's account; the mask of a mute matches nobody.
    """
    if mask.startswith(ACCOUNT):
        return user.account is not None and matches(mask.removeprefix(ACCOUNT), user.account)
    return not mask.startswith(MUTE) and matches(mask, user.source)


def full_mask(text: str) -> str:
    """Return a list mask with its missing parts as ``*``; "" if the text is no mask."""
    mute = MUTE if text.startswith(MUTE) else ""
    bare = text.removeprefix(mute)
    if bare in ("", ACCOUNT):
        return ""
    return mute + (bare if bare.startswith(ACCOUNT) else normal_mask(bare))


def symbols(status: str, every: bool) -> str:
    """Return the prefixes, such as ``@``, of the member modes in ``status``.

    ``every``: those of all modes, not only of the highest.
    """
    prefixes = [symbol for mode, symbol in MEMBER_MODES.items() if mode in status]
    return "".join(prefixes if every else prefixes[:1])


def reaches(held: str, status: str) -> bool:
    """Return whether a member with the modes ``held`` has the rank ``status``, or a higher one.

    ``status``: the prefix of a rank, such as ``@``.
    """
    for mode, symbol in MEMBER_MODES.items():
        if mode in held:
            return True
        if symbol == status:
            return False
    return False


def same(one: str, other: str) -> bool:
    """Return whether two names are equal, ignoring case as IRC does."""
    return fold(one) == fold(other)
