"""Transactions of the one connection that writes, in turn with those of other servers.

Plain writing goes on beside other servers' writing. What must see all that the others wrote, and nothing half
written, is done alone.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from culture.skills.history.postgres.connections import Connections
from culture.skills.history.postgres.driver import Connection
from culture.skills.history.store import Unavailable

_LOCK = (0x63756C74, 1)
_BESIDE = f"BEGIN; SELECT pg_advisory_xact_lock_shared{_LOCK}"
_ALONE = f"BEGIN; SELECT pg_advisory_xact_lock{_LOCK}"

Result = TypeVar("Result")


class Turns:
    """Takes one at a time."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._mine = asyncio.Lock()

    async def take(self, act: Callable[[Connection], Awaitable[Result]], *, alone: bool) -> Result:
        """Do it in a transaction, which is on disk when this returns; nothing is left of one that fails."""
        async with self._mine:
            connection = await self._connections.writer()
            try:
                await connection.execute(_ALONE if alone else _BESIDE)
                result = await act(connection)
                if await connection.execute("COMMIT") != "COMMIT":
                    raise Unavailable("the transaction was rolled back")
                return result
            except BaseException:
                await self._undo(connection)
                raise

    async def _undo(self, connection: Connection) -> None:
        """A connection that cannot even do this is none."""
        try:
            await connection.execute("ROLLBACK", timeout=1.0)
        except BaseException:
            self._connections.drop_writer()
