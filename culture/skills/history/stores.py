"""Which store the settings ask for."""

import time
from collections.abc import Callable
from pathlib import Path

from culture.config.skills import HistoryConfig
from culture.skills.history.sqlite import SQLiteStore
from culture.skills.history.store import Store

FILE = "history.db"
"""The history's file in the skill's folder, where it is kept in SQLite."""


def store_of(settings: HistoryConfig, folder: Path, name: str = "", now: Callable[[], float] = time.time) -> Store:
    """The store of the server of this name, not opened yet."""
    if settings.store == "sqlite":
        return SQLiteStore(folder / FILE, now)
    # Only for those who want it: the driver is an extra.
    from culture.skills.history.postgres import PostgresStore

    return PostgresStore(settings.store, name, now)


def where(settings: HistoryConfig, folder: Path) -> str:
    """Where that is, as people may see it."""
    if settings.store == "sqlite":
        return str(folder / FILE)
    from culture.skills.history.postgres.address import shown

    return shown(settings.store)
