"""Checks of files: permissions, leftovers of crashes, and disk space."""

import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from culture.cli.doctor.inventory import FileEntry, Inventory, display_path, walk
from culture.cli.doctor.runner import Finding, error, hint, warning
from culture.cli.humanize import counted, format_size
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
"""Bytes; on disks smaller than this, the limits are proportional."""
# SQLite's locks and shared memory do not work on these.
_REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "drvfs", "afs", "fuse.sshfs", "ceph"})


def check_room(inventory: Inventory) -> Iterator[Finding]:
    """Report disks with little space or few inodes."""
    for place in _disks(inventory):
        usage = os.statvfs(place)
        free, total = usage.f_bavail * usage.f_frsize, usage.f_blocks * usage.f_frsize
        scale = min(total / _SMALL, 1.0)
        if free < _LOW * scale:
            say = error if free < _FULL * scale else warning
            yield say(
                f"{format_size(free)} are free on the disk of {display_path(place)}",
                "when it is full, messages are not stored, and agents stop",
                f"`du -xh --max-depth=2 {display_path(place)} | sort -h | tail`; `culture history prune` makes room",
            )
        if usage.f_files and usage.f_favail < _FEW_INODES and usage.f_favail < usage.f_files / 20:
            say = error if usage.f_favail < _NO_INODES else warning
            yield say(
                f"the disk of {display_path(place)} has room for "
                f"{counted(usage.f_favail, 'more file', 'more files')} only",
                "without inodes no file can be made, however much room there is",
                "`df -i` shows them; remove what consists of many small files",
            )


def check_writable(inventory: Inventory) -> Iterator[Finding]:
    """Report home and data folders that cannot be written."""
    for place in _places(inventory):
        if os.statvfs(place).f_flag & os.ST_RDONLY:
            yield error(
                f"the disk of {display_path(place)} is read-only",
                "nothing can be stored; a disk with errors is made so by the kernel",
                "`dmesg | tail` says why; `mount -o remount,rw` makes it writable",
            )
        elif not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
            yield error(
                f"{display_path(place)} cannot be written",
                "nothing can be stored",
                f"chmod u+rwx {display_path(place)}",
            )


def check_disk_kind(inventory: Inventory) -> Iterator[Finding]:
    """Report folders with our data that are on network file systems."""
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for place in _disks(inventory):
        yield from judge_disk_kind(place, mounts)


def judge_disk_kind(place: Path, mounts: str) -> Iterator[Finding]:
    """Report the folder ``place`` if it is on a network file system.

    ``mounts``: the contents of /proc/mounts.
    """
    rows = [line.split() for line in mounts.splitlines()]
    around = [(row[1], row[2]) for row in rows if len(row) > 2 and place.is_relative_to(_unescaped(row[1]))]
    name = max(around, key=lambda each: len(each[0]), default=("", ""))[1]
    if name in _REMOTE:
        yield warning(
            f"{display_path(place)} is on a disk of another machine ({name})",
            "SQLite's files break there sooner or later",
            "`data_dir:` in culture.yaml, or CULTURE_HOME, names a folder on a disk of this one",
        )


def check_size(inventory: Inventory) -> Iterator[Finding]:
    """Report servers whose data folder is very large."""
    for server in inventory.servers:
        folder = server.config.data_dir
        used = sum(each.status.st_size for each in walk(folder))
        if used > _MUCH:
            yield hint(
                f"{display_path(folder)} holds {format_size(used)}",
                "backups and checks take long",
                "`culture history stats` shows what it is, `culture history prune` removes what is old",
            )


def _places(inventory: Inventory) -> list[Path]:
    """Return the home folder and the data folders of all servers, as far as they exist."""
    every = [inventory.home, *(server.config.data_dir for server in inventory.servers)]
    return [place for place in dict.fromkeys(every) if place.is_dir()]


def _disks(inventory: Inventory) -> list[Path]:
    """Return one folder for each disk that the home folder and the data folders are on."""
    return list({place.stat().st_dev: place for place in reversed(_places(inventory))}.values())


def _unescaped(place: str) -> str:
    return place.replace("\\040", " ").replace("\\134", "\\")


