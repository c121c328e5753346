"""asyncpg, where it is installed: it comes with the extra ``postgres``."""

from typing import Any

try:
    import asyncpg
except ImportError as error:
    raise ImportError("a history in PostgreSQL needs asyncpg: pip install 'culture[postgres]'") from error

__all__ = ["Connection", "Record", "asyncpg"]

Connection = Any
Record = Any
