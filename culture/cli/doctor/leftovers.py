"""What a crash leaves behind: notes of processes that are gone, locks that somebody inherited, half-written files."""

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from culture.cli.doctor.finding import Finding, hint, warning
from culture.cli.doctor.scene import Scene, shown
from culture.config.lockfile import note_of_holder

_YOUNG = 60.0
"""Seconds for which a file may be half written."""
_HALF = re.compile(r"\.new$")
_PID = re.compile(r'"pid": ?(\d+)|^(\d+)\s*$')


def notes(scene: Scene) -> Iterator[Finding]:
    """The notes of servers and daemons: each is held by the living process that wrote it."""
    for file in sorted((scene.home / "run").glob("*.pid")):
        if file.is_symlink():
            yield warning(f"{shown(file)} is a symlink", "nothing of ours makes one", f"rm {shown(file)}")
            continue
        held = note_of_holder(file)
        if held is None and file.exists():
            yield hint(
                f"{shown(file)} was left behind by a process that is gone",
                "it does no harm: whoever starts next takes it over",
                f"rm {shown(file)}",
                _remove(file),
            )
        elif held is not None:
            yield from _of_the_dead(file, held)


def locks(scene: Scene) -> Iterator[Finding]:
    """The data folders of servers that do not run."""
    for server in scene.servers:
        file = server.config.data_dir / "lock"
        held = note_of_holder(file)
        if held is None or server.note is not None:
            continue
        pid = _pid(held)
        who = f"process {pid}" if pid else "a process"
        yield warning(
            f"{who} holds {shown(file)}, and {server.config.name} does not run from this home folder",
            "another server uses the same data folder, or what it started has outlived it; this one cannot start",
            f"ps -fp {pid}" if pid and _lives(pid) else f"fuser -v {shown(file)}",
        )


def halves(scene: Scene) -> Iterator[Finding]:
    """Files that were to take the place of others, and never did."""
    now = time.time()
    for entry in scene.entries:
        if _HALF.search(entry.path.name) and entry.status.st_mtime < now - _YOUNG:
            yield hint(
                f"{shown(entry.path)} was not finished",
                "whoever wrote it was interrupted; the file that it was to replace is whole",
                f"rm {shown(entry.path)}",
                _remove(entry.path),
            )


def _of_the_dead(file: Path, held: str) -> Iterator[Finding]:
    pid = _pid(held)
    if pid is not None and not _lives(pid):
        yield warning(
            f"{shown(file)} names process {pid}, which is gone, and is held all the same",
            "something that it started has inherited the file and goes on; a new start is refused",
            f"fuser -v {shown(file)}",
        )


def _pid(note: str) -> int | None:
    found = _PID.search(note)
    return int(found[1] or found[2]) if found else None


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _remove(file: Path) -> Callable[[], None]:
    def mend() -> None:
        if file.suffix != ".pid" or note_of_holder(file) is None:
            os.unlink(file)

    return mend