_OTHERS = 0o077
_OURS = ("data", "inbox", "log", "run", "secrets", "tls", "team")
"""Folders whose contents are for their owner alone."""


def check_home(inventory: Inventory) -> Iterator[Finding]:
    """Report a culture home folder that is missing or has wrong permissions."""
    try:
        status = inventory.home.stat()
    except FileNotFoundError:
        yield hint(f"there is no {display_path(inventory.home)} yet", "nothing was set up here", "`culture up`")
        return
    if not stat.S_ISDIR(status.st_mode):
        yield error(
            f"{display_path(inventory.home)} is not a folder",
            "nothing can be stored there",
            f"rename it: {_move(inventory.home)}",
        )
    elif status.st_uid != os.geteuid():
        yield _foreign([inventory.home], inventory.home)
    elif stat.S_IMODE(status.st_mode) & PRIVATE_DIRECTORY != PRIVATE_DIRECTORY:
        yield error(
            f"you may not read and write {display_path(inventory.home)} yourself ({_mode(status)})",
            "nothing works without it",
            f"chmod 700 {display_path(inventory.home)}",
            _opened(inventory.home),
        )
    elif stat.S_IMODE(status.st_mode) & _OTHERS:
        yield warning(
            f"others on this machine may look into {display_path(inventory.home)} ({_mode(status)})",
            "everything that agents say and know is in it",
            f"chmod 700 {display_path(inventory.home)}",
            _chmod([inventory.home]),
        )


def check_secrets(inventory: Inventory) -> Iterator[Finding]:
    """Report files with tokens, keys or passwords that others can read."""
    by_path = {entry.path: entry for entry in inventory.entries}
    for path in sorted(_secret_files(inventory)):
        try:
            status = by_path[path].status if path in by_path else path.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(status.st_mode):
            if path.parent == inventory.home / "secrets":
                yield warning(
                    f"{display_path(path)} is a symlink",
                    "a token belongs into a file of its own",
                    f"ls -l {display_path(path)}",
                )
            continue
        if stat.S_IMODE(status.st_mode) & _OTHERS:
            yield error(
                f"others on this machine may read {display_path(path)} ({_mode(status)})",
                "whoever reads it can log in with it, or take the server's place",
                f"chmod 600 {display_path(path)}",
                _chmod([path]),
            )


def _secret_files(inventory: Inventory) -> Iterator[Path]:
    yield from (inventory.home / "secrets").glob("*")
    yield from (inventory.home / "tls").glob("*.key")
    yield from (inventory.home / "data").glob("*/federation/links.json")
    yield paths.accounts_file()
    yield from _with_secrets()
    for server in inventory.servers:
        yield server.config.accounts_file
        yield book.path_of(server.config)
        yield from (each.tls.key for each in server.config.listen if each.tls)


def _with_secrets() -> Iterator[Path]:
    for file, load in ((paths.server_file(), load_server), (paths.agents_file(), load_agents)):
        try:
            if has_secrets(load()):
                yield file
        except ConfigError:
            # Unknown, so it counts as secret.
            yield file


def check_others(inventory: Inventory) -> Iterator[Finding]:
    """Report files without secrets that other users may access although they should not."""
    secret = set(_secret_files(inventory))
    readable = [each for each in inventory.entries if _is_open(each, inventory.home) and each.path not in secret]
    if readable:
        is_shut = not stat.S_IMODE(inventory.home.stat().st_mode) & _OTHERS
        say: Callable[..., Finding] = hint if is_shut else warning
        yield say(
            f"others may read {_named([each.path for each in readable])}",
            f"others cannot get there while {display_path(inventory.home)} is closed to them"
            if is_shut
            else "what agents and people say is in it",
            f"chmod -R go= {' '.join(display_path(inventory.home / name) for name in _tops(readable, inventory.home))}",
            _chmod([each.path for each in readable]),
        )


