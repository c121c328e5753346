"""Results of the wiki's operations."""

import hashlib
from dataclasses import dataclass

REVISION_LENGTH = 12


@dataclass(frozen=True, slots=True)
class WikiPage:
    """The text of a page at one revision, with the author and time (seconds since 1970) of it."""

    name: str
    revision: str
    text: str
    author: str = ""
    time: int = 0
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A page in a list of pages: name, revision, size in bytes, last author and time."""

    name: str
    revision: str
    size: int
    author: str = ""
    time: int = 0


@dataclass(frozen=True, slots=True)
class PageRevision:
    """One revision of a page: its id, author, time (seconds since 1970), message and git commit."""

    revision: str
    author: str
    time: int
    message: str
    commit: str


@dataclass(frozen=True, slots=True)
class PageLine:
    """A line of a page that contains a searched word, with its number in the page."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class PageHit:
    """A page that matches a search, with the first of its lines that contain a searched word."""

    name: str
    revision: str
    lines: tuple[PageLine, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """Result of a write: the page's name and new revision, and whether it was changed or queued.

    ``revision`` is the base revision for the author's next write of the page. ``changed`` is False if the page already
    had this text.
    """

    name: str
    revision: str
    changed: bool = True
    """False if the page already had this text."""
    queued: bool = False
    """Whether the write is queued on this machine until the wiki is available."""


def revision_of(text: str) -> str:
    """Return the revision of a text: the beginning of its git blob id."""
    data = text.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()[:REVISION_LENGTH]
