"""Results of the wiki's operations."""

import hashlib
from dataclasses import dataclass

REVISION_LENGTH = 12


@dataclass(frozen=True, slots=True)
class WikiPage:
    """A page at a revision, with the author and time of this text."""

    name: str
    revision: str
    text: str
    author: str = ""
    time: int = 0
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A page in a list, with its last author."""

    name: str
    revision: str
    size: int
    author: str = ""
    time: int = 0


@dataclass(frozen=True, slots=True)
class PageRevision:
    """One revision in a page's history."""

    revision: str
    author: str
    time: int
    message: str
    commit: str


@dataclass(frozen=True, slots=True)
class PageLine:
    """A line that matches a search, with its number."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class PageHit:
    """A page that matches a search."""

    name: str
    revision: str
    lines: tuple[PageLine, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """Result of a write; the revision is the base of the next change."""

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
