"""Errors of the wiki."""

import errno

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
"""System errors of a full disk."""


class WikiError(Exception):
    """An operation failed; the text is for the caller."""


class WikiRefused(WikiError):
    """The request is invalid and will never succeed: its name, text or author."""


class NoSuchPage(WikiError):
    """The page does not exist, or never had that revision."""


class WikiUnavailable(WikiError):
    """The wiki cannot be used now; the same request may succeed later. Nothing was changed."""


class DiskFull(WikiUnavailable):
    """The disk is full."""


class Conflict(WikiError):
    """The page was changed since it was read; has all texts, so that they can be merged."""

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
