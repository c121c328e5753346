"""The history in one SQLite file."""

from culture.skills.history.sqlite.store import SQLiteStore

__all__ = ["SQLiteStore"]
