"""Which store the settings ask for."""

from collections.abc import Callable
from pathlib import Path

from culture.config.skills import HistoryConfig
from culture.runtime import REAL, Runtime
from culture.skills.history.sqlite import SQLiteStore
from culture.skills.history.store import Store

FILE = "history.db"
"""The history's file in the skill's folder, where it is kept in SQLite."""


def store_of(
    settings: HistoryConfig,
    folder: Path,
    name: str = "",
    now: Callable[[], float] | None = None,
    runtime: Runtime = REAL,
) -> Store:
    """The store of the server of this name, not opened yet."""
    if settings.store == "sqlite":
        return SQLiteStore(folder / FILE, now, runtime=runtime)
    # Only for those who want it: the driver is an extra.
    from culture.skills.history.postgres import PostgresStore

    return PostgresStore(settings.store, name, now, runtime=runtime)


def where(settings: HistoryConfig, folder: Path) -> str:
    """Where that is, as people may see it."""
    if settings.store == "sqlite":
        return str(folder / FILE)
    from culture.skills.history.postgres.address import shown

    return shown(settings.store)
