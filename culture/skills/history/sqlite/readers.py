"""Connections that read: as many as are reading at the same time, whichever threads they are."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from culture.runtime import REAL, Runtime
from culture.server.database import open_reader
from culture.skills.history.sqlite.reading import Reading
from culture.skills.history.store import Unavailable


class Readers:
    """Lends them. One that is lent when all are closed is closed when it comes back."""

    def __init__(self, path: Path, check: Callable[[], None], runtime: Runtime = REAL) -> None:
        self._path = path
        self._check = check
        self._runtime = runtime
        self._lock = runtime.lock()
        self._idle: list[Reading] = []
        self._generation = 0
        self._is_open = False

    def open(self) -> None:
        """Lend from now on."""
        with self._lock:
            self._is_open = True

    def close(self) -> None:
        """Lend none any more."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._is_open = False
            self._generation += 1
        for reading in idle:
            reading.connection.close()

    @contextmanager
    def lend(self) -> Iterator[Reading]:
        """One to read with; all that it reads is of one moment."""
        with self._lock:
            if not self._is_open:
                raise Unavailable("the history is closed")
            generation = self._generation
            reading = self._idle.pop() if self._idle else None
        if reading is None:
            self._check()  # another file in its place has nothing to do with what is next to it
            reading = Reading(open_reader(self._path, runtime=self._runtime), runtime=self._runtime)
        try:
            reading.connection.execute("BEGIN")
            yield reading
        finally:
            self._take_back(reading, generation)

    def _take_back(self, reading: Reading, generation: int) -> None:
        if reading.connection.in_transaction:
            reading.connection.execute("ROLLBACK")
        with self._lock:
            if generation == self._generation:
                self._idle.append(reading)
                return
        reading.connection.close()
