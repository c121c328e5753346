"""The history of pages, parsed from git's log."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from culture.protocol.text import Profile, one_line
from culture.wiki.repository import NOTHING, BareRepository
from culture.wiki.types import REVISION_LENGTH

# A commit's headers contain no NUL; whoever pushes can put anything else there.
_FIELDS = ("%H", "%an", "%at", "%s")
_FORMAT = f"--format={'%x00'.join(_FIELDS)}"
# Only texts that the branch itself had: merged changes appear with their merge commit.
_FIRST_PARENT = ("-m", "--first-parent")
_RAW = ("log", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv", *_FIRST_PARENT, _FORMAT)
_BATCH = 500
_LATEST = 253402300799
"""The last second that can be formatted as a date."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """One commit's change of one file: id of the new contents (``blob``), author, time, message."""

    path: str
    blob: str
    author: str
    time: int
    message: str
    commit: str

    @property
    def revision(self) -> str:
        """Revision of the page's text after this change: the beginning of its git blob id."""
        return self.blob[:REVISION_LENGTH]


def changes(repository: BareRepository, commit: str, path: str, limit: int | None) -> list[FileChange]:
    """Return the changes of the file ``path`` in a commit and its ancestors, newest first.

    ``commit``: id of the commit. ``limit``: the most changes to return; None for all.
    """
    if commit == NOTHING:
        return []
    bound = () if limit is None else (f"--max-count={limit}",)
    log = repository.git(*_RAW, *bound, commit, "--", path)
    return [each for each in _parse_log(log) if each.path == path and each.blob != NOTHING]


def last_changes(repository: BareRepository, commit: str, paths: set[str]) -> dict[str, FileChange]:
    """Return the newest change of each file in ``paths``, by path.

    ``commit``: id of the commit at which the search begins; it goes on with the ancestors.
    """
    newest: dict[str, FileChange] = {}
    skipped = 0
    while paths - newest.keys():
        log = repository.git(*_RAW, f"--skip={skipped}", f"--max-count={_BATCH}", commit)
        if not log:
            break
        for each in _parse_log(log):
            if each.path in paths:
                newest.setdefault(each.path, each)
        skipped += _BATCH
    return newest


def printable(text: str) -> str:
    """Return a text as one line, with control characters removed."""
    return one_line(text, Profile.WEB)


def _parse_log(log: bytes) -> Iterator[FileChange]:
    fields = iter(log.split(b"\0"))
    for first in fields:
        if not first.lstrip(b"\n").startswith(b":"):
            author, time, message = (next(fields, b"").decode(errors="replace") for _ in _FIELDS[1:])
            number = first.decode().strip()
            continue
        path = os.fsdecode(next(fields))
        blob = first.decode().split()[3]
        yield FileChange(path, blob, printable(author), _parse_time(time), printable(message), number)


def _parse_time(text: str) -> int:
    """Return a commit time from git's log, seconds since 1970, as a number; 0 if malformed.

    A time that is too late to be formatted as a date becomes the last second of the year 9999.
    """
    return min(int(text), _LATEST) if text.isascii() and text.isdigit() else 0
