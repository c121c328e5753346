"""Metadata subscriptions (draft/metadata-3), and metadata set before registration."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from culture.protocol.message import Message
from culture.protocol.names import is_channel
from culture.protocol.numerics import Numeric
from culture.server.core.encode import wire
from culture.server.core.network import Network
from culture.server.core.router import Router
from culture.server.core.session import Session
from culture.server.core.state import Channel, User
from culture.server.events import Joined, MetadataSet, nick_of
from culture.server.subscriptions.monitor import Monitors

CAPABILITY = "draft/metadata-3"


def is_aware(session: Session) -> bool:
    """Return whether the session's client has negotiated the capabilities metadata and batch."""
    return {CAPABILITY, "batch"} <= session.caps.enabled


def key_row(server: str, nick: str, target: str, key: str, value: str | None, visibility: str = "*") -> Message:
    """Return the line that shows the value of a metadata key: 761, or 766 if ``value`` is None.

    ``server`` and ``nick``: source and recipient of the line. ``target``: the user or channel that has the key.
    ``visibility``: who may see the value, ``*`` for everybody.
    """
    if value is None:
        return Message(Numeric.RPL_KEYNOTSET.code, (nick, target, key, Numeric.RPL_KEYNOTSET.text), server)
    return Message(Numeric.RPL_KEYVALUE.code, (nick, target, key, visibility, value), server)


class Subscriptions:
    """The metadata keys that each session subscribed to.

    Changes are sent to subscribers that share a channel with the user or monitor the user.
    """

    def __init__(self, router: Router, network: Network, monitors: Monitors) -> None:
        self._router = router
        self._network = network
        self._keys: dict[Session, dict[str, None]] = {}
        self._hearers: dict[str, dict[Session, None]] = {}
        self._by: Session | None = None
        self.early: dict[Session, dict[str, str]] = {}
        self._monitors = monitors
        monitors.online = self._online
        router.subscribe(self._changed, MetadataSet)
        router.subscribe(self._joined, Joined)

    def watches(self, session: Session, user: User) -> bool:
        """Return whether the session watches this user by MONITOR."""
        return self._monitors.watches(session, user.nick)

    def of(self, session: Session) -> Mapping[str, None]:
        """Return the keys that this session subscribed to, in the order of subscription."""
        return self._keys.get(session, {})

    def add(self, session: Session, key: str) -> None:
        """Subscribe this session to a metadata key."""
        self._keys.setdefault(session, {})[key] = None
        self._hearers.setdefault(key, {})[session] = None

    def remove(self, session: Session, key: str) -> None:
        """End this session's subscription to a metadata key."""
        keys, hearers = self._keys.get(session, {}), self._hearers.get(key, {})
        keys.pop(key, None)
        hearers.pop(session, None)
        if not keys:
            self._keys.pop(session, None)
        if not hearers:
            self._hearers.pop(key, None)

    def clear(self, session: Session) -> None:
        """End all metadata subscriptions of a session."""
        for key in list(self.of(session)):
            self.remove(session, key)

    def forget(self, session: Session) -> None:
        """Drop the subscriptions, and the early metadata, of a session that has ended."""
        self.clear(session)
        self.early.pop(session, None)

    @contextmanager
    def made_by(self, session: Session) -> Iterator[None]:
        """Within this context, do not send changes of metadata to the session, which makes them."""
        self._by = session
        try:
            yield
        finally:
            self._by = None

    def _changed(self, event: MetadataSet) -> None:
        hearers = self._hearers.get(event.key)
        owner = self._network.channel(event.target) if is_channel(event.target) else self._network.user(event.target)
        if not hearers or owner is None:
            return
        name = owner.name if isinstance(owner, Channel) else owner.nick
        self._tell(self._concerned(hearers, owner), name, event.key, event.value, event.visibility)

    def _concerned(self, hearers: Iterable[Session], owner: User | Channel) -> Iterator[Session]:
        for session in hearers:
            user = session.user
            if user is None or session is self._by:
                continue
            if isinstance(owner, Channel):
                if user in owner.members:
                    yield session
            elif user is owner or not user.channels.keys().isdisjoint(owner.channels) or self.watches(session, owner):
                yield session

    def _joined(self, event: Joined) -> None:
        """Send a joining user's metadata to subscribers that had no channel in common with the user."""
        user, channel = self._network.user(nick_of(event.source)), self._network.channel(event.channel)
        if user is None or channel is None or not user.metadata:
            return
        elsewhere = user.channels.keys() - {channel}
        for key, value in user.metadata.items():
            new = [
                session
                for session in self._hearers.get(key, ())
                if (other := session.user) is not None
                and other is not user
                and other in channel.members
                and other.channels.keys().isdisjoint(elsewhere)
                and not self.watches(session, user)
            ]
            self._tell(new, user.nick, key, value)

    def _online(self, session: Session, nick: str) -> None:
        if is_aware(session) and session.user is not None:
            text = f"Ask with METADATA {nick} SYNC"
            later = (session.user.nick, nick, "0", text)
            session.push(wire(Message(Numeric.RPL_METADATASYNCLATER.code, later, self._router.name)))

    def _tell(self, sessions: Iterable[Session], target: str, key: str, value: str | None, seen: str = "*") -> None:
        for session in sessions:
            nick = session.user.nick if session.user is not None else "*"
            session.push(wire(key_row(self._router.name, nick, target, key, value, seen)))
