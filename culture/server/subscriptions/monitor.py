"""MONITOR subscriptions: the nicks that sessions watch (with extended-monitor)."""

from collections.abc import Callable, Iterable

from culture.protocol.message import Message
from culture.protocol.names import fold
from culture.protocol.numerics import Numeric
from culture.server.core.encode import wire
from culture.server.core.router import Router
from culture.server.core.session import Session
from culture.server.core.state import same
from culture.server.events import AccountSet, Arrived, AwaySet, HostSet, Left, RealnameSet, Renamed, nick_of

_ROOM = 300  # bytes of a line for the list of nicks


class Monitors:
    """The nicks that each session watches by MONITOR; tells the session when these come and go."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._watched: dict[Session, dict[str, str]] = {}  # folded nick → as the session wrote it
        self._watchers: dict[str, dict[Session, None]] = {}
        self.online: Callable[[Session, str], None] = lambda _session, _nick: None
        router.subscribe(self._arrived, Arrived)
        router.subscribe(self._left, Left)
        router.subscribe(self._renamed, Renamed)
        router.subscribe(self._changed, AwaySet, AccountSet, RealnameSet, HostSet)

    def watched(self, session: Session) -> list[str]:
        """Return the nicks that this session watches, spelled as the client wrote them."""
        return list(self._watched.get(session, {}).values())

    def watches(self, session: Session, nick: str) -> bool:
        """Return whether this session watches this nick by MONITOR."""
        return session in self._watchers.get(fold(nick), ())

    def add(self, session: Session, nick: str, limit: int) -> bool:
        """Let the session watch a nick; return False if it already watches ``limit`` nicks."""
        nicks = self._watched.setdefault(session, {})
        folded = fold(nick)
        if folded not in nicks and len(nicks) >= limit:
            return False
        nicks.setdefault(folded, nick)
        self._watchers.setdefault(folded, {})[session] = None
        return True

    def remove(self, session: Session, nick: str) -> None:
        """End the session's watch of a nick."""
        folded = fold(nick)
        if self._watched.get(session, {}).pop(folded, None) is None:
            return
        if not self._watched[session]:
            del self._watched[session]
        watchers = self._watchers[folded]
        del watchers[session]
        if not watchers:
            del self._watchers[folded]

    def clear(self, session: Session) -> None:
        """End the session's watch of all nicks; also called when the session ends."""
        for nick in self.watched(session):
            self.remove(session, nick)
        self._watched.pop(session, None)

    def _arrived(self, event: Arrived) -> None:
        self._tell(event.nick, Numeric.RPL_MONONLINE, f"{event.nick}!{event.username}@{event.host}")

    def _left(self, event: Left) -> None:
        nick = nick_of(event.source)
        self._tell(nick, Numeric.RPL_MONOFFLINE, nick)

    def _renamed(self, event: Renamed) -> None:
        old = nick_of(event.source)
        if not same(old, event.new):
            self._tell(old, Numeric.RPL_MONOFFLINE, old)
            self._tell(event.new, Numeric.RPL_MONONLINE, event.new + event.source[len(old) :])

    def _tell(self, nick: str, numeric: Numeric, text: str) -> None:
        for session in list(self._watchers.get(fold(nick), ())):
            if session.user is not None:
                session.send(wire(Message(numeric.code, (session.user.nick, text), self._router.name)))
                if numeric is Numeric.RPL_MONONLINE:
                    self.online(session, nick)

    def _changed(self, event: AwaySet | AccountSet | RealnameSet | HostSet) -> None:
        """Send a change of a user to the sessions that watch the nick but share no channel.

        Only sessions with the capability extended-monitor get it.
        """
        nick = nick_of(event.source)
        watchers = self._watchers.get(fold(nick))
        user = self._router.network.user(nick) if watchers else None
        if user is None or not watchers:
            return
        peers = self._router.network.peers(user)
        far = [each for each in watchers if "extended-monitor" in each.caps.enabled and each.user not in peers]
        self._router.show_in(event, far)


def wrapped(nicks: Iterable[str]) -> Iterable[str]:
    """Yield the nicks joined by commas, in pieces that each fit into a line."""
    line = ""
    for nick in nicks:
        if line and len(line) + len(nick) >= _ROOM:
            yield line
            line = nick
        else:
            line = f"{line},{nick}" if line else nick
    if line:
        yield line
