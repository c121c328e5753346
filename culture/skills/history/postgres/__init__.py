"""The history in a PostgreSQL database, which several servers may share."""

from culture.skills.history.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
