"""Every kind of store there is: the same tests are run against each."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from culture.skills.history.postgres import PostgresStore
from culture.skills.history.sqlite import SQLiteStore
from culture.skills.history.store import Store
from tests.support.postgres import postgres

Factory = Callable[[Path], AbstractContextManager[Store]]
"""Given a folder of its own: a store with nothing in it, opened, and closed at the end."""


@contextmanager
def sqlite(folder: Path) -> Iterator[Store]:
    store = SQLiteStore(folder / "history.db")
    store.open()
    try:
        yield store
    finally:
        store.close()


@contextmanager
def postgresql(folder: Path) -> Iterator[Store]:
    with postgres().corner() as address:
        store = PostgresStore(address)
        store.open()
        try:
            yield store
        finally:
            store.close()


FACTORIES: dict[str, Factory] = {"postgresql": postgresql, "sqlite": sqlite}
