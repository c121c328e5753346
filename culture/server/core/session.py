"""A session: one client connection, its capabilities, its login and its user."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from culture.protocol.caps import Negotiation
from culture.protocol.message import NO_TAGS, Message
from culture.server.auth.accounts import Account
from culture.server.core.encode import wire
from culture.server.core.render import SAID, flavour_of
from culture.server.core.state import User
from culture.server.net.connection import ClientConnection
from culture.server.net.poller import Flushable

if TYPE_CHECKING:  # it loads OpenSSL, which a server without TLS does not need
    from culture.server.net.tls import TlsLayer

log = logging.getLogger(__name__)


class Session:
    """A client connection with a user, or one that is still registering.

    All output for the client goes through ``queue``. Whoever appends the first line of a turn to it also puts the
    connection on the list of those to write at the end of the turn, as ``send`` does.
    """

    __slots__ = (
        "_dirty",
        "_ended",
        "_pull_limit",
        "_pulled",
        "_rows",
        "account",
        "acting",
        "caps",
        "connection",
        "echo",
        "ended",
        "flavour",
        "host",
        "idle",
        "is_local",
        "is_websocket",
        "login_tags",
        "nick",
        "not_owner",
        "opened",
        "password",
        "pinged",
        "place",
        "queue",
        "realname",
        "spoke",
        "tls",
        "user",
        "username",
        "waiting",
        "wants",
    )

    def __init__(
        self,
        connection: ClientConnection,
        dirty: list[Flushable],
        host: str,
        at: float,
        pull_limit: int,
        ended: Callable[["Session", str], None],
    ) -> None:
        self.connection = connection
        self.queue = connection.queue
        self._dirty = dirty
        self._ended = ended
        self._pull_limit = pull_limit
        self._pulled = 0  # bytes of answers since the send queue was last empty
        self._rows: Iterator[bytes] | None = None
        self.host = host
        self.is_local = host.startswith("127.") or host == "0::1"
        self.opened = connection.last_active
        self.spoke = at
        self.account: Account | None = None  # the account it is logged in to
        self.acting: Account | None = None  # account of the program that logged in on the owner's behalf
        self.not_owner = ""  # why there was no login by local uid, as the client is told
        self.login_tags: Mapping[str, str] = NO_TAGS  # tags of its messages that name the proof of its login
        self.tls: TlsLayer | None = None
        self.is_websocket = False
        self.user: User | None = None
        self.nick: str | None = None
        self.username: str | None = None
        self.realname = ""
        self.password: str | None = None
        self.caps = Negotiation()
        self.wants = 0  # a Flavour
        self.flavour = 0  # the part of it that concerns messages
        self.echo = False
        self.pinged = False
        self.place: str | None = None  # the channel it last spoke in or joined
        self.waiting = False  # for the result of a Later, or for flood control
        self.ended = False
        self.idle: Callable[[], None] | None = None  # called when a pulled answer is complete

    def enable(self, caps: frozenset[str]) -> None:
        """Choose how lines are rendered for the client, by its capabilities ``caps``.

        Called after they changed.
        """
        wants = flavour_of(caps)
        self.wants = int(wants)
        self.flavour = int(wants & SAID)
        self.echo = "echo-message" in caps

    def send(self, line: bytes) -> None:
        """Queue a line for the client.

        It is written at the end of the turn, or captured (``capture``).
        """
        queue = self.queue
        if not queue:
            self._dirty.append(self.connection)
        queue.append(line)

    def push(self, line: bytes) -> None:
        """Queue a line for the client, even while ``capture`` collects all other lines."""
        queue = self.connection.queue
        if not queue:
            self._dirty.append(self.connection)
        queue.append(line)

    @property
    def is_pulling(self) -> bool:
        """Return whether a long answer (``pull``) is still being sent."""
        return self._rows is not None

    @property
    def is_busy(self) -> bool:
        """Return whether the session's next command must wait: for a result, or an answer's end."""
        return self.waiting or self._rows is not None

    def wait(self) -> None:
        """Stop reading from the client and run none of its commands until ``go_on``."""
        self.waiting = True
        self.connection.pause()

    def go_on(self) -> None:
        """Read from the client again, and run its commands, after ``wait``."""
        self.waiting = False
        if self._rows is None:
            self.connection.resume()

    def pull(self, rows: Iterable[bytes]) -> None:
        """Send a long answer piece by piece, as the client reads it.

        The client's next command waits for the end of the answer.
        """
        self._rows = iter(rows) if self._rows is None else chain(self._rows, rows)
        self._produce()

    def _produce(self) -> None:
        try:
            self._produce_rows()
        except Exception:
            log.exception("an answer to %s failed", self.host if self.user is None else self.user.nick)
            self.close("Internal error")

    def _produce_rows(self) -> None:
        rows = self._rows
        most = self._pull_limit - self.connection.waiting
        while rows is not None and self._pulled < most:
            row = next(rows, None)
            if row is None:
                self._finish()
                return
            self.send(row)
            self._pulled += len(row)
        if self.connection.drained is None:
            self.connection.drained = self._produce_more
            self.connection.pause()

    def _produce_more(self) -> None:
        self._pulled = 0
        self._produce()

    def _finish(self) -> None:
        self._rows = None
        if self.connection.drained is not None:
            self.connection.drained = None
            if self.waiting:
                self.connection.pause()
                return
            self.connection.resume()
            if self.idle is not None:
                self.idle()

    def take_rows(self) -> Iterator[bytes]:
        """Stop producing a long answer (``pull``), and return those of its lines that were not sent."""
        rows, self._rows = self._rows, None
        return rows or iter(())

    def capture(self) -> list[bytes]:
        """Return a list in which all lines are collected, instead of being sent, until ``release``."""
        self.queue = []
        return self.queue

    @property
    def is_captured(self) -> bool:
        """Return whether ``capture`` is in force: lines are collected instead of being sent."""
        return self.queue is not self.connection.queue

    def release(self) -> None:
        """End ``capture``: lines are queued for the client again."""
        self.queue = self.connection.queue

    def close(self, reason: str, last_words: str | None = None) -> None:
        """End the session: send ERROR and close the connection.

        The user leaves with ``reason`` unless it has other sessions or is always on. ``last_words``: text of the ERROR.
        """
        if self.ended:
            return
        if self.is_captured:
            captured = self.queue
            self.release()
            self.queue.extend(captured)
        self.send(wire(Message("ERROR", (last_words or f"Closing link: {self.host} ({reason})",))))
        self._rows = None
        self.connection.close()
        self.lost(reason)

    def lost(self, reason: str) -> None:
        """End the session after its connection was closed or lost; the user leaves with ``reason``."""
        if not self.ended:
            self.ended = True
            self._rows = self.idle = None  # break reference cycles
            self._ended(self, reason)
