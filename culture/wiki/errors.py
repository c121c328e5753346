"""Why a wiki does not do what it was asked for."""

import errno

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
"""System errors of a full disk."""


class WikiError(Exception):
    """What went wrong, in words for whoever asked."""


class WikiRefused(WikiError):
    """It will never be done like this: a name, a text or an author that cannot be."""


class NoSuchPage(WikiError):
    """There is no such page, or it never had that revision."""


class WikiUnavailable(WikiError):
    """It cannot be done now; the same may well work later. Nothing was changed."""


class DiskFull(WikiUnavailable):
    """There is no room for it."""


class Conflict(WikiError):
    """Somebody else wrote the page since it was read: all texts, so that they can be made one."""

    def __init__(self, page: str, *, revision: str, base: str | None, current: str, yours: str) -> None:
        super().__init__(
            f"{page} was written by somebody else meanwhile: make one text of yours and the current one, "
            f"and write it with base_revision {revision!r}"
        )
        self.page = page
        self.revision = revision
        """The current revision; empty when there is no such page (any more)."""
        self.base = base
        """The text from which you began; None when the page never had that revision."""
        self.current = current
        self.yours = yours
