"""The disk: room, inodes, whether it can be written, and how much of it is ours."""

import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from culture.cli.doctor.inventory import FileEntry, Inventory, shown, walked
from culture.cli.doctor.runner import Finding, error, hint, warning
from culture.cli.humanize import counted, shown_size
from culture.config import paths
from culture.config.errors import ConfigError
from culture.config.load import load_agents, load_server
from culture.config.provenance import has_secrets
from culture.federation import book
from culture.lib.files import PRIVATE_DIRECTORY, note_of_holder

_FULL, _LOW = 50_000_000, 500_000_000
_NO_INODES, _FEW_INODES = 500, 5_000
_MUCH = 5_000_000_000
_SMALL = 1_000_000_000
"""A disk that is itself not larger than that is judged by its parts."""
# SQLite's locks and memory do not hold across these.
_REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "drvfs", "afs", "fuse.sshfs", "ceph"})


def room(scene: Inventory) -> Iterator[Finding]:
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


def writable(scene: Inventory) -> Iterator[Finding]:
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


def kind(scene: Inventory) -> Iterator[Finding]:
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


def size(scene: Inventory) -> Iterator[Finding]:
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


def _places(scene: Inventory) -> list[Path]:
    """The folders of ours that are there."""
    every = [scene.home, *(server.config.data_dir for server in scene.servers)]
    return [place for place in dict.fromkeys(every) if place.is_dir()]


def _disks(scene: Inventory) -> list[Path]:
    """One folder for each disk."""
    return list({place.stat().st_dev: place for place in reversed(_places(scene))}.values())


def _unescaped(place: str) -> str:
    return place.replace("\\040", " ").replace("\\134", "\\")


_OTHERS = 0o077
_OURS = ("data", "inbox", "log", "run", "secrets", "tls", "team")
"""The folders in which everything is for its owner alone."""


def home(scene: Inventory) -> Iterator[Finding]:
    """The folder that holds everything."""
    try:
        status = scene.home.stat()
    except FileNotFoundError:
        yield hint(f"there is no {shown(scene.home)} yet", "nothing was set up here", "`culture up`")
        return
    if not stat.S_ISDIR(status.st_mode):
        yield error(f"{shown(scene.home)} is no folder", "nothing can be kept there", f"rename it: {_move(scene.home)}")
    elif status.st_uid != os.geteuid():
        yield _foreign([scene.home], scene.home)
    elif stat.S_IMODE(status.st_mode) & PRIVATE_DIRECTORY != PRIVATE_DIRECTORY:
        yield error(
            f"you may not read and write {shown(scene.home)} yourself ({_mode(status)})",
            "nothing works without it",
            f"chmod 700 {shown(scene.home)}",
            _opened(scene.home),
        )
    elif stat.S_IMODE(status.st_mode) & _OTHERS:
        yield warning(
            f"others on this machine may look into {shown(scene.home)} ({_mode(status)})",
            "everything that agents say and know is in it",
            f"chmod 700 {shown(scene.home)}",
            _chmod([scene.home]),
        )


def secrets(scene: Inventory) -> Iterator[Finding]:
    """What logs somebody in: tokens, keys, passwords, the secrets of links."""
    known = {entry.path: entry for entry in scene.entries}
    for path in sorted(_secret_files(scene)):
        try:
            status = known[path].status if path in known else path.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(status.st_mode):
            if path.parent == scene.home / "secrets":
                yield warning(
                    f"{shown(path)} is a symlink", "a token belongs into a file of its own", f"ls -l {shown(path)}"
                )
            continue
        if stat.S_IMODE(status.st_mode) & _OTHERS:
            yield error(
                f"others on this machine may read {shown(path)} ({_mode(status)})",
                "whoever reads it can log in with it, or take the server's place",
                f"chmod 600 {shown(path)}",
                _chmod([path]),
            )


def _secret_files(scene: Inventory) -> Iterator[Path]:
    yield from (scene.home / "secrets").glob("*")
    yield from (scene.home / "tls").glob("*.key")
    yield from (scene.home / "data").glob("*/federation/links.json")
    yield paths.accounts_file()
    yield from _with_secrets()
    for server in scene.servers:
        yield server.config.accounts_file
        yield book.path_of(server.config)
        yield from (each.tls.key for each in server.config.listen if each.tls)


def _with_secrets() -> Iterator[Path]:
    for file, load in ((paths.server_file(), load_server), (paths.agents_file(), load_agents)):
        try:
            if has_secrets(load()):
                yield file
        except ConfigError:
            # It cannot be known what is in it.
            yield file


def others(scene: Inventory) -> Iterator[Finding]:
    """Everything else that is for its owner alone."""
    secret = set(_secret_files(scene))
    found = [each for each in scene.entries if _is_open(each, scene.home) and each.path not in secret]
    if found:
        is_shut = not stat.S_IMODE(scene.home.stat().st_mode) & _OTHERS
        say: Callable[..., Finding] = hint if is_shut else warning
        yield say(
            f"others may read {_named([each.path for each in found])}",
            f"as long as {shown(scene.home)} is shut they do not get there"
            if is_shut
            else "what agents and people say is in it",
            f"chmod -R go= {' '.join(shown(scene.home / name) for name in _tops(found, scene.home))}",
            _chmod([each.path for each in found]),
        )


def _is_open(entry: FileEntry, home: Path) -> bool:
    mode = entry.status.st_mode
    is_kept = entry.path.is_relative_to(home) and entry.path.relative_to(home).parts[:1] in {(name,) for name in _OURS}
    return is_kept and (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and bool(stat.S_IMODE(mode) & _OTHERS)


def owners(scene: Inventory) -> Iterator[Finding]:
    """Files of somebody else's, as `sudo culture …` leaves them."""
    foreign = [each.path for each in scene.entries[1:] if each.status.st_uid != os.geteuid()]
    if foreign and scene.entries[0].status.st_uid == os.geteuid():
        yield _foreign(foreign, scene.home)


def _foreign(found: Sequence[Path], home: Path) -> Finding:
    return error(
        f"{_named(found)} {'belongs' if len(found) == 1 else 'belong'} to another user",
        "was it made with sudo? You may not change it, and a server or an agent of yours fails at it",
        f'sudo chown -R "$(id -un)" {shown(home)}',
    )


def _named(found: Sequence[Path]) -> str:
    more = f" and {counted(len(found) - 1, 'other', 'others')}" if len(found) > 1 else ""
    return f"{shown(found[0])}{more}"


def _tops(found: Sequence[FileEntry], home: Path) -> list[str]:
    return list(dict.fromkeys(each.path.relative_to(home).parts[0] for each in found))


def _mode(status: os.stat_result) -> str:
    return f"mode {stat.S_IMODE(status.st_mode):04o}"


def _move(path: Path) -> str:
    return f"mv {shown(path)} {shown(path)}.old"


def _opened(folder: Path) -> Callable[[], None]:
    return lambda: folder.chmod(PRIVATE_DIRECTORY)


def _chmod(found: Sequence[Path]) -> Callable[[], None]:
    def mend() -> None:
        for path in found:
            status = path.lstat()
            if not stat.S_ISLNK(status.st_mode):
                path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)

    return mend


_YOUNG = 60.0
"""Seconds for which a file may be half written."""
_HALF = re.compile(r"\.new$")
_PID = re.compile(r'"pid": ?(\d+)|^(\d+)\s*$')


def notes(scene: Inventory) -> Iterator[Finding]:
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


def locks(scene: Inventory) -> Iterator[Finding]:
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


def halves(scene: Inventory) -> Iterator[Finding]:
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
