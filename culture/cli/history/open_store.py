"""Opens the history of a server, which may be running."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from culture.cli.local_servers import require_clear_choice, with_running_options
from culture.cli.options import Choices
from culture.cli.output import fail
from culture.cli.server import pid_file
from culture.protocol.names import fold, nearest
from culture.server import database
from culture.skills.history.retention import PRIVATE
from culture.skills.history.sqlite.schema import STEPS
from culture.skills.history.store import Damaged, Kept, Misconfigured, Store, TooSlow, Unavailable
from culture.skills.history.stores import FILE, store_of, where

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class OpenHistory(NamedTuple):
    """An open history of a server; ``where`` names it for people.

    ``path``: its SQLite file, None for PostgreSQL.
    """

    store: Store
    where: str
    path: Path | None = None

    @property
    def size(self) -> int | None:
        """Size of the history's SQLite file and its journal in bytes; None with PostgreSQL."""
        if self.path is None:
            return None
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    @property
    def schema(self) -> int | None:
        """Version of the schema of the history's SQLite file; None with PostgreSQL."""
        return None if self.path is None else _schema(self.path)

    def entries(self, place: str | None = None) -> int:
        """Return the number of history entries of a channel; None: of all places.

        ``place``: the channel in lower case.
        """
        counted = (each for each in self.store.stats() if place is None or fold(each.name) == place)
        return sum(each.messages + each.events for each in counted)

    def place(self, channel: str) -> str:
        """Return the name under which the history stores a channel: the channel in lower case.

        The command ends if nothing is stored about the channel.
        """
        place = fold(channel)
        if not self.store.exists(place):
            close = nearest(channel, [each.name for each in self.store.stats() if each.name != PRIVATE])
            fail(f"nothing is stored about {channel}{f'; did you mean {close}?' if close else ''}")
        return place


@contextmanager
def open_history(choices: Choices) -> Iterator[OpenHistory]:
    """Yield the history of the server that the options select.

    The command ends if it cannot be opened.
    """
    settings = with_running_options(choices).load().config
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
        fail("the search took too long; add words, or a channel")
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGE:
            raise
        fail(f"{place} is damaged: {error}")


def _check(path: Path, server: str, choices: Choices) -> None:
    if not path.exists():
        require_clear_choice(choices)
        fail(f"{server} has stored nothing yet: there is no {path}")
    if _schema(path) < len(STEPS) and pid_file.running(server):
        fail(f"{server} runs with an older version of culture, so its history is not upgraded: restart the server")


def _schema(path: Path) -> int:
    with closing(database.open_reader(path)) as connection:
        return database.version(connection)


def is_private(stored: Kept) -> bool:
    """Whether a history entry belongs to a private conversation."""
    return stored.entry.is_private
