"""What a wiki answers with."""

import hashlib
from dataclasses import dataclass

REVISION_LENGTH = 12


@dataclass(frozen=True, slots=True)
class WikiPage:
    """A page as it is or was; author and time are those of this text."""

    name: str
    revision: str
    text: str
    author: str = ""
    time: int = 0
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A page in the list, with who wrote it last."""

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
    """A line that was found, and its number."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class PageHit:
    """A page on which all words were found."""

    name: str
    revision: str
    lines: tuple[PageLine, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """A page was written; the revision is the base of the next change."""

    name: str
    revision: str
    changed: bool = True
    """False when the page already said just that."""
    queued: bool = False
    """It waits on this machine until the wiki can be reached."""


def revision_of(text: str) -> str:
    """The revision that a text is: the beginning of git's name for it."""
    data = text.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()[:REVISION_LENGTH]
