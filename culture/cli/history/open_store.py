"""Opening a server's history beside the server itself, which may be running."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from culture.cli.options import Choices
from culture.cli.output import fail
from culture.cli.server import pid_file
from culture.cli.server.running_server import as_running, certainly
from culture.protocol.names import fold, nearest
from culture.server import database
from culture.skills.history.retention import PRIVATE
from culture.skills.history.sqlite.schema import STEPS
from culture.skills.history.store import Damaged, Kept, Misconfigured, Store, TooSlow, Unavailable
from culture.skills.history.stores import FILE, store_of, where

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class OpenHistory(NamedTuple):
    """A history that is open; ``path`` is its file, where it is one."""

    store: Store
    where: str
    path: Path | None = None

    @property
    def size(self) -> int | None:
        """How many bytes the file has, with what was not moved into it yet."""
        if self.path is None:
            return None
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    @property
    def schema(self) -> int | None:
        """The schema of the file."""
        return None if self.path is None else _schema(self.path)

    def entries(self, place: str | None = None) -> int:
        """How many entries there are, in a place or altogether."""
        counted = (each for each in self.store.stats() if place is None or fold(each.name) == place)
        return sum(each.messages + each.events for each in counted)

    def place(self, channel: str) -> str:
        """The channel's place; the command ends where nothing is known of it."""
        place = fold(channel)
        if not self.store.exists(place):
            close = nearest(channel, [each.name for each in self.store.stats() if each.name != PRIVATE])
            fail(f"nothing was ever kept of {channel}{f'; did you mean {close}?' if close else ''}")
        return place


@contextmanager
def opened(choices: Choices) -> Iterator[OpenHistory]:
    """The history of the server that is meant; what is wrong with it ends the command."""
    settings = as_running(choices).load().config
    folder = settings.data_dir / "history"
    path = folder / FILE if settings.history.store == "sqlite" else None
    place = "the history"
    try:
        place = where(settings.history, folder)
        if path is not None:
            _check(path, settings.name, choices)
        store = store_of(settings.history, folder)
        store.open()
        with closing(store):
            yield OpenHistory(store, place, path)
    except ImportError as error:
        fail(str(error))
    except Damaged as error:
        fail(f"{place} is damaged: {error}")
    except (Unavailable, Misconfigured, database.TooNew) as error:
        fail(f"{place}: {error}")
    except TooSlow:
        fail("the search was given up: it took too long; say more words, or a channel")
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGE:
            raise
        fail(f"{place} is damaged: {error}")


def _check(path: Path, server: str, choices: Choices) -> None:
    if not path.exists():
        certainly(choices)
        fail(f"{server} has kept nothing yet: there is no {path}")
    if _schema(path) < len(STEPS) and pid_file.running(server):
        fail(f"{server} runs with an older version of culture, and its history is not changed under it: restart it")


def _schema(path: Path) -> int:
    with closing(database.open_reader(path)) as connection:
        return database.version(connection)


def is_private(kept: Kept) -> bool:
    """Was it said in a private conversation?"""
    return kept.entry.is_private
