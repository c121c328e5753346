"""Logging in: exchanges under way, and what somebody has tried too often."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from culture.config.model import ServerLimits
from culture.server.auth.credential_check import CredentialCheck, Done, LoginFailed
from culture.server.auth.sasl import Exchange, Tokens
from culture.server.auth.sasl_framing import LONGEST_MESSAGE, SaslInbox
from culture.server.core.session import Session
from culture.server.core.tally import Tally
from culture.server.net.connection_limits import group_of

Outcome = TypeVar("Outcome")
_AT_ONCE = 2

TOO_MANY = "Too many failed logins, try again in a minute"


class SaslLogin:
    """One SASL exchange of a session."""

    __slots__ = ("exchange", "has_failed", "inbox")

    def __init__(self, exchange: Exchange, longest: int = LONGEST_MESSAGE) -> None:
        self.exchange = exchange
        self.inbox = SaslInbox(longest)
        self.has_failed = False  # and the client was told; its answer ends the exchange


class _Lane:
    """Checks that wait for each other, few at a time: a crowd of logins must not take every processor."""

    def __init__(self, name: str) -> None:
        self.turns = asyncio.Semaphore(_AT_ONCE)
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix=name)

    def run(self, check: Callable[[], Outcome]) -> Awaitable[Outcome]:
        return asyncio.get_running_loop().run_in_executor(self._threads, check)

    def stop(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class Logins:
    """The exchanges by session; failed logins and new accounts by whoever it was."""

    def __init__(self, tokens: Tokens | None = None) -> None:
        self.under_way: dict[Session, SaslLogin] = {}
        self.tokens = tokens
        self._here = _Lane("login")
        self._elsewhere = _Lane("token")  # an issuer that does not answer must keep no password waiting
        self._processes = _Lane("process")
        self._failures = Tally()
        self._new_accounts = Tally()

    def check(self, run: Callable[[], Outcome]) -> Awaitable[Outcome]:
        """Run a slow check beside the turns, few at a time."""
        return self._here.run(run)

    def look(self, run: Callable[[], Outcome]) -> Awaitable[Outcome]:
        """Look at the processes of this machine beside the turns, and beside the checks of passwords."""
        return self._processes.run(run)

    async def try_password(
        self, session: Session, check: CredentialCheck, limits: ServerLimits, now: Callable[[], float]
    ) -> Done | LoginFailed:
        """Check a password or a token when its turn comes, and count it if it is wrong.

        What failed while it waited counts too, else many connections at once would have a try each.
        """
        lane = self._elsewhere if check.asks_elsewhere else self._here
        async with lane.turns:
            if session.ended or not self.may_try(session, limits, now()):
                return LoginFailed(TOO_MANY)
            outcome = await lane.run(check.run)
            if isinstance(outcome, LoginFailed):
                self.fail(session, now())
            return outcome

    def stop(self) -> None:
        """Check no more."""
        self._here.stop()
        self._elsewhere.stop()
        self._processes.stop()

    def forget(self, session: Session) -> None:
        """The session is gone, or its exchange over."""
        self.under_way.pop(session, None)

    def fail(self, session: Session, now: float) -> None:
        """Note a failed login."""
        self._failures.note(_who(session), now)

    def may_try(self, session: Session, limits: ServerLimits, now: float) -> bool:
        """Are there tries left?"""
        return self._failures.count(_who(session), limits.failed_logins_period, now) < limits.failed_logins

    def may_make_account(self, session: Session, limits: ServerLimits, now: float) -> bool:
        """Note that a new account is asked for; False when it is one too many."""
        who = _who(session)
        if self._new_accounts.count(who, limits.new_accounts_period, now) >= limits.new_accounts:
            return False
        self._new_accounts.note(who, now)
        return True

    def forget_tries(self, limits: ServerLimits, now: float) -> None:
        """Let go of what no longer counts."""
        self._failures.forget(limits.failed_logins_period, now)
        self._new_accounts.forget(limits.new_accounts_period, now)


def _who(session: Session) -> Hashable:
    """Another machine, or another user of this one. Our own user can read the accounts anyway, and one wrong
    program of theirs must not lock out the others, so there each connection counts by itself, but those of browsers:
    what a page knows is not what its reader knows."""
    if not session.is_local:
        return group_of(session.host)
    uid = session.connection.peer_uid()
    return session if uid == os.getuid() and not session.is_websocket else uid
