"""What was said before somebody came, for clients that cannot ask for it themselves."""

from collections.abc import Sequence

from culture.server.events import Joined, nick_of
from culture.server.session import Session
from culture.server.skill import Host, hook
from culture.skills.history.access import Access
from culture.skills.history.archive import Archive
from culture.skills.history.chathistory import CAP
from culture.skills.history.entry import MICROSECONDS, Entry
from culture.skills.history.playback import played
from culture.skills.history.store import Kept, TooSlow, Unavailable, View, position_at

_CTCP = "\x01"
_ACTION = "\x01ACTION "


class Replaying:
    """Shows the last messages of a channel to whoever comes in."""

    def __init__(self, host: Host, archive: Archive, access: Access, most: int) -> None:
        self._host = host
        self._archive = archive
        self._access = access
        self._most = most

    @hook(Joined)
    def joined(self, event: Joined) -> None:
        """Somebody came in by a command of theirs; topic and members are shown before anything is read."""
        network = self._host.network
        channel, user = network.channel(event.channel), network.user(nick_of(event.source))
        if channel is None or user is None or self._host.by is None or not self._most:
            return
        sessions = [session for session in self._host.sessions(user) if wants_replay(session)]
        if sessions:
            self._host.start(self._replay(event, self._access.member(channel, user), sessions))

    async def _replay(self, event: Joined, view: View, sessions: Sequence[Session]) -> None:
        before = position_at(round(event.id.at * MICROSECONDS))
        try:
            found = await self._archive.read(lambda store: store.page(view, None, before, self._most, newest=True))
        except (Unavailable, TooSlow):
            return
        found = [each for each in found if not is_request(each.entry)]
        if found:
            with self._host.turn():
                for session in sessions:
                    self._show(session, event.channel, found)

    def _show(self, session: Session, name: str, found: Sequence[Kept]) -> None:
        channel = self._host.network.channel(name)
        if not session.ended and channel is not None and session.user in channel.members:
            session.pull(played(session, self._host.name, channel.name, found))


def wants_replay(session: Session) -> bool:
    """Can it tell by the time that a line is old, and not ask by itself?"""
    enabled = session.caps.enabled
    return "server-time" in enabled and CAP not in enabled


def is_request(entry: Entry) -> bool:
    """Would a client answer it by itself, to somebody who asked long ago?"""
    return entry.text.startswith(_CTCP) and not entry.text.startswith(_ACTION)
