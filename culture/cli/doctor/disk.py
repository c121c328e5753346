"""The disk: room, inodes, whether it can be written, and how much of it is ours."""

import os
from collections.abc import Iterator
from pathlib import Path

from culture.cli.amounts import counted, shown_size
from culture.cli.doctor.finding import Finding, error, hint, warning
from culture.cli.doctor.scene import Scene, shown
from culture.cli.doctor.walking import walked

_FULL, _LOW = 50_000_000, 500_000_000
_NO_INODES, _FEW_INODES = 500, 5_000
_MUCH = 5_000_000_000
_SMALL = 1_000_000_000
"""A disk that is itself not larger than that is judged by its parts."""
# SQLite's locks and memory do not hold across these.
_REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "drvfs", "afs", "fuse.sshfs", "ceph"})


def room(scene: Scene) -> Iterator[Finding]:
    """What is free where something is kept."""
    for place in _disks(scene):
        found = os.statvfs(place)
        free, total = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
        scale = min(total / _SMALL, 1.0)
        if free < _LOW * scale:
            say = error if free < _FULL * scale else warning
            yield say(
                f"{shown_size(free)} are free on the disk of {shown(place)}",
                "when it is full, messages are no longer kept, and agents stop",
                f"`du -xh --max-depth=2 {shown(place)} | sort -h | tail`; `culture history prune` makes room",
            )
        if found.f_files and found.f_favail < _FEW_INODES and found.f_favail < found.f_files / 20:
            say = error if found.f_favail < _NO_INODES else warning
            yield say(
                f"the disk of {shown(place)} has room for {counted(found.f_favail, 'more file', 'more files')} only",
                "without inodes no file can be made, however much room there is",
                "`df -i` shows them; remove what consists of many small files",
            )


def writable(scene: Scene) -> Iterator[Finding]:
    """Whether anything can be kept."""
    for place in _places(scene):
        if os.statvfs(place).f_flag & os.ST_RDONLY:
            yield error(
                f"the disk of {shown(place)} is read-only",
                "nothing can be kept; a disk with errors is made so by the kernel",
                "`dmesg | tail` says why; `mount -o remount,rw` makes it writable",
            )
        elif not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
            yield error(f"{shown(place)} cannot be written", "nothing can be kept", f"chmod u+rwx {shown(place)}")


def kind(scene: Scene) -> Iterator[Finding]:
    """What sort of disk it is."""
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for place in _disks(scene):
        yield from of_kind(place, mounts)


def of_kind(place: Path, mounts: str) -> Iterator[Finding]:
    """What to say of a folder, given what is mounted where."""
    rows = [line.split() for line in mounts.splitlines()]
    around = [(row[1], row[2]) for row in rows if len(row) > 2 and place.is_relative_to(_unescaped(row[1]))]
    name = max(around, key=lambda each: len(each[0]), default=("", ""))[1]
    if name in _REMOTE:
        yield warning(
            f"{shown(place)} is on a disk of another machine ({name})",
            "SQLite's files break there sooner or later",
            "`data_dir:` in culture.yaml, or CULTURE_HOME, names a folder on a disk of this one",
        )


def size(scene: Scene) -> Iterator[Finding]:
    """How much the servers' data is."""
    for server in scene.servers:
        folder = server.config.data_dir
        used = sum(each.status.st_size for each in walked(folder))
        if used > _MUCH:
            yield hint(
                f"{shown(folder)} holds {shown_size(used)}",
                "backups and checks take long",
                "`culture history stats` shows what it is, `culture history prune` removes what is old",
            )


def _places(scene: Scene) -> list[Path]:
    """The folders of ours that are there."""
    every = [scene.home, *(server.config.data_dir for server in scene.servers)]
    return [place for place in dict.fromkeys(every) if place.is_dir()]


def _disks(scene: Scene) -> list[Path]:
    """One folder for each disk."""
    return list({place.stat().st_dev: place for place in reversed(_places(scene))}.values())


def _unescaped(place: str) -> str:
    return place.replace("\\040", " ").replace("\\134", "\\")
