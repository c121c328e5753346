"""The model server: one listener on the loopback, one module for each API it speaks."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.support.model import anthropic, chat, gemini, http, responses
from tests.support.model.journal import Journal
from tests.support.model.pace import Broken, Pace
from tests.support.model.told import UNTOLD

Handler = Callable[[http.Asked, http.Reply, Journal, Pace], Awaitable[None]]

# Method and path → who answers; a further API adds its rows here.
ROUTES: dict[tuple[str, str], Handler] = {**anthropic.ROUTES, **chat.ROUTES, **responses.ROUTES, **gemini.ROUTES}

_TOO_LONG: dict[str, Callable[[http.Reply], None]] = {"/v1/responses": responses.too_long}


class Model:
    """A running model server. ``url`` is its address, ``journal`` what it was asked."""

    def __init__(self) -> None:
        self.journal = Journal()
        self.url = ""
        self.window: int | None = None
        """A request of more bytes is too long for it; None takes any."""
        self.headers: dict[str, str] = {}
        """Sent with every response."""
        self._gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen on a port of the system's choice."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=1 << 24)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Close every connection."""
        assert self._server is not None
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def release(self, name: str) -> None:
        """Let the answers go on that stand at ``[[wait name]]``, now and later."""
        self._gates[name].set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._converse(reader, writer)
        except (asyncio.CancelledError, ConnectionError, Broken):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (asked := await http.read(reader)) is not None:
            self.journal.paths.append(asked.path)
            reply = http.Reply(writer, self.headers)
            handler = ROUTES.get((asked.method, asked.path))
            if self.window is not None and len(asked.content) > self.window:
                _TOO_LONG.get(asked.path, anthropic.too_long)(reply)
            elif handler is None:
                reply.json({"error": {"type": "not_found_error", "message": asked.path}}, 404)
            else:
                await handler(asked, reply, self.journal, Pace(self._gates, writer))
            await writer.drain()


@asynccontextmanager
async def model_server() -> AsyncIterator[Model]:
    """A model server for the time of a test, which fails where a member's script used what it was not told."""
    model = Model()
    await model.start()
    try:
        yield model
    finally:
        await model.stop()
    assert not model.journal.untold, f"{UNTOLD}: {', '.join(sorted(set(model.journal.untold)))}"
