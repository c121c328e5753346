"""Browser sessions of the web page.

Stored on disk, so a restart logs nobody out, and revocable.
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from culture.web.database import WebDatabase, digest, new_secret

_DAY = 86400.0
_SEEN_INTERVAL = 60.0
_MAX_USER_AGENT = 200
_COLUMNS = "id, account, browser, made, seen, ends"

LoginVersion = Callable[[str], str | None]
"""Returns a text that changes when an account is revoked or gets another password; None: it may not log in.

A session stores it, and ends as soon as it differs.
"""


def _unchanging(_account: str) -> str | None:
    return ""


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """One browser in which an account is logged in to the web page; times in seconds since 1970."""

    id: str
    """Public id, to name the session in lists and commands; it does not log in."""
    account: str
    browser: str
    made: float
    seen: float
    ends: float


class BrowserSessions:
    """The browser sessions in the web page's SQLite file; expired ones do not count."""

    def __init__(
        self,
        database: WebDatabase,
        days: float = 30.0,
        clock: Callable[[], float] = time.time,
        login_version: LoginVersion = _unchanging,
    ) -> None:
        self._database = database
        self._lifetime = days * _DAY
        self._clock = clock
        self._login_version = login_version

    def start(self, account: str, browser: str, uid: int | None = None) -> str:
        """Start a browser session of an account; return its secret, the value for the cookie.

        ``browser``: the User-Agent. ``uid``: the only local user who may use the session (None: a remote client).
        """
        secret, now = new_secret(), self._clock()
        self._database.do("DELETE FROM sessions WHERE ends <= ?", now)
        values = (
            digest(secret),
            secrets.token_hex(4),
            account,
            browser[:_MAX_USER_AGENT],
            now,
            now,
            now + self._lifetime,
            uid,
            self._login_version(account),
        )
        self._database.do("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", *values)
        return secret

    def find(self, secret: str, uid: int | None = None) -> BrowserSession | None:
        """Return the browser session with this secret, or None if there is none that may be used.

        ``uid``: the local user whose process sent the request, None if unknown. A session of another local user is not
        returned.
        """
        now = self._clock()
        sql = f"SELECT standing, {_COLUMNS} FROM sessions WHERE digest = ? AND ends > ? AND uid IS ?"
        rows = self._database.ask(sql, digest(secret), now, uid)
        if not rows:
            return None
        stored_version, *columns = rows[0]
        session = BrowserSession(*columns)  # type: ignore[arg-type]
        if not self._is_current(session.account, stored_version):
            return None
        if now - session.seen > _SEEN_INTERVAL:
            self._database.do("UPDATE sessions SET seen = ? WHERE digest = ?", now, digest(secret))
        return session

    def is_active(self, id: str) -> bool:
        """Return whether the browser session with this public id exists and has not ended."""
        sql = "SELECT account, standing FROM sessions WHERE id = ? AND ends > ?"
        return any(
            self._is_current(str(account), version) for account, version in self._database.ask(sql, id, self._clock())
        )

    def _is_current(self, account: str, stored_version: object) -> bool:
        current = self._login_version(account)
        return current is not None and current == stored_version

    def all(self, account: str | None = None) -> list[BrowserSession]:
        """Return all browser sessions, or those of one account, newest first."""
        where, values = ("AND account = ?", (account,)) if account is not None else ("", ())
        sql = f"SELECT {_COLUMNS} FROM sessions WHERE ends > ? {where} ORDER BY made DESC"
        return [BrowserSession(*row) for row in self._database.ask(sql, self._clock(), *values)]  # type: ignore[arg-type]

    def revoke(self, id: str) -> bool:
        """End the browser session with this public id; return whether there was one."""
        return self._database.do("DELETE FROM sessions WHERE id = ?", id) > 0

    def revoke_of(self, account: str) -> int:
        """End all sessions and login links of an account; return how many sessions there were."""
        self._database.do("DELETE FROM links WHERE account = ?", account)
        return self._database.do("DELETE FROM sessions WHERE account = ?", account)

    def revoke_all(self) -> int:
        """End all sessions and login links of all accounts; return how many sessions there were."""
        self._database.do("DELETE FROM links")
        return self._database.do("DELETE FROM sessions")
