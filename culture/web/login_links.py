"""Login links: each logs an account in once, within ten minutes."""

import time
from collections.abc import Callable
from pathlib import Path

from culture.web.database import WebDatabase, digest, new_secret, open_database

MINUTES = 10
"""How long a link is valid."""
_RETENTION = 86400.0


class LinkRefused(Exception):
    """A login link is unknown, used or expired; the text says which of these, and what to do."""


def link_path(token: str) -> str:
    """Return the path, on the web page, of the login link with this token."""
    return f"/login/{token}"


def make_link(folder: Path, account: str, minutes: int = MINUTES) -> str:
    """Store a new one-time login token for an account, valid for ``minutes``, and return it.

    ``folder`` is the page's data folder, whose SQLite file holds the login links.
    """
    with open_database(folder) as database:
        return LoginLinks(database).make(account, minutes * 60.0)


class LoginLinks:
    """The login links in the web page's SQLite file; each works once."""

    def __init__(self, database: WebDatabase, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def make(self, account: str, seconds: float) -> str:
        """Store a new login token for an account, valid for ``seconds``, and return it.

        Links that expired more than a day ago are deleted.
        """
        token, now = new_secret(), self._clock()
        self._database.do("DELETE FROM links WHERE ends < ?", now - _RETENTION)
        self._database.do("INSERT INTO links VALUES (?, ?, ?, NULL)", digest(token), account, now + seconds)
        return token

    def account_of(self, token: str) -> str:
        """Return the account of a login token without using the token up.

        ``LinkRefused`` if the token is unknown, used or expired.
        """
        rows = self._database.ask("SELECT account, ends, used FROM links WHERE digest = ?", digest(token))
        if not rows:
            raise LinkRefused("This login link is unknown. Make a new one: culture web link")
        account, ends, used = rows[0]
        if used is not None:
            raise LinkRefused("This login link has already been used; it works once. Make a new one: culture web link")
        if not isinstance(ends, float) or ends <= self._clock():
            raise LinkRefused("This login link has expired. Make a new one: culture web link")
        return str(account)

    def use(self, token: str) -> str:
        """Use up a login token and return its account.

        ``LinkRefused`` if the token is unknown, used or expired.
        """
        account = self.account_of(token)
        changed = self._database.do(
            "UPDATE links SET used = ? WHERE digest = ? AND used IS NULL", self._clock(), digest(token)
        )
        if not changed:
            raise LinkRefused("This login link has already been used; it works once. Make a new one: culture web link")
        return account
