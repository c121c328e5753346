"""Who may read what of the history (decision 7)."""

from typing import NamedTuple

from culture.protocol.names import fold, owner, valid_nick
from culture.protocol.numerics import Numeric
from culture.server.context import Context
from culture.server.core.ids import MICROSECONDS, EventId
from culture.server.core.state import Channel, User, reaches
from culture.server.errors import Refused
from culture.server.events import Arrived, ChannelRenamed, Joined, Left, Renamed, nick_of
from culture.server.skill import Host, hook
from culture.skills.history.entry import ACCOUNT, Entry, conversation, party
from culture.skills.history.store import LATEST, Store, Talk, View

_GONE = 100  # channels that are no more, before they are forgotten


class Reader(NamedTuple):
    """Who somebody is to private conversations, and since when that has been the same person (None: ever)."""

    party: str
    begun: EventId | None

    @property
    def since(self) -> int:
        """The same as a time (microseconds)."""
        return 0 if self.begun is None else round(self.begun.at * MICROSECONDS)

    def includes(self, entry: Entry) -> bool:
        """Is it from after that? Numbers go on where a clock is set back."""
        begun = self.begun
        return begun is None or entry.epoch != begun.epoch or entry.seq > begun.seq


class Readable(NamedTuple):
    """What may be read of a target: the first of these views that there is something in."""

    views: tuple[View, ...]
    reader: Reader | None = None
    absent: str = ""
    """The nick, where it is one of another server that nobody is seen with: its conversation is found by it."""

    def includes(self, entry: Entry) -> bool:
        """Is it from after the reader's beginning?"""
        return self.reader is None or self.reader.includes(entry)

    def view(self, store: Store) -> View:
        """The view to read by."""
        if self.absent and self.reader is not None:
            talks = store.talks(self.reader.party, self.reader.since, (), -1, LATEST + 1)
            with_them = [talk for talk in talks if fold(talk.name) == fold(self.absent)]
            if with_them:
                return self.views[0]._replace(place=max(with_them, key=lambda talk: talk.at).place)
        return next((each for each in self.views if store.exists(each.place)), self.views[-1])


class Access:
    """Members read everything of their channel; everybody else what was said while everybody could be there.

    What was said in private is for the two who said it: whoever is logged in to the account, or the guest who has
    had the nick since then.
    """

    def __init__(self, host: Host) -> None:
        self._network = host.network
        self._host = host
        self._since: dict[str, EventId] = {}  # when somebody came into each channel that nobody was in
        self._begun: dict[str, EventId] = {}  # when each nick that somebody has became theirs

    @hook(Arrived)
    def arrived(self, event: Arrived) -> None:
        """Somebody has a nick that others may have had before."""
        self._begun[fold(event.nick)] = event.id

    @hook(Renamed)
    def took(self, event: Renamed) -> None:
        """The same; another spelling of it is no other nick."""
        old, new = fold(nick_of(event.source)), fold(event.new)
        if old != new:
            self._begun.pop(old, None)
            self._begun[new] = event.id

    @hook(Left)
    def left(self, event: Left) -> None:
        """The nick is nobody's."""
        self._begun.pop(fold(nick_of(event.source)), None)

    @hook(Joined)
    def joined(self, event: Joined) -> None:
        """Who comes first into a channel that nobody was in has no claim on what was said behind closed doors.

        When that was we know ourselves: other servers may say that the channel is older.
        """
        channel = self._network.channel(event.channel)
        if channel is not None and len(channel.members) == 1 and not channel.is_registered:
            ids = self._host.ids
            first = event.id.seq if event.id.origin == self._host.name else ids.last + 1
            self._since[fold(channel.name)] = EventId(self._host.name, ids.epoch, first, ids.now())
            self._tidy()

    @hook(ChannelRenamed)
    def renamed(self, event: ChannelRenamed) -> None:
        """The same channel under another name."""
        since = self._since.pop(fold(event.channel), None)
        self._since.pop(fold(event.new), None)
        if since is not None:
            self._since[fold(event.new)] = since

    def _tidy(self) -> None:
        channels = self._network.channels
        if len(self._since) > 2 * len(channels) + _GONE:
            self._since = {name: at for name, at in self._since.items() if name in channels}

    def channel(self, ctx: Context, name: str) -> View:
        """What the asker may read by HISTORY, else 442. Of a channel that is not there, what was said in the open."""
        channel = self._network.channel(name)
        if channel is None:
            return View(fold(name))
        if ctx.user in channel.members:
            return self.member(channel, ctx.user)
        if not channel.is_open or (channel.listed("b", ctx.user) and not channel.listed("e", ctx.user)):
            raise Refused(Numeric.ERR_NOTONCHANNEL, channel.name)
        return View(fold(channel.name))

    def member(self, channel: Channel, user: User, events: bool = False) -> View:
        """What a member may read."""
        held = channel.members[user]
        ranks = ("", *(rank for rank in "@+" if reaches(held, rank)))
        place = fold(channel.name)
        begun = self._since.get(place)
        since = channel.created if begun is None else max(channel.created, begun.at)
        return View(place, ranks, round(since * MICROSECONDS), events=events)

    def includes(self, entry: Entry) -> bool:
        """Is it from after the channel's beginning, where it was closed? Numbers go on where a clock is set back."""
        begun = self._since.get(entry.place) if entry.closed else None
        return begun is None or entry.epoch != begun.epoch or entry.seq >= begun.seq

    def reader(self, user: User) -> Reader:
        """Whose private conversations the user may read."""
        if user.account is not None:
            return Reader(party(user.account, user.nick), None)
        return Reader(party(None, user.nick), self._begun[fold(user.nick)])

    def private(self, ctx: Context, nick: str, events: bool = False) -> Readable:
        """What the asker and whoever has this nick, or is known by it, said to each other."""
        reader = self.reader(ctx.user)
        places = (conversation(reader.party, other) for other in _parties(ctx, nick))
        views = tuple(View(place, since=reader.since, events=events) for place in places)
        # Which accounts another server has is told only of users who are there.
        is_elsewhere = owner(fold(nick)) != ctx.config.short_name and ctx.network.user(nick) is None
        return Readable(views, reader, nick if is_elsewhere else "")

    def name_of(self, ctx: Context, reader: Reader, talk: Talk) -> str:
        """The nick under which the asker can ask for a talk: the other's last one, or one that is the account's own."""
        one, _, two = talk.place.partition(" ")
        other = two if one == reader.party else one
        if not two or other in _parties(ctx, talk.name):
            return talk.name
        account = ctx.parts.accounts.get(other.removeprefix(ACCOUNT)) if other.startswith(ACCOUNT) else None
        names = () if account is None else (account.name, *account.nicks)
        nicks = (f"{prefix}{name}" for name in names for prefix in ("", f"{ctx.config.short_name}-"))
        return next((nick for nick in nicks if _is_nick(ctx, nick) and other in _parties(ctx, nick)), talk.name)


def _is_nick(ctx: Context, nick: str) -> bool:
    is_valid = valid_nick(nick, ctx.config.limits.nick_length)
    return is_valid and (ctx.config.nick_prefix == "off" or nick.startswith(f"{ctx.config.short_name}-"))


def _parties(ctx: Context, nick: str) -> list[str]:
    """Who a nick may mean: who has it now; where nobody does the account that it belongs to, then a guest."""
    user = ctx.network.user(nick)
    if user is not None:
        return [party(user.account, user.nick)]
    owner = ctx.parts.accounts.owner_of(nick)
    guest = party(None, nick)
    return [guest] if owner is None else [party(owner.name, nick), guest]