def _is_open(entry: FileEntry, home: Path) -> bool:
    mode = entry.status.st_mode
    is_kept = entry.path.is_relative_to(home) and entry.path.relative_to(home).parts[:1] in {(name,) for name in _OURS}
    return is_kept and (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and bool(stat.S_IMODE(mode) & _OTHERS)


def check_owners(inventory: Inventory) -> Iterator[Finding]:
    """Report files in the home folder that are another user's, as `sudo culture …` makes them."""
    foreign = [each.path for each in inventory.entries[1:] if each.status.st_uid != os.geteuid()]
    if foreign and inventory.entries[0].status.st_uid == os.geteuid():
        yield _foreign(foreign, inventory.home)


def _foreign(files: Sequence[Path], home: Path) -> Finding:
    return error(
        f"{_named(files)} {'belongs' if len(files) == 1 else 'belong'} to another user",
        "was it made with sudo? You cannot change it, and your server or agents fail on it",
        f'sudo chown -R "$(id -un)" {display_path(home)}',
    )


def _named(files: Sequence[Path]) -> str:
    more = f" and {counted(len(files) - 1, 'other', 'others')}" if len(files) > 1 else ""
    return f"{display_path(files[0])}{more}"


def _tops(entries: Sequence[FileEntry], home: Path) -> list[str]:
    return list(dict.fromkeys(each.path.relative_to(home).parts[0] for each in entries))


def _mode(status: os.stat_result) -> str:
    return f"mode {stat.S_IMODE(status.st_mode):04o}"


def _move(path: Path) -> str:
    return f"mv {display_path(path)} {display_path(path)}.old"


def _opened(folder: Path) -> Callable[[], None]:
    return lambda: folder.chmod(PRIVATE_DIRECTORY)


def _chmod(files: Sequence[Path]) -> Callable[[], None]:
    def mend() -> None:
        for path in files:
            status = path.lstat()
            if not stat.S_ISLNK(status.st_mode):
                path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)

    return mend


_YOUNG = 60.0
"""Seconds during which an unfinished file is normal."""
_HALF = re.compile(r"\.new$")
_PID = re.compile(r'"pid": ?(\d+)|^(\d+)\s*$')


def check_notes(inventory: Inventory) -> Iterator[Finding]:
    """Report pid files of processes that are gone, and pid files locked by another process."""
    for file in sorted((inventory.home / "run").glob("*.pid")):
        if file.is_symlink():
            yield warning(f"{display_path(file)} is a symlink", "culture never makes one", f"rm {display_path(file)}")
            continue
        note = note_of_holder(file)
        if note is None and file.exists():
            yield hint(
                f"{display_path(file)} was left behind by a process that is gone",
                "it does no harm: the next start reuses it",
                f"rm {display_path(file)}",
                _remove(file),
            )
        elif note is not None:
            yield from _of_the_dead(file, note)


def check_locks(inventory: Inventory) -> Iterator[Finding]:
    """Report data folders that a process holds locked although their server does not run."""
    for server in inventory.servers:
        file = server.config.data_dir / "lock"
        note = note_of_holder(file)
        if note is None or server.note is not None:
            continue
        pid = _pid(note)
        who = f"process {pid}" if pid else "a process"
        yield warning(
            f"{who} holds {display_path(file)}, and {server.config.name} does not run from this home folder",
            "another server uses the same data folder, or what it started has outlived it; this one cannot start",
            f"ps -fp {pid}" if pid and _lives(pid) else f"fuser -v {display_path(file)}",
        )


def check_half_written(inventory: Inventory) -> Iterator[Finding]:
    """Report temporary files of writes that were interrupted."""
    now = time.time()
    for entry in inventory.entries:
        if _HALF.search(entry.path.name) and entry.status.st_mtime < now - _YOUNG:
            yield hint(
                f"{display_path(entry.path)} was not finished",
                "writing it was interrupted; the file that it should replace is intact",
                f"rm {display_path(entry.path)}",
                _remove(entry.path),
            )


def _of_the_dead(file: Path, note: str) -> Iterator[Finding]:
    pid = _pid(note)
    if pid is not None and not _lives(pid):
        yield warning(
            f"{display_path(file)} names process {pid}, which is gone, but is still locked",
            "a process that it started has inherited the file; a new start is refused",
            f"fuser -v {display_path(file)}",
        )


def _pid(note: str) -> int | None:
    match = _PID.search(note)
    return int(match[1] or match[2]) if match else None


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _remove(file: Path) -> Callable[[], None]:
    def mend() -> None:
        if file.suffix != ".pid" or note_of_holder(file) is None:
            os.unlink(file)

    return mend
