"""Everything in a folder with what the disk says of it; links are not followed, and there is an end to it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MOST = 50_000
# What belongs to agents and to git, and has the modes they give it.
_NOT_OURS = frozenset({"work", "sandbox", "objects", ".git", "lost+found"})


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a folder."""

    path: Path
    status: os.stat_result


def walked(folder: Path) -> list[Entry]:
    """The folder itself and what is in it; nothing, where there is none."""
    try:
        found = [Entry(folder, folder.lstat())]
    except FileNotFoundError:
        return []
    for entry in _below(folder):
        found.append(entry)
        if len(found) >= MOST:
            break
    return found


def _below(folder: Path) -> Iterator[Entry]:
    try:
        with os.scandir(folder) as entries:
            inner = [(each.is_dir(follow_symlinks=False), each) for each in entries]
    except OSError:
        return
    for is_folder, each in inner:
        try:
            yield Entry(Path(each.path), each.stat(follow_symlinks=False))
        except FileNotFoundError:
            continue
        if is_folder and each.name not in _NOT_OURS:
            yield from _below(Path(each.path))
