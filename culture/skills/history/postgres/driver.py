"""asyncpg, where it is installed: it comes with the extra ``postgres``."""

from typing import Any

from culture.config.installation import installation

try:
    import asyncpg
except ImportError as error:
    raise ImportError(f"a history in PostgreSQL needs asyncpg: {installation().extend('postgres')}") from error

__all__ = ["Connection", "Record", "asyncpg"]

Connection = Any
Record = Any
