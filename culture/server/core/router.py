"""The router: applies an event, sends it to local sessions, calls the subscribers.

``publish`` is the only way to change the network. It applies the event to the state, renders it once per flavour and
queues the same bytes for each session that shall see it, then calls the subscribers (skills, links to servers). All of
it happens within one turn and without waiting, so no event interleaves with another. A subscriber that publishes an
event of its own does so with ``follow``, which keeps ``by`` and ``concerned`` for the subscribers after it.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from culture.protocol.message import Message
from culture.protocol.modes import ModeChange
from culture.server.core.batches import MessageBatch
from culture.server.core.encode import wire
from culture.server.core.ids import Ids
from culture.server.core.network import Network
from culture.server.core.render import LONG, SAID, Flavour, render, render_said
from culture.server.core.session import Session
from culture.server.core.state import Channel, User, reaches
from culture.server.errors import is_end
from culture.server.events import (
    Arrived,
    Event,
    Joined,
    Kicked,
    Left,
    Linked,
    ModeSet,
    Parted,
    Renamed,
    Said,
    ToldOpen,
    Unlinked,
    nick_of,
)
from culture.server.net.poller import Flushable

log = logging.getLogger(__name__)

Subscriber = Callable[[Any], None]
LF = "\n"
REPEATABLE = "__repeatable__"
_REGROUP = (Joined, Parted, Kicked, Left)


class Router:
    """Applies events, sends them to the local sessions that see them, and calls the subscribers."""

    def __init__(self, name: str, network: Network, ids: Ids, dirty: list[Flushable]) -> None:
        self.name = name
        self.network = network
        self.ids = ids
        self._subscribers: dict[type, list[Subscriber]] = {}
        self._failed: dict[Subscriber, Callable[[BaseException], None]] = {}
        self.by: Session | None = None  # while subscribers run: the session that caused the event
        self.concerned: tuple[str, ...] = ()  # on Left or Renamed: the names of the user's channels
        self.depth = 0  # number of nested ``follow`` calls
        self.batch: MessageBatch | None = None  # the batch that lines are sent in
        self.sessions: dict[User, list[Session]] = {}
        self.attached = 0
        self.dirty = dirty
        # Sessions in a channel by flavour; made on the first message after members or capabilities changed.
        self._hearers: dict[Channel, dict[int, list[Session]]] = {}

    def subscribe(
        self, subscriber: Subscriber, *kinds: type, failed: Callable[[BaseException], None] | None = None
    ) -> None:
        """Call ``subscriber`` with each event of these kinds, after the event was sent to clients.

        ``failed`` is called with an error of the subscriber; without it, the error is logged.
        """
        for kind in kinds:
            self._subscribers[kind] = [*self._subscribers.get(kind, ()), subscriber]
        if failed is not None:
            self._failed[subscriber] = failed

    def prefer(self, subscribers: list[Subscriber]) -> None:
        """Call these subscribers, in this order, before all others of the same kinds of events."""
        for kind, present in self._subscribers.items():
            first = [each for each in subscribers if each in present]
            self._subscribers[kind] = [*first, *(each for each in present if each not in first)]

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Stop calling a subscriber."""
        for kind, subscribers in self._subscribers.items():
            self._subscribers[kind] = [each for each in subscribers if each != subscriber]
        self._failed.pop(subscriber, None)

    def attach(self, session: Session, user: User) -> None:
        """Make a session that was not attached to a user one of the sessions of this user."""
        session.user = user
        self.attached += 1
        self.sessions.setdefault(user, []).append(session)
        self.regroup(user)

    def detach(self, session: Session) -> bool:
        """Remove the session from its user; return True if it was the user's last session."""
        user = session.user
        if user is None or session not in self.sessions.get(user, ()):
            return False
        self.sessions[user].remove(session)
        self.attached -= 1
        self.regroup(user)
        if not self.sessions[user]:
            del self.sessions[user]
            return True
        return False

    def regroup(self, user: User) -> None:
        """Discard the cached sessions of the user's channels, after the user's sessions changed."""
        for channel in user.channels:
            self._hearers.pop(channel, None)

    def publish(self, event: Event, by: Session | None = None) -> None:
        """Apply an event, send it to the sessions that see it, and call the subscribers.

        ``by`` is the session that caused the event; its own chat message is sent to it only with ``echo-message``.
        """
        if isinstance(event, Said):
            if event.target[0] == "#":
                self._say(event, by)
            else:
                self._say_to_user(event, by)
        else:
            self._happen(event)
        kind = type(event)
        subscribers = self._subscribers.get(kind)
        if subscribers is None:
            return
        self.by = by
        for subscriber in subscribers:
            # Skip a subscriber that was removed by one before it.
            if self._subscribers[kind] is not subscribers and subscriber not in self._subscribers[kind]:
                continue
            try:
                subscriber(event)
            except BaseException as error:
                self._report(subscriber, kind, error)
        self.by = None

    def _happen(self, event: Event) -> None:
        """Apply an event that is no chat message, and send it to the users who see it."""
        # Afterwards the user may be gone, or have another nick.
        account = self._account(event)
        if isinstance(event, Left | Renamed):
            self.concerned = self._channels_of(event)
        if isinstance(event, Joined | Left) and (user := self._elsewhere(event)) is not None:
            self._come_or_go(event, user, account)
            return
        if isinstance(event, _REGROUP):
            self._forget_hearers(event)
        self._show(event, self.network.apply(event), account)
        if isinstance(event, Joined):
            self._show_rank(event)

    def _elsewhere(self, event: Joined | Left) -> User | None:
        """Return the user who joins a channel or quits, if the user is connected to another server.

        None if the user has sessions here.
        """
        user = self.network.user(nick_of(event.source))
        return user if user not in self.sessions else None

    def _come_or_go(self, event: Joined | Left, user: User, account: str | None) -> None:
        """Apply a join or quit of a user of another server, and send it to the sessions that see it.

        Only members with sessions here are looked up, which is quick in large channels. ``account``: the user's.
        """
        before = list(user.channels)
        self.network.apply(event)
        channels = (
            before if isinstance(event, Left) else [channel for channel in user.channels if channel not in before]
        )
        for channel in channels:
            if not channel.members:
                self._hearers.pop(channel, None)
        present = [self.hearing(channel) for channel in channels if channel.members]
        sessions = present[0] if len(present) == 1 else dict.fromkeys(chain.from_iterable(present))
        self._show_in(event, sessions, account)
        if isinstance(event, Joined) and channels:
            self._show_rank(event)

    def _show_rank(self, event: Joined) -> None:
        """Send the other members MODE lines with the rank of a joining user: JOIN cannot show it."""
        channel, user = self.network.channel(event.channel), self.network.user(nick_of(event.source))
        rank = channel.members.get(user) if channel is not None and user is not None else None
        if channel is not None and user is not None and rank:
            ranks = tuple(ModeChange(True, mode, user.nick) for mode in rank)
            others = [session for session in self.hearing(channel) if session.user is not user]
            self._show_in(ModeSet(event.id, self.name, channel.name, ranks), others, None)

    def hearing(self, channel: Channel) -> Iterator[Session]:
        """Return the sessions on this server of a channel's members."""
        hearers = self._hearers.get(channel)
        if hearers is None:
            hearers = self._hearers[channel] = self._group(channel.members)
        return chain.from_iterable(hearers.values())

    def repeat(self, event: Event | ToldOpen) -> None:
        """Send an earlier event again, only to the subscribers that are marked as repeatable."""
        for subscriber in self._subscribers.get(type(event), ()):
            if getattr(subscriber, REPEATABLE, False):
                try:
                    subscriber(event)
                except BaseException as error:
                    self._report(subscriber, type(event), error)

    def follow(self, event: Event) -> None:
        """Publish a further event while subscribers are called with an earlier one.

        The subscribers that the earlier event has not reached yet still get it.
        """
        outer_by, outer_channels = self.by, self.concerned
        self.depth += 1
        try:
            self.publish(event)
        finally:
            self.depth -= 1
            self.by, self.concerned = outer_by, outer_channels

    @contextmanager
    def within(self, batch: MessageBatch) -> Iterator[None]:
        """Within this context, send the lines of all published events as parts of the batch."""
        outer, self.batch = self.batch, batch
        try:
            yield
        finally:
            self.batch = outer

    def _report(self, subscriber: Subscriber, kind: type, error: BaseException) -> None:
        if is_end(error):
            raise error
        failed = self._failed.get(subscriber)
        if failed is not None:
            failed(error)
        else:
            log.error("a subscriber failed on %s", kind.__name__, exc_info=error)

    def _channels_of(self, event: Left | Renamed) -> tuple[str, ...]:
        user = self.network.user(nick_of(event.source))
        return tuple(sorted(channel.name for channel in user.channels)) if user is not None else ()

    def _forget_hearers(self, event: Joined | Parted | Kicked | Left) -> None:
        if isinstance(event, Left):
            user = self.network.user(nick_of(event.source))
            channels: Iterable[Channel | None] = user.channels if user is not None else ()
        else:
            channels = (self.network.channel(event.channel),)
        for channel in channels:
            if channel is not None:
                self._hearers.pop(channel, None)

    def _show(self, event: Event, users: Iterable[User], account: str | None) -> None:
        self._show_in(event, (session for user in users for session in self.sessions.get(user, ())), account)

    def _show_in(self, event: Event, sessions: Iterable[Session], account: str | None) -> None:
        lines: dict[int, bytes | None] = {}
        batch = self.batch
        for session in sessions:
            wants = session.wants
            if wants not in lines:
                lines[wants] = render(event, wants, account)
            line = lines[wants]
            if line is None:
                continue
            if batch is not None:
                batch.send(session, line)
            else:
                session.send(line)

    def show(self, event: Event, users: Iterable[User], wanting: int) -> None:
        """Send an event to more users than see it anyway, if their client has a capability.

        ``wanting``: the capability's bit in ``Flavour``. Sessions without it get nothing.
        """
        sessions = (session for user in users for session in self.sessions.get(user, ()))
        self.show_in(event, [session for session in sessions if session.wants & wanting])

    def show_in(self, event: Event, sessions: Iterable[Session]) -> None:
        """Send an event to these sessions, to each as its capabilities demand."""
        account = self._account(event)
        for session in sessions:
            line = render(event, session.wants, account)
            if line is not None:
                session.send(line)

    def _account(self, event: Event) -> str | None:
        user = None if isinstance(event, Arrived | Linked | Unlinked) else self.network.user(nick_of(event.source))
        return user.account if user is not None else None

    def _say(self, message: Said, by: Session | None) -> None:
        channel = self.network.channel(message.target)
        if channel is None:
            return
        hearers = self._hearers.get(channel)
        if hearers is None:
            hearers = self._hearers[channel] = self._group(channel.members)
        if message.status or message.lines:
            hearers = self._hearers_of(message, channel)
        dirty = self.dirty
        for flavour, sessions in hearers.items():
            line = render_said(message, flavour)
            if line is None:
                continue
            for session in sessions:
                queue = session.queue
                if not queue:
                    dirty.append(session.connection)
                queue.append(line)
        if by is not None and by.user is not None:
            heard = _hears(channel, by.user, message.status)
            if heard and not by.echo:
                by.queue.pop()
            elif by.echo and not heard:
                self._send(by, message)
        if message.mentions:
            self._call(message)

    def _say_to_user(self, message: Said, by: Session | None) -> None:
        user = self.network.user(message.target)
        if user is None:
            return
        for session in self.sessions.get(user, ()):
            line = render_said(message, session.wants & LONG if message.lines else session.flavour)
            if line is not None:
                session.push(line)
        if by is None or by.user is None:
            return
        # A session gets the message of another session of the same user; its own only with echo-message.
        own = self.sessions[by.user]
        if by.echo or len(own) > 1:
            for session in own:
                if session.echo if session is by else by.user is not user:
                    self._send(session, message)

    def _send(self, session: Session, message: Said) -> None:
        line = render_said(message, session.wants & LONG if message.lines else session.flavour)
        if line is not None:
            session.send(line)

    def _call(self, message: Said) -> None:
        """Send a notice to each mentioned user whose client does not support the mentions tag."""
        text = f"{nick_of(message.source)} mentioned you in {message.target}: {message.text.replace(LF, ' ')}"
        for nick in message.mentions:
            user = self.network.user(nick)
            for session in self.sessions.get(user, ()) if user is not None else ():
                if not session.flavour & Flavour.MENTIONS:
                    session.send(wire(Message("NOTICE", (nick, f"{nick}: {text}"), self.name)))

    def _hearers_of(self, message: Said, channel: Channel) -> dict[int, list[Session]]:
        """Return the local sessions that get a message to a channel, grouped by flavour.

        The flavour is the capabilities that change how the message looks.
        """
        members = channel.members.items()
        users = (user for user, held in members if not message.status or reaches(held, message.status))
        return self._group(users, LONG if message.lines else SAID)

    def _group(self, users: Iterable[User], concerned: int = SAID) -> dict[int, list[Session]]:
        groups: dict[int, list[Session]] = {}
        for user in users:
            for session in self.sessions.get(user, ()):
                groups.setdefault(session.wants & concerned, []).append(session)
        return groups


def _hears(channel: Channel, user: User, status: str) -> bool:
    """Return whether a user gets a message to the members of the rank ``status`` ("": to all)."""
    held = channel.members.get(user)
    return held is not None and (not status or reaches(held, status))
