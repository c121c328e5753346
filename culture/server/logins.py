"""Logging in: exchanges under way, and wrong passwords that were one too many."""

import os
from collections import deque
from collections.abc import Hashable

from culture.config.model import Limits
from culture.server.accounts.framing import Inbox
from culture.server.accounts.sasl import Exchange
from culture.server.session import Session


class Login:
    """One SASL exchange of a session."""

    __slots__ = ("exchange", "inbox")

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.inbox = Inbox()


class Logins:
    """The exchanges by session, and the failures by whoever failed."""

    def __init__(self) -> None:
        self.under_way: dict[Session, Login] = {}
        self._failures: dict[Hashable, deque[float]] = {}

    def forget(self, session: Session) -> None:
        """The session is gone, or its exchange over."""
        self.under_way.pop(session, None)

    def fail(self, session: Session, now: float) -> None:
        """Note a failed login."""
        self._failures.setdefault(_who(session), deque()).append(now)

    def may_try(self, session: Session, limits: Limits, now: float) -> bool:
        """Are there tries left?"""
        failures = self._failures.get(_who(session))
        if failures is None:
            return True
        while failures and failures[0] <= now - limits.failed_logins_period:
            failures.popleft()
        if not failures:
            del self._failures[_who(session)]
        return len(failures) < limits.failed_logins

    def forget_failures(self, limits: Limits, now: float) -> None:
        """Let go of failures that no longer count."""
        for who, failures in list(self._failures.items()):
            if not failures or failures[-1] <= now - limits.failed_logins_period:
                del self._failures[who]


def _who(session: Session) -> Hashable:
    """Another machine, or another user of this one. Our own user can read the accounts anyway, and one wrong
    program of theirs must not lock out the others, so there each connection counts by itself."""
    if not session.is_local:
        return session.host
    uid = session.connection.peer_uid()
    return session if uid == os.getuid() else uid
