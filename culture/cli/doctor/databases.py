"""The databases: whether they are whole, and whether they grow."""

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from culture.cli.doctor.inventory import Inventory, shown, walked
from culture.cli.doctor.runner import Finding, error, hint, ok, warning
from culture.cli.humanize import counted, shown_size
from culture.server.database import BUSY

_TIME = 0.5
"""Seconds for all of them."""
_STEPS = 1000
_LARGE_JOURNAL = 200_000_000
_LARGE_LOG = 200_000_000
_LARGE_LEDGER = 1_000_000_000
_NEARLY = 0.9
_INBOX = "inbox"
_IS_DAMAGE = re.compile("malformed|corrupt|I/O error")
_IS_BUSY = re.compile("locked|busy")


def whole(scene: Inventory) -> Iterator[Finding]:
    """SQLite looks at each as far as the time goes; `culture history verify` takes the time it needs."""
    deadline, unseen = time.monotonic() + _TIME, 0
    for file in _files(scene):
        try:
            unseen += not _checked(file, deadline)
        except (_NotWhole, sqlite3.DatabaseError) as wrong:
            if not isinstance(wrong, sqlite3.OperationalError) or _IS_DAMAGE.search(str(wrong)):
                yield _broken(file, str(wrong))
            elif not _IS_BUSY.search(str(wrong)):
                yield warning(
                    f"{shown(file)} cannot be looked at: {wrong}", "it may be damaged", f"ls -l {shown(file)}"
                )
    if unseen:
        yield ok(f"the databases are whole, as far as {_TIME:g} s went: {counted(unseen, 'was', 'were')} not finished")


class _NotWhole(Exception):
    """What SQLite says of a file."""


def _checked(file: Path, deadline: float) -> bool:
    """Whether there was time for all of it."""
    with closing(_reader(file)) as connection:
        connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
        try:
            rows = [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")]
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                return False
            raise
    if rows != ["ok"]:
        raise _NotWhole(rows[0].splitlines()[-1] if rows else "no answer")
    return True


def _reader(file: Path) -> sqlite3.Connection:
    """One that nobody has open is read without SQLite's files beside it, so that nothing is made there."""
    is_open = file.with_name(f"{file.name}-wal").exists()
    more = "" if is_open else "&immutable=1"
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro{more}", uri=True, timeout=BUSY)


def _broken(file: Path, why: str) -> Finding:
    is_inbox = file.parent.name == _INBOX
    stop = f"`culture stop {file.stem}`" if is_inbox else "`culture server stop`"
    what_else = (
        f"then mv {shown(file)} {shown(file)}.broken; the agent begins anew" if is_inbox else "`culture restore`"
    )
    return error(f"{shown(file)} is damaged: {why}", "what is in it cannot be relied upon", f"{stop}, {what_else}")


def growth(scene: Inventory) -> Iterator[Finding]:
    """What grows without anybody looking."""
    for server in scene.servers:
        folder = server.config.data_dir
        for file in folder.glob("*/*.db-wal"):
            if _size(file) > _LARGE_JOURNAL:
                yield warning(
                    f"{shown(file)} has grown to {shown_size(_size(file))}",
                    "somebody has been reading for long, so that it cannot be folded into its database",
                    f"`fuser -v {shown(file)}` shows who; `culture server restart` folds it",
                )
        ledger = _size(folder / "ledger" / "ledger.db")
        if ledger > _LARGE_LEDGER:
            yield hint(
                f"the ledger of {server.config.name} holds {shown_size(ledger)}",
                "it keeps what agents told of themselves",
                "`ledger: {age: 7d}` in culture.yaml keeps less",
            )
        audit = server.config.audit
        used = sum(each.status.st_size for each in walked(audit.folder or folder / "audit"))
        if used > _NEARLY * audit.size * audit.files:
            yield hint(
                f"the audit of {server.config.name} is nearly full: {shown_size(used)}",
                "the oldest file is removed with each new one",
                "keep copies elsewhere, or raise `audit: files:` in culture.yaml",
            )
    yield from _logs(scene)


def _logs(scene: Inventory) -> Iterator[Finding]:
    for file in sorted((scene.home / "log").glob("*.log")):
        if _size(file) > _LARGE_LOG:
            yield hint(
                f"{shown(file)} has grown to {shown_size(_size(file))}",
                "nothing shortens it",
                f"truncate -s 0 {shown(file)} (also while it is written)",
            )


def before(scene: Inventory) -> Iterator[Finding]:
    """What restores have put aside."""
    for folder in sorted((scene.home / "data").glob("*.before-*")):
        used = sum(each.status.st_size for each in walked(folder))
        yield hint(
            f"{shown(folder)} is what was there before a restore, {shown_size(used)}",
            "nothing uses it",
            f"rm -r {shown(folder)}, once the restored one is right",
        )


def _files(scene: Inventory) -> list[Path]:
    folders = [server.config.data_dir for server in scene.servers]
    found = [file for folder in dict.fromkeys(folders) for file in sorted(folder.glob("*/*.db"))]
    return [*found, *sorted((scene.home / _INBOX).glob("*.db"))]


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
