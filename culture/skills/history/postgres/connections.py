"""The way to the database: one connection that writes, a few that read, each made anew when it is lost."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from culture.skills.history.postgres.address import is_clear
from culture.skills.history.postgres.driver import Connection, asyncpg
from culture.skills.history.store import Misconfigured, Unavailable

_CONNECTING = 5.0  # seconds
_ANSWERING = 30.0
_LEAVING = 1.0
_READERS = 6
_UNCLEAR = "the address of the database cannot be read; in a password, write %2F for /, %3F for ?, %23 for #, %40 for @"
# Plans that fit the question asked: a channel of three messages and one of a million want different ones.
_COMMON = {"application_name": "culture", "jit": "off", "plan_cache_mode": "force_custom_plan"}
# Rows lie in the index in the order in which they are asked for: to collect and sort them would be the detour that
# the planner takes as long as it knows nothing of the tables.
_READER = {"enable_bitmapscan": "off"}
_WRITER = {"lock_timeout": "5s", "idle_in_transaction_session_timeout": "10s"}


class Connections:
    """Connections to one database; ``close`` ends them all."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._writer: Connection | None = None
        self._pool: Connection | None = None

    async def open(self) -> None:
        """Make ready; those that read are made when they are wanted."""
        self._pool = await asyncpg.create_pool(
            min_size=0, max_size=_READERS, connect=self._connect_reader, reset=_leave
        )

    async def writer(self) -> Connection:
        """The connection that writes."""
        if self._writer is None or self._writer.is_closed():
            self._writer = await self._connect({**_COMMON, **_WRITER})
            await self._writer.execute(
                "SELECT set_config('synchronous_commit', 'on', false)"
                " WHERE current_setting('synchronous_commit') = 'off'"
            )
        return self._writer

    def drop_writer(self) -> None:
        """Nobody knows what state it is in: the next write gets another."""
        if self._writer is not None:
            self._writer.terminate()
        self._writer = None

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[Connection]:
        """A connection to read with."""
        if self._pool is None:
            raise Unavailable("not open yet")
        async with self._pool.acquire(timeout=_CONNECTING) as connection:
            yield connection

    async def close(self) -> None:
        """Let go of them all."""
        for each in (self._writer, self._pool):
            if each is not None:
                try:
                    async with asyncio.timeout(_LEAVING):
                        await each.close()
                except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                    each.terminate()
        self._writer = self._pool = None

    async def _connect_reader(self, *args: object, **options: object) -> Connection:
        return await self._connect({**_COMMON, **_READER}, **options)

    async def _connect(self, settings: Mapping[str, str], **options: object) -> Connection:
        if not is_clear(self._url):
            raise Misconfigured(_UNCLEAR)
        try:
            return await asyncpg.connect(
                self._url, timeout=_CONNECTING, command_timeout=_ANSWERING, server_settings=dict(settings), **options
            )
        except ValueError:  # quotes what it could not read, which may be a password
            raise Misconfigured(_UNCLEAR) from None


async def _leave(connection: Connection) -> None:
    """What readers do leaves nothing behind to be reset."""
