"""Which store the settings ask for."""

from pathlib import Path

from culture.config.skills import History
from culture.skills.history.sqlite import SQLiteStore
from culture.skills.history.store import Store

FILE = "history.db"
"""The history's file in the skill's folder, where it is kept in SQLite."""


def store_of(settings: History, folder: Path) -> Store:
    """The store, not opened yet."""
    if settings.store == "sqlite":
        return SQLiteStore(folder / FILE)
    # Only for those who want it: the driver is an extra.
    from culture.skills.history.postgres import PostgresStore

    return PostgresStore(settings.store)


def where(settings: History, folder: Path) -> str:
    """Where that is, as people may see it."""
    if settings.store == "sqlite":
        return str(folder / FILE)
    from culture.skills.history.postgres.address import shown

    return shown(settings.store)
