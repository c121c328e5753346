"""Who is logged in to the page, by browser; on disk, so that a restart logs nobody out, and revocable."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from culture.web.database import WebDatabase, digest, new_secret

_DAY = 86400.0
_SEEN_EVERY = 60.0
_LONGEST_BROWSER = 200
_COLUMNS = "id, account, browser, made, seen, ends"

Standing = Callable[[str], str | None]
"""Something about an account that is another once it was revoked or has another password; None: it may not log in."""


def _as_ever(_account: str) -> str | None:
    return ""


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A browser in which somebody is logged in."""

    id: str
    """Its name for people; it opens nothing."""
    account: str
    browser: str
    made: float
    seen: float
    ends: float


class BrowserSessions:
    """Those of the file that have not ended."""

    def __init__(
        self,
        database: WebDatabase,
        days: float = 30.0,
        clock: Callable[[], float] = time.time,
        standing: Standing = _as_ever,
    ) -> None:
        self._database = database
        self._lasts = days * _DAY
        self._clock = clock
        self._standing = standing

    def begin(self, account: str, browser: str, uid: int | None = None) -> str:
        """Log somebody in; the secret that their browser keeps. ``uid`` is whose process that is, on this machine."""
        secret, now = new_secret(), self._clock()
        self._database.do("DELETE FROM sessions WHERE ends <= ?", now)
        values = (
            digest(secret),
            secrets.token_hex(4),
            account,
            browser[:_LONGEST_BROWSER],
            now,
            now,
            now + self._lasts,
            uid,
            self._standing(account),
        )
        self._database.do("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", *values)
        return secret

    def of(self, secret: str, uid: int | None = None) -> BrowserSession | None:
        """Whose browser shows this secret; None where it is a process of somebody else's."""
        now = self._clock()
        sql = f"SELECT standing, {_COLUMNS} FROM sessions WHERE digest = ? AND ends > ? AND uid IS ?"
        rows = self._database.ask(sql, digest(secret), now, uid)
        if not rows:
            return None
        standing, *columns = rows[0]
        session = BrowserSession(*columns)  # type: ignore[arg-type]
        if not self._stands(session.account, standing):
            return None
        if now - session.seen > _SEEN_EVERY:
            self._database.do("UPDATE sessions SET seen = ? WHERE digest = ?", now, digest(secret))
        return session

    def holds(self, id: str) -> bool:
        """Whether a session has not ended."""
        sql = "SELECT account, standing FROM sessions WHERE id = ? AND ends > ?"
        return any(
            self._stands(str(account), standing) for account, standing in self._database.ask(sql, id, self._clock())
        )

    def _stands(self, account: str, standing: object) -> bool:
        now = self._standing(account)
        return now is not None and now == standing

    def all(self, account: str | None = None) -> list[BrowserSession]:
        """Every session, or those of an account, the newest first."""
        where, values = ("AND account = ?", (account,)) if account is not None else ("", ())
        sql = f"SELECT {_COLUMNS} FROM sessions WHERE ends > ? {where} ORDER BY made DESC"
        return [BrowserSession(*row) for row in self._database.ask(sql, self._clock(), *values)]  # type: ignore[arg-type]

    def revoke(self, id: str) -> bool:
        """End one; whether there was one."""
        return self._database.do("DELETE FROM sessions WHERE id = ?", id) > 0

    def revoke_of(self, account: str) -> int:
        """End all of an account, and the links for it; how many sessions there were."""
        self._database.do("DELETE FROM links WHERE account = ?", account)
        return self._database.do("DELETE FROM sessions WHERE account = ?", account)

    def revoke_all(self) -> int:
        """End all there are, and every link; how many sessions there were."""
        self._database.do("DELETE FROM links")
        return self._database.do("DELETE FROM sessions")
