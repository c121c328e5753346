"""Who wrote what when, as git remembers it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from culture.protocol.text import Profile, one_line
from culture.wiki.repository import NOTHING, BareRepository
from culture.wiki.types import REVISION_LENGTH

# A commit has no NUL in its headers; whoever pushes may have put everything else there.
_FACTS = ("%H", "%an", "%at", "%s")
_FORMAT = f"--format={'%x00'.join(_FACTS)}"
# The texts that the branch itself had: what was merged into it came with the merge.
_LINE = ("-m", "--first-parent")
_RAW = ("log", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv", *_LINE, _FORMAT)
_AT_ONCE = 500
_LATEST = 253402300799
"""The last second that has a date."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A commit's new text of one file."""

    path: str
    blob: str
    author: str
    time: int
    message: str
    commit: str

    @property
    def revision(self) -> str:
        """The text's revision."""
        return self.blob[:REVISION_LENGTH]


def changes(repository: BareRepository, commit: str, path: str, limit: int | None) -> list[Recorded]:
    """The texts that a file had, newest first."""
    if commit == NOTHING:
        return []
    bound = () if limit is None else (f"--max-count={limit}",)
    said = repository.git(*_RAW, *bound, commit, "--", path)
    return [each for each in _parsed(said) if each.path == path and each.blob != NOTHING]


def last_changes(repository: BareRepository, commit: str, wanted: set[str]) -> dict[str, Recorded]:
    """The newest change of each of these files, all of which the commit has."""
    found: dict[str, Recorded] = {}
    skipped = 0
    while wanted - found.keys():
        said = repository.git(*_RAW, f"--skip={skipped}", f"--max-count={_AT_ONCE}", commit)
        if not said:
            break
        for each in _parsed(said):
            if each.path in wanted:
                found.setdefault(each.path, each)
        skipped += _AT_ONCE
    return found


def printable(text: str) -> str:
    """The text in one line that does nothing to a terminal."""
    return one_line(text, Profile.WEB)


def _parsed(said: bytes) -> Iterator[Recorded]:
    fields = iter(said.split(b"\0"))
    for first in fields:
        if not first.lstrip(b"\n").startswith(b":"):
            author, time, message = (next(fields, b"").decode(errors="replace") for _ in _FACTS[1:])
            number = first.decode().strip()
            continue
        path = os.fsdecode(next(fields))
        yield Recorded(path, first.decode().split()[3], printable(author), _moment(time), printable(message), number)


def _moment(said: str) -> int:
    """The time of a commit, which may say anything."""
    return min(int(said), _LATEST) if said.isascii() and said.isdigit() else 0
