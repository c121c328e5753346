"""What is known of users and channels: data, wherever they are."""

from dataclasses import dataclass, field
from typing import NamedTuple

from culture.protocol.names import fold, matches, normal_mask
from culture.protocol.vocabulary import ChannelMode, UserClass

MEMBER_MODES = {"o": "@", "v": "+"}  # highest first
# Extended bans: a mask that keeps from speaking and from nothing else; an account in place of a mask.
MUTE = "m:"
_CLOSING = frozenset("is")
ACCOUNT = "a:"
_MOST_ABSENT = 100


class Topic(NamedTuple):
    """What a channel is about, who said so and when."""

    text: str
    by: str
    at: float


class Server(NamedTuple):
    """Another server of the mesh: its name, what it says of itself, and the way to it."""

    name: str
    description: str
    hops: int
    via: str


class Mark(NamedTuple):
    """When a part of a channel was last set: of two marks the greater one holds, on every server."""

    version: int
    at: float
    origin: str
    seq: int


class ListEntry(NamedTuple):
    """Who put a mask on a list, and when."""

    by: str
    at: float


@dataclass(slots=True, eq=False)
class User:
    """Somebody on the network: data, not a connection."""

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
    channels: "set[Channel]" = field(default_factory=set)
    invitations: "frozenset[Channel]" = frozenset()
    source: str = ""
    kind: str = UserClass.UNKNOWN
    metadata: dict[str, str] | None = None

    def __post_init__(self) -> None:
        """Make the source that others see."""
        self.rename(self.nick)

    def rename(self, nick: str) -> None:
        """Take another nick."""
        self.nick = nick
        self.source = f"{nick}!{self.username}@{self.host}"

    def classify(self, knows_people: bool, is_vouched: bool = True) -> None:
        """Find the class that others are told (``kind``).

        It is the account's class. Without one it is a bot by its own word (+B). Who is not logged in is else a person
        by their word, unless there are accounts that tell people for sure. Users of a server that nobody vouches for
        have no class; the mode +B alone still shows which of them are programs.
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
        """Is this a program, by its class or by its own word (+B)? It gives no authority: anybody can set +B."""
        return self.kind in (UserClass.AGENT, UserClass.BOT) or "B" in self.modes


@dataclass(slots=True, eq=False)
class Channel:
    """A room: who is in it and how it is set up."""

    name: str
    created: float
    standing: bool = False
    topic: Topic | None = None
    flags: set[str] = field(default_factory=set)
    key: str | None = None
    limit: int | None = None
    lists: dict[str, dict[str, ListEntry]] = field(default_factory=dict)
    members: dict[User, str] = field(default_factory=dict)
    invited: set[User] = field(default_factory=set)
    is_guarded: bool = False  # something may keep a member from speaking
    founder: str | None = None  # the account that registered it
    metadata: dict[str, str] | None = None
    shared: tuple[str, ...] | None = None  # the servers it is shared with; None: all
    founded: float = 0.0  # when the first of its present members came: whom it gave a rank, they have one
    clock: int = 0  # grows with every change, here or elsewhere
    marks: dict[str, Mark] = field(default_factory=dict)  # by what was set: ``topic``, ``i``, ``b:mask``, ``o:nick``
    joins: dict[str, Mark] = field(default_factory=dict)  # by folded nick: what was set before that counts no more
    absent: dict[str, bool] = field(default_factory=dict)  # ranks of who is not here, by part: they may come later

    @property
    def is_registered(self) -> bool:
        """Is it kept on disk, with or without members?"""
        return ChannelMode.REGISTERED in self.flags

    @property
    def is_kept(self) -> bool:
        """Does it stay when its last member leaves?"""
        return self.standing or self.is_registered

    @property
    def is_bounded(self) -> bool:
        """Is it hidden from some servers of the mesh?"""
        return self.shared is not None or ChannelMode.LOCAL in self.flags

    @property
    def is_open(self) -> bool:
        """May anybody join, and know that it exists?"""
        return self.key is None and _CLOSING.isdisjoint(self.flags)

    def is_founder(self, user: User) -> bool:
        """Did this user's account register the channel?"""
        return self.founder is not None and user.account is not None and same(self.founder, user.account)

    def guard(self) -> None:
        """Note after a change of modes whether a member's speech needs a closer look."""
        self.is_guarded = bool(self.flags & {"m", "C"} or self.lists.get("b"))

    def keep_absent(self, part: str, held: bool) -> None:
        """Remember a rank that somebody who is not here was given, or lost: others may know them as here."""
        self.absent[part] = held
        if len(self.absent) > _MOST_ABSENT:
            oldest = next(iter(self.absent))
            del self.absent[oldest]
            self.marks.pop(oldest, None)

    def is_operator(self, user: User) -> bool:
        """May this user set modes?"""
        return "o" in self.members.get(user, "")

    def may_invite(self, user: User) -> bool:
        """May this member let others in?"""
        return "i" not in self.flags or self.is_operator(user)

    def listed(self, mode: str, user: User) -> bool:
        """Is the user on the ban (b), exception (e) or invitation (I) list?"""
        return any(covers(mask, user) for mask in self.lists.get(mode, ()))

    def is_muted(self, user: User) -> bool:
        """Do a ban or a mute extban keep this user from speaking?"""
        entries = self.lists.get("b")
        if not entries:
            return False
        silenced = any(covers(mask.removeprefix(MUTE), user) for mask in entries)
        return silenced and not self.listed("e", user) and not self.excepted_from_mute(user)

    def excepted_from_mute(self, user: User) -> bool:
        """Is the user on the exception list for mutes?"""
        entries = self.lists.get("e", {})
        return any(covers(mask.removeprefix(MUTE), user) for mask in entries if mask.startswith(MUTE))

    def may_speak(self, user: User) -> bool:
        """May this user send to the channel?"""
        status = self.members.get(user)
        if status:
            return True
        if status is None and "n" in self.flags:
            return False
        return "m" not in self.flags and not self.is_muted(user)


def covers(mask: str, user: User) -> bool:
    """Does a list mask mean this user? A mute extban bans from nothing but speaking."""
    if mask.startswith(ACCOUNT):
        return user.account is not None and matches(mask.removeprefix(ACCOUNT), user.account)
    return not mask.startswith(MUTE) and matches(mask, user.source)


def full_mask(given: str) -> str:
    """A mask as it is listed, with what its writer left out; empty where there is none."""
    mute = MUTE if given.startswith(MUTE) else ""
    bare = given.removeprefix(mute)
    if bare in ("", ACCOUNT):
        return ""
    return mute + (bare if bare.startswith(ACCOUNT) else normal_mask(bare))


def symbols(status: str, every: bool) -> str:
    """Member modes as prefixes: all of them, or the highest."""
    shown = [symbol for mode, symbol in MEMBER_MODES.items() if mode in status]
    return "".join(shown if every else shown[:1])


def reaches(held: str, status: str) -> bool:
    """Do these member modes reach the rank of this prefix?"""
    for mode, symbol in MEMBER_MODES.items():
        if mode in held:
            return True
        if symbol == status:
            return False
    return False


def same(one: str, other: str) -> bool:
    """Are these the same name?"""
    return fold(one) == fold(other)
