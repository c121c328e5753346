"""Errors of the wiki."""

import errno

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
"""System errors of a full disk."""


class WikiError(Exception):
    """An operation on a wiki failed; the text of the exception tells the caller why."""


class WikiRefused(WikiError):
    """The page name, text or author of a request is invalid, so that it can never succeed."""


class NoSuchPage(WikiError):
    """The wiki has no such page, or the page never had the requested revision."""


class WikiUnavailable(WikiError):
    """The wiki cannot be read or written now; the same request may succeed later."""


class DiskFull(WikiUnavailable):
    """The disk that holds the wiki is full; nothing was written."""


class Conflict(WikiError):
    """The page was changed since its base revision was read.

    The exception has the base, the current and the new text, so that they can be merged.
    """

    def __init__(self, page: str, *, revision: str, base: str | None, current: str, yours: str) -> None:
        super().__init__(
            f"{page} was written by somebody else meanwhile: make one text of yours and the current one, "
            f"and write it with base_revision {revision!r}"
        )
        self.page = page
        self.revision = revision
        """The current revision; empty if the page does not exist."""
        self.base = base
        """The text of the base revision; None if the page never had it."""
        self.current = current
        self.yours = yours
