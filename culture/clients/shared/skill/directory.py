"""Going to another folder: the agent gets that project's instructions."""

from pathlib import Path
from typing import NamedTuple

from culture.protocol.text import Profile, clean

FILES = ("CLAUDE.md", "AGENTS.md")
LONGEST = 256 * 1024


class NoDirectory(Exception):
    """There is no such folder, or it cannot be read."""


class Instructions(NamedTuple):
    """A folder and what it tells those who work there; without such a file both are None."""

    path: str
    file: str | None
    text: str | None


def instructions(path: Path) -> Instructions:
    """The instructions of a folder: its CLAUDE.md, else its AGENTS.md."""
    try:
        folder = path.expanduser().resolve()
        if not folder.is_dir():
            raise NoDirectory(f"{folder} is no folder")
        for name in FILES:
            if (folder / name).is_file():
                return Instructions(str(folder), name, _read(folder / name))
    except (OSError, RuntimeError, ValueError) as error:
        raise NoDirectory(f"{path}: {error}") from None
    return Instructions(str(folder), None, None)


def _read(file: Path) -> str:
    with file.open("rb") as source:
        start = source.read(LONGEST + 1)
    text = start[:LONGEST].decode("utf-8", "replace")
    text = clean(text, Profile.TERMINAL)
    return text if len(start) <= LONGEST else f"{text}\n[the rest of {file} is left out]\n"
