"""Logins under way, and limits on failed logins and new accounts."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar

from culture.config.model import ServerLimits
from culture.lib.ratelimit import SlidingWindow
from culture.runtime import REAL, Runtime
from culture.server.auth.credential_check import CredentialCheck, Done, LoginFailed
from culture.server.auth.sasl import Exchange, Tokens
from culture.server.auth.sasl_framing import LONGEST_MESSAGE, SaslInbox
from culture.server.core.session import Session
from culture.server.net.connection_limits import group_of

Outcome = TypeVar("Outcome")
_AT_ONCE = 2  # checks at a time in each pool

TOO_MANY = "Too many failed logins, try again in a minute"


class SaslLogin:
    """One SASL exchange of a session."""

    __slots__ = ("exchange", "has_failed", "inbox")

    def __init__(self, exchange: Exchange, longest: int = LONGEST_MESSAGE) -> None:
        self.exchange = exchange
        self.inbox = SaslInbox(longest)
        self.has_failed = False  # the client was sent the reason; its answer ends the exchange


class _CheckPool:
    """A few threads for login checks: many logins at once must not take every processor."""

    def __init__(self, name: str, *, runtime: Runtime) -> None:
        self.turns = asyncio.Semaphore(_AT_ONCE)
        self._threads = runtime.pool(_AT_ONCE, name)

    def run(self, check: Callable[[], Outcome]) -> Awaitable[Outcome]:
        return asyncio.get_running_loop().run_in_executor(self._threads, check)

    def stop(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class Logins:
    """The SASL exchanges by session; failed logins and new accounts by origin of a session."""

    def __init__(self, tokens: Tokens | None = None, *, runtime: Runtime = REAL) -> None:
        self.under_way: dict[Session, SaslLogin] = {}
        self.tokens = tokens
        self.no_password = runtime.token_hex(32)  # which nobody knows: compared where there is none
        self._passwords = _CheckPool("login", runtime=runtime)
        # An issuer that does not answer must keep no password waiting.
        self._tokens = _CheckPool("token", runtime=runtime)
        self._processes = _CheckPool("process", runtime=runtime)
        self._failures = SlidingWindow()
        self._new_accounts = SlidingWindow()

    def check(self, run: Callable[[], Outcome]) -> Awaitable[Outcome]:
        """Run slow work with a password (0.2 s of hashing) in a thread, and return its result.

        The pool has few threads; further work waits.
        """
        return self._passwords.run(run)

    def look(self, run: Callable[[], Outcome]) -> Awaitable[Outcome]:
        """Run a lookup of local processes in a thread, and return its result.

        It waits for no password check: the pool is another.
        """
        return self._processes.run(run)

    async def try_password(
        self, session: Session, check: CredentialCheck, limits: ServerLimits, now: Callable[[], float]
    ) -> Done | LoginFailed:
        """Run the check of a password or token when a thread is free, and count it if it fails.

        Returns a LoginFailed without a check if the session's origin (address or local user) had too many failures,
        also while this check waited; else many connections at once would have one try each. ``now`` returns the
        present time.
        """
        pool = self._tokens if check.asks_elsewhere else self._passwords
        async with pool.turns:
            if session.ended or not self.may_try(session, limits, now()):
                return LoginFailed(TOO_MANY)
            outcome = await pool.run(check.run)
            if isinstance(outcome, LoginFailed):
                self.fail(session, now())
            return outcome

    def stop(self) -> None:
        """Stop the threads that run checks."""
        self._passwords.stop()
        self._tokens.stop()
        self._processes.stop()

    def forget(self, session: Session) -> None:
        """Drop the SASL exchange of a session that has ended or logged in."""
        self.under_way.pop(session, None)

    def fail(self, session: Session, now: float) -> None:
        """Count a failed login of the session's origin (address or local user) at the time ``now``."""
        self._failures.add(_who(session), now)

    def may_try(self, session: Session, limits: ServerLimits, now: float) -> bool:
        """Return whether the session's origin (address or local user) may try another login.

        ``limits``: say how many failures are allowed in which time; ``now``: seconds since 1970.
        """
        return self._failures.count(_who(session), limits.failed_logins_period, now) < limits.failed_logins

    def may_make_account(self, session: Session, limits: ServerLimits, now: float) -> bool:
        """Count a new account of the session's origin (address or local user) and return True.

        Returns False, without counting, if the origin has made as many as ``limits`` allows. ``now``: seconds since
        1970.
        """
        who = _who(session)
        if self._new_accounts.count(who, limits.new_accounts_period, now) >= limits.new_accounts:
            return False
        self._new_accounts.add(who, now)
        return True

    def forget_tries(self, limits: ServerLimits, now: float) -> None:
        """Drop the records of failed logins and new accounts that are too old to count.

        ``limits``: say how long they count; ``now``: seconds since 1970.
        """
        self._failures.prune(limits.failed_logins_period, now)
        self._new_accounts.prune(limits.new_accounts_period, now)


def _who(session: Session) -> Hashable:
    """Return to whom login attempts are counted: an address, a local uid, or the session itself.

    Our own uid can read the accounts anyway, and one broken program of ours must not lock out the others, so there each
    connection counts for itself. A browser's page does not know what its user knows, so WebSockets count together.
    """
    if not session.is_local:
        return group_of(session.host)
    uid = session.connection.peer_uid()
    return session if uid == os.getuid() and not session.is_websocket else uid
