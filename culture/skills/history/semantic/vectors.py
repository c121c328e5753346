"""The file of vectors beside the history: which message has one, of which model."""

import logging
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from culture.runtime import REAL, Runtime
from culture.server.database import Step, TooNew, open_database, open_reader
from culture.skills.history.semantic.codes import Codes
from culture.skills.history.sqlite.errors import translated

log = logging.getLogger(__name__)

STEPS: tuple[Step, ...] = (
    """
    CREATE TABLE models (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        dimension INTEGER NOT NULL,
        UNIQUE (name, dimension)
    );
    CREATE TABLE vectors (
        position INTEGER PRIMARY KEY,
        place TEXT NOT NULL,
        model INTEGER NOT NULL REFERENCES models (id),
        vector BLOB NOT NULL
    );
    CREATE INDEX vectors_in_place ON vectors (place, position)
    """,
)


class Row(NamedTuple):
    """A message's vector; an empty one for a text that has none."""

    position: int
    place: str
    vector: bytes


class Vectors:
    """The file; everything but ``load`` is called from one thread."""

    def __init__(self, path: Path, runtime: Runtime = REAL) -> None:
        self._path = path
        self._runtime = runtime
        with translated():
            self._connection = _opened(path, runtime=runtime)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def model(self, name: str, dimension: int) -> int:
        """The number of a model."""
        with translated():
            self._connection.execute("INSERT OR IGNORE INTO models (name, dimension) VALUES (?, ?)", (name, dimension))
            row = self._connection.execute(
                "SELECT id FROM models WHERE name = ? AND dimension = ?", (name, dimension)
            ).fetchone()
        return int(row[0])

    def between(self, after: int, last: int) -> dict[int, tuple[str, int]]:
        """What there is behind a position and up to another: place and model by position."""
        with translated():
            rows = self._connection.execute(
                "SELECT position, place, model FROM vectors WHERE position > ? AND position <= ?", (after, last)
            )
            return {position: (place, model) for position, place, model in rows}

    def tip(self) -> int:
        """The last position that has a vector."""
        with translated():
            return int(self._connection.execute("SELECT coalesce(max(position), 0) FROM vectors").fetchone()[0])

    def change(self, model: int, rows: Sequence[Row], gone: Iterable[int], moved: Iterable[tuple[str, int]]) -> None:
        """Put these in (for those of another model too), take those out, note where others are now."""
        connection = self._connection
        with translated(), connection:
            connection.execute("BEGIN IMMEDIATE")
            if rows:
                connection.execute(
                    f"INSERT OR REPLACE INTO vectors VALUES {','.join(['(?, ?, ?, ?)'] * len(rows))}",
                    tuple(value for row in rows for value in (row.position, row.place, model, row.vector)),
                )
            connection.executemany("DELETE FROM vectors WHERE position = ?", [(position,) for position in gone])
            connection.executemany("UPDATE vectors SET place = ? WHERE position = ?", moved)

    def move(self, old: str, new: str) -> None:
        """A channel has another name."""
        with translated():
            self._connection.execute("UPDATE vectors SET place = ? WHERE place = ?", (new, old))

    def prune(self, place: str, before: int) -> None:
        """Take out what is older than a position in a channel."""
        with translated():
            self._connection.execute("DELETE FROM vectors WHERE place = ? AND position < ?", (place, before))

    def load(self, model: int, dimension: int, place: str, most: int) -> tuple[NDArray[np.int64], Codes]:
        """The newest vectors of a place with their positions, newest first; called from any thread."""
        with translated(), closing(open_reader(self._path, runtime=self._runtime)) as reader:
            rows = reader.execute(
                "SELECT position, vector FROM vectors WHERE place = ? AND model = ? AND length(vector) = ?"
                " ORDER BY position DESC LIMIT ?",
                (place, model, dimension, most),
            ).fetchall()
        codes = np.frombuffer(b"".join(vector for _, vector in rows), np.int8)
        return np.array([position for position, _ in rows], np.int64), codes.reshape(-1, dimension)


def packed(codes: Codes) -> Sequence[bytes]:
    """What is stored of each row: nothing of one that is all zeros."""
    return [row.tobytes() if row.any() else b"" for row in codes]


def _opened(path: Path, runtime: Runtime) -> sqlite3.Connection:
    """The file; one that cannot be read is made anew, since everything in it can be."""
    try:
        connection = _connected(path, runtime=runtime)
    except sqlite3.OperationalError:
        raise
    except (sqlite3.DatabaseError, TooNew) as error:
        log.warning("%s cannot be used and is made anew: %s", path, error)
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        connection = _connected(path, runtime=runtime)
    return connection


def _connected(path: Path, runtime: Runtime) -> sqlite3.Connection:
    connection = open_database(path, STEPS, runtime=runtime)
    connection.execute("PRAGMA synchronous=NORMAL")  # what a power cut takes is made again
    connection.execute("PRAGMA secure_delete=ON")
    return connection
