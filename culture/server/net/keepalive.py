"""Keepalive: PING silent clients, end those that stay silent or never register."""

from collections.abc import Iterable

from culture.config.model import ServerLimits
from culture.protocol.message import Message
from culture.server.core.session import Session
from culture.server.net.connection import ClientConnection


def period(limits: ServerLimits) -> float:
    """Return the seconds between two checks of all sessions: a sixth of the shortest time limit."""
    shortest = min(
        limits.ping_after,
        limits.ping_timeout - limits.ping_after,
        limits.registration_timeout,
        limits.multiline_timeout,
    )
    return max(shortest / 6, 0.02)


def check(sessions: Iterable[Session], limits: ServerLimits, name: str, now: float) -> None:
    """Send PING to silent sessions; end those that were silent or unregistered for too long.

    ``limits``: say how long that is; ``name``: the server's name; ``now``: the present monotonic time.
    """
    for session in sessions:
        silent = now - session.connection.last_active
        if session.user is None and now - session.opened >= limits.registration_timeout:
            session.close("Registration timed out")
        elif silent >= limits.ping_timeout:
            session.close(f"Ping timeout: {round(silent)} seconds")
        elif silent < limits.ping_after:
            session.pinged = False
        elif session.user is not None and not session.pinged:
            session.pinged = True
            session.send(bytes(Message("PING", (name,), name)))


def reap(closing: Iterable[ClientConnection], now: float, patience: float) -> list[ClientConnection]:
    """Close the ended connections that clients kept open for ``patience`` seconds.

    Returns those of ``closing`` that are closed now.
    """
    gone = []
    for connection in closing:
        if connection.is_open and now - connection.last_active >= patience:
            connection.abort()
        if not connection.is_open:
            gone.append(connection)
    return gone
