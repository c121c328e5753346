"""Checks of the databases: damage, and files that grow."""

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from culture.cli.doctor.inventory import Inventory, display_path, walk
from culture.cli.doctor.runner import Finding, error, hint, ok, warning
from culture.cli.humanize import counted, format_size
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


def check_whole(inventory: Inventory) -> Iterator[Finding]:
    """Report damaged SQLite files, as far as they can be checked in a few seconds.

    `culture history verify` checks without a time limit.
    """
    deadline, unseen = time.monotonic() + _TIME, 0
    for file in _files(inventory):
        try:
            unseen += not _quick_check(file, deadline)
        except (_NotWhole, sqlite3.DatabaseError) as wrong:
            if not isinstance(wrong, sqlite3.OperationalError) or _IS_DAMAGE.search(str(wrong)):
                yield _damaged(file, str(wrong))
            elif not _IS_BUSY.search(str(wrong)):
                yield warning(
                    f"{display_path(file)} cannot be looked at: {wrong}",
                    "it may be damaged",
                    f"ls -l {display_path(file)}",
                )
    if unseen:
        yield ok(f"the databases are whole, as far as {_TIME:g} s went: {counted(unseen, 'was', 'were')} not finished")


class _NotWhole(Exception):
    """SQLite reports that a database file is damaged."""


def _quick_check(file: Path, deadline: float) -> bool:
    """Run SQLite's PRAGMA quick_check on a file; return False if time ran out.

    ``deadline``: in seconds of the monotonic clock. _NotWhole is raised if the file is damaged.
    """
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
    """Open a SQLite file read-only, without creating journal files if no process has it open."""
    is_open = file.with_name(f"{file.name}-wal").exists()
    more = "" if is_open else "&immutable=1"
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro{more}", uri=True, timeout=BUSY)


def _damaged(file: Path, why: str) -> Finding:
    is_inbox = file.parent.name == _INBOX
    stop = f"`culture stop {file.stem}`" if is_inbox else "`culture server stop`"
    what_else = (
        f"then mv {display_path(file)} {display_path(file)}.broken; the agent begins anew"
        if is_inbox
        else "`culture restore`"
    )
    return error(f"{display_path(file)} is damaged: {why}", "its contents cannot be trusted", f"{stop}, {what_else}")


def check_growth(inventory: Inventory) -> Iterator[Finding]:
    """Report large journals, ledgers, audit folders and logs."""
    for server in inventory.servers:
        folder = server.config.data_dir
        for file in folder.glob("*/*.db-wal"):
            if _size(file) > _LARGE_JOURNAL:
                yield warning(
                    f"{display_path(file)} has grown to {format_size(_size(file))}",
                    "a long read keeps it from being merged into its database",
                    f"`fuser -v {display_path(file)}` shows who; `culture server restart` merges it",
                )
        ledger = _size(folder / "ledger" / "ledger.db")
        if ledger > _LARGE_LEDGER:
            yield hint(
                f"the ledger of {server.config.name} holds {format_size(ledger)}",
                "it keeps the facts that agents published",
                "`ledger: {age: 7d}` in culture.yaml keeps less",
            )
        audit = server.config.audit
        used = sum(each.status.st_size for each in walk(audit.folder or folder / "audit"))
        if used > _NEARLY * audit.size * audit.files:
            yield hint(
                f"the audit of {server.config.name} is nearly full: {format_size(used)}",
                "the oldest file is removed with each new one",
                "keep copies elsewhere, or raise `audit: files:` in culture.yaml",
            )
    yield from _logs(inventory)


def _logs(inventory: Inventory) -> Iterator[Finding]:
    for file in sorted((inventory.home / "log").glob("*.log")):
        if _size(file) > _LARGE_LOG:
            yield hint(
                f"{display_path(file)} has grown to {format_size(_size(file))}",
                "nothing shortens it",
                f"truncate -s 0 {display_path(file)} (also while it is written)",
            )


def check_restore_leftovers(inventory: Inventory) -> Iterator[Finding]:
    """Report former data folders that `culture restore` has kept."""
    for folder in sorted((inventory.home / "data").glob("*.before-*")):
        used = sum(each.status.st_size for each in walk(folder))
        yield hint(
            f"{display_path(folder)} holds the data from before a restore, {format_size(used)}",
            "nothing uses it",
            f"rm -r {display_path(folder)}, once you have checked the restored data",
        )


def _files(inventory: Inventory) -> list[Path]:
    folders = [server.config.data_dir for server in inventory.servers]
    databases = [file for folder in dict.fromkeys(folders) for file in sorted(folder.glob("*/*.db"))]
    return [*databases, *sorted((inventory.home / _INBOX).glob("*.db"))]


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
