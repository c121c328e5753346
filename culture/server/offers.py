"""Capabilities that are offered no more (IRCv3 cap-notify)."""

from collections.abc import Collection

from culture.protocol.caps import CAP_NOTIFY
from culture.protocol.message import Message
from culture.server.context import Parts
from culture.server.session import Session
from culture.server.wire import wire


def withdraw(parts: Parts, caps: Collection[str]) -> None:
    """Take capabilities from every session that has them, and tell those who want to know: ``CAP DEL``."""
    if not caps:
        return
    with parts.turn():
        for session in parts.sessions:
            if not session.caps.enabled.isdisjoint(caps):
                _take(parts, session, caps)
            if CAP_NOTIFY in session.caps.enabled:
                nick = session.nick if session.user is None else session.user.nick
                words = (nick or "*", "DEL", " ".join(sorted(caps)))
                session.push(wire(Message("CAP", words, parts.router.name)))


def _take(parts: Parts, session: Session, caps: Collection[str]) -> None:
    session.caps.withdraw(caps)
    session.enable(session.caps.enabled)
    if session.user is not None:
        parts.router.regroup(session.user)
