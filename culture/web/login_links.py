"""Links that let somebody in once."""

import time
from collections.abc import Callable
from pathlib import Path

from culture.web.database import WebDatabase, digest, new_secret, opened

MINUTES = 10
_REMEMBERED = 86400.0


class LinkRefused(Exception):
    """This link lets nobody in; the text says why, and what to do."""


def link_path(token: str) -> str:
    """Where on the page a link leads."""
    return f"/login/{token}"


def make_link(folder: Path, account: str, minutes: int = MINUTES) -> str:
    """A token that logs an account in, once, within so many minutes; ``folder`` is that of the page's data."""
    with opened(folder) as database:
        return Links(database).make(account, minutes * 60.0)


class Links:
    """Those of the file."""

    def __init__(self, database: WebDatabase, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def make(self, account: str, seconds: float) -> str:
        """A new one; what is long over is forgotten."""
        token, now = new_secret(), self._clock()
        self._database.do("DELETE FROM links WHERE ends < ?", now - _REMEMBERED)
        self._database.do("INSERT INTO links VALUES (?, ?, ?, NULL)", digest(token), account, now + seconds)
        return token

    def account_of(self, token: str) -> str:
        """Whom it would log in; ``LinkRefused`` where it is of no use."""
        rows = self._database.ask("SELECT account, ends, used FROM links WHERE digest = ?", digest(token))
        if not rows:
            raise LinkRefused("This login link is not known here. Make a new one: culture web link")
        account, ends, used = rows[0]
        if used is not None:
            raise LinkRefused("This login link has been used already, and works once. Make a new one: culture web link")
        if not isinstance(ends, float) or ends <= self._clock():
            raise LinkRefused("This login link is too old. Make a new one: culture web link")
        return str(account)

    def use(self, token: str) -> str:
        """Whom it logs in, this once; ``LinkRefused`` for everybody who comes later."""
        account = self.account_of(token)
        used = self._database.do(
            "UPDATE links SET used = ? WHERE digest = ? AND used IS NULL", self._clock(), digest(token)
        )
        if not used:
            raise LinkRefused("This login link has been used already, and works once. Make a new one: culture web link")
        return account
