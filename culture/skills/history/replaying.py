"""What was said before somebody came, for clients that cannot ask for it themselves."""

from collections.abc import Sequence
from typing import NamedTuple

from culture.protocol.names import fold
from culture.server.core.ids import MICROSECONDS, EventId
from culture.server.core.session import Session
from culture.server.core.session_lifecycle import DISCONNECTED
from culture.server.core.state import Channel, User
from culture.server.events import AwaySet, Joined, Left, Said, nick_of
from culture.server.skill import Host, hook
from culture.skills.history.access import Access
from culture.skills.history.archive import Archive
from culture.skills.history.chathistory import CAP
from culture.skills.history.entry import Entry
from culture.skills.history.live import Arrivals, Live
from culture.skills.history.playback import replayed
from culture.skills.history.store import Kept, TooSlow, Unavailable, View, position_at

_CTCP = "\x01"
_ACTION = "\x01ACTION "
_TRIES = 3
_MOST_LIVE = 5_000  # messages that may arrive while a replay is read, before it is shorter than it might be


class _Part(NamedTuple):
    """A channel, what its reader may see of it, and what the reader is shown live from now on."""

    channel: Channel
    view: View
    live: Live


class _Replay(NamedTuple):
    """What is to be shown of which channels, behind a position, to whom."""

    parts: Sequence[_Part]
    after: int | None
    sessions: Sequence[Session]


class Replaying:
    """Shows the last messages of a channel to whoever comes in, or comes back to it.

    Who comes back after having been gone is shown what came meanwhile. A further program of somebody who is here, of
    which nobody can tell what it has seen, is shown the last messages as if it came in.

    The messages are read a moment later. Those that arrive in between are shown live, and left out of the replay
    whatever their time: a message that a link brings after a split is older than the JOIN, one of a server whose clock
    is ahead is newer, and either may have arrived before or after it (decision 8).
    """

    def __init__(self, host: Host, archive: Archive, access: Access, most: int) -> None:
        self._host = host
        self._archive = archive
        self._access = access
        self._most = most
        self._arrivals = Arrivals()
        self._gone: dict[str, EventId] = {}  # since when those who stay without a session are not connected
        self._under_way: dict[tuple[User, str], _Replay | None] = {}  # by channel; and what comes after it
        host.when_attached(self.attached)

    @hook(Joined)
    def joined(self, event: Joined) -> None:
        """Somebody came in by a command of theirs; topic and members are shown before anything is read."""
        network = self._host.network
        channel, user = network.channel(event.channel), network.user(nick_of(event.source))
        if channel is not None and user is not None and self._host.by is not None:
            self._follow(user, channel, self._wanted(user, channel))

    @hook(Said)
    def said(self, event: Said) -> None:
        """A message that replays under way leave out; called for every one, so it does no more than it must."""
        if self._arrivals.channels:
            self._arrivals.note(fold(event.target), event.id.msgid)

    @hook(AwaySet)
    def lost(self, event: AwaySet) -> None:
        """Somebody who is always here lost the last session."""
        if self._host.by is None and event.message == DISCONNECTED:
            self._gone[fold(nick_of(event.source))] = event.id

    def attached(self, session: Session) -> None:
        """One more session of somebody who is here, with or without others."""
        user = session.user
        if user is None:
            return
        since = self._gone.pop(fold(user.nick), None)
        if wants_replay(session) and self._most:
            channels = sorted(user.channels, key=lambda channel: channel.name)
            parts = [self._part(channel, user) for channel in channels]
            after = None if since is None else _position(since)
            self._host.start(self._replay(_Replay(parts, after, [session])))

    @hook(Left)
    def left(self, event: Left) -> None:
        """Somebody is gone for good."""
        self._gone.pop(fold(nick_of(event.source)), None)

    def _wanted(self, user: User, channel: Channel) -> _Replay | None:
        sessions = [session for session in self._host.sessions(user) if wants_replay(session)]
        if not sessions or not self._most:
            return None
        return _Replay([self._part(channel, user)], None, sessions)

    def _part(self, channel: Channel, user: User) -> _Part:
        return _Part(channel, self._access.member(channel, user), self._arrivals.follow(fold(channel.name)))

    def _follow(self, user: User, channel: Channel, replay: _Replay | None) -> None:
        """Show it; to whoever comes and goes again and again, one after the other, and only the last of those."""
        key = (user, fold(channel.name))
        if replay is None:
            return
        if key in self._under_way:
            _end(self._under_way[key])
            self._under_way[key] = replay
        else:
            self._under_way[key] = None
            self._host.start(self._one_by_one(key, replay))

    async def _one_by_one(self, key: tuple[User, str], replay: _Replay | None) -> None:
        try:
            while replay is not None:
                await self._replay(replay)
                replay, self._under_way[key] = self._under_way[key], None
        finally:
            _end(self._under_way.pop(key))

    async def _replay(self, replay: _Replay) -> None:
        try:
            for part in replay.parts:
                if all(session.ended for session in replay.sessions):
                    return
                read = await self._read(part, replay.after)
                found = [each for each in read if self._access.includes(each.entry) and not is_request(each.entry)]
                if found:
                    with self._host.turn():
                        for session in replay.sessions:
                            self._show(session, part.channel, found)
        finally:
            _end(replay)

    async def _read(self, part: _Part, after: int | None) -> list[Kept]:
        """The last messages that arrived before the replay began."""
        view, live, most = part.view, part.live, self._most
        found: list[Kept] = []
        try:
            for _ in range(_TRIES):
                # Those that were shown live may be newer than the ones that are wanted; more come while this is read.
                limit = most + min(2 * len(live), _MOST_LIVE)
                read = await self._archive.read(lambda store: store.page(view, after, None, limit, newest=True))  # noqa: B023
                shown = live.msgids()
                found = [each for each in read if each.entry.msgid not in shown]
                if len(found) >= most or len(read) < limit:
                    break
        except (Unavailable, TooSlow):
            return []
        return found[-most:]

    def _show(self, session: Session, channel: Channel, found: Sequence[Kept]) -> None:
        if not session.ended and session.user in channel.members:
            session.pull(replayed(session, self._host.name, channel.name, found))


def wants_replay(session: Session) -> bool:
    """Can it tell by the time that a line is old, and not ask by itself?"""
    enabled = session.caps.enabled
    return "server-time" in enabled and CAP not in enabled


def is_request(entry: Entry) -> bool:
    """Would a client answer it by itself, to somebody who asked long ago?"""
    return entry.text.startswith(_CTCP) and not entry.text.startswith(_ACTION)


def _end(replay: _Replay | None) -> None:
    """Nobody waits for it any more."""
    for part in replay.parts if replay is not None else ():
        part.live.end()


def _position(stamp: EventId) -> int:
    return position_at(round(stamp.at * MICROSECONDS))
