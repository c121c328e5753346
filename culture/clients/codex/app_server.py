"""One live process of Codex's app server: JSON-RPC lines in both directions."""

import asyncio
import json
import logging
import os
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from culture.clients.shared.queued import UNKNOWN_EXIT
from culture.clients.shared.turn import AgentDied
from culture.lib.process.pipes import ended, release, spawn

log = logging.getLogger(__name__)

PATIENCE = 60.0
LEAVING_PATIENCE = 2.0
LAST_WORDS = 20
LONGEST_WORDS = 300
# JSON-RPC error code: method not found.
UNKNOWN_METHOD = -32601
CLIENT = {"name": "culture", "title": "culture", "version": "1"}

Params = dict[str, Any]


class AppServerError(Exception):
    """The app server answered with an error, or not in time."""


class AppServer:
    """A running Codex app server; its messages are read all the time, so its death is noticed.

    ``heard`` is called with each notification; ``asked`` with each request, to which it returns the response;
    ``lost`` with the exit code.
    """

    def __init__(
        self,
        heard: Callable[[str, Params], Awaitable[None]],
        asked: Callable[[str, Params], Awaitable[Params | None]],
        lost: Callable[[int], Awaitable[None]],
    ) -> None:
        self.version = ""
        self._heard, self._asked, self._lost = heard, asked, lost
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[Params]] = {}
        self._answering: dict[int | str, asyncio.Task[None]] = {}
        self._words: deque[str] = deque(maxlen=LAST_WORDS)
        self._process: Process | None = None
        self._readers: list[asyncio.Task[None]] = []
        self._watcher: asyncio.Task[None] | None = None
        self._code: int | None = None

    async def start(self, argv: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> None:
        """Start the app server in its own process session and initialize the connection.

        ``AgentDied`` if it exits at once.
        """
        try:
            self._process = process = await spawn(argv, cwd, environment, stderr=PIPE)
        except OSError as error:
            raise AgentDied(UNKNOWN_EXIT, f"Codex cannot be started: {error}") from error
        self._readers = [
            asyncio.create_task(self._read(process), name="what Codex says"),
            asyncio.create_task(self._read_stderr(process), name="what Codex complains of"),
        ]
        self._watcher = asyncio.create_task(self._watch(process), name="the death of Codex")
        hello = {"clientInfo": CLIENT, "capabilities": {"experimentalApi": True}}
        answer = await self.request("initialize", hello)
        self.version = str(answer.get("userAgent", "")).partition("/")[2].partition(" ")[0]
        self._write({"method": "initialized"})

    async def request(self, method: str, params: Params) -> Params:
        """Send a JSON-RPC request and return its result; raises ``AppServerError`` or ``AgentDied``."""
        number = next(self._numbers)
        answer: asyncio.Future[Params] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            if self._code is not None:
                raise self._death(self._code)
            self._write({"id": number, "method": method, "params": params})
            async with asyncio.timeout(PATIENCE):
                return await answer
        except TimeoutError as error:
            raise AppServerError(f"{method}: no answer within {PATIENCE:g} s") from error
        finally:
            del self._waiting[number]

    def withdraw(self, number: int | str) -> None:
        """Cancel the pending answer to the app server's request with this number."""
        if (answering := self._answering.get(number)) is not None:
            answering.cancel()

    async def leave(self) -> None:
        """Close the app server's input, and kill its process after a timeout.

        Processes that it started are not ended here.
        """
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(LEAVING_PATIENCE):
                    await ended(self._process)
        ending = [*self._readers, *self._answering.values()]
        if self._watcher is not None and self._code is None:
            # After a death it is reporting it, and must not be cancelled.
            ending.append(self._watcher)
        for task in ending:
            if task is not asyncio.current_task():
                task.cancel()
                await asyncio.wait([task])
        if self._process is not None:
            await release(self._process)

    def _write(self, message: Params) -> None:
        assert self._process is not None and self._process.stdin is not None
        if not self._process.stdin.is_closing():
            self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _read(self, process: Process) -> None:
        assert process.stdout is not None
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError as error:
                log.warning("a line of Codex is too long: %s", error)
                continue
            if not line:
                return
            try:
                await self._take(json.loads(line))
            except Exception:
                log.exception("cannot handle a message of Codex")

    async def _take(self, message: Params) -> None:
        match message:
            case {"id": int() | str() as number, "method": str(method)}:
                answering = self._answer(number, method, message.get("params") or {})
                self._answering[number] = asyncio.create_task(answering, name=f"an answer to Codex: {method}")
            case {"method": "serverRequest/resolved", "params": {"requestId": int() | str() as number}}:
                self.withdraw(number)
            case {"method": str(method)}:
                await self._heard(method, message.get("params") or {})
            case {"id": int(number)} if (waiting := self._waiting.get(number)) is not None and not waiting.done():
                if (error := message.get("error")) is not None:
                    waiting.set_exception(AppServerError(str(error.get("message", error))))
                else:
                    waiting.set_result(message.get("result") or {})

    async def _answer(self, number: int | str, method: str, params: Params) -> None:
        """Send the response to a request of the app server, however long people need for a decision.

        ``number``: the id of the request.
        """
        try:
            if (result := await self._asked(method, params)) is not None:
                self._write({"id": number, "result": result})
            else:
                self._write({"id": number, "error": {"code": UNKNOWN_METHOD, "message": f"no {method} here"}})
        except Exception as error:
            log.exception("cannot answer the request %s of Codex", method)
            self._write({"id": number, "error": {"code": UNKNOWN_METHOD, "message": str(error)}})
        finally:
            del self._answering[number]

    async def _read_stderr(self, process: Process) -> None:
        assert process.stderr is not None
        while True:
            with suppress(ValueError):
                if not (line := await process.stderr.readline()):
                    return
                self._words.append(line[:LONGEST_WORDS].decode(errors="replace").rstrip())
                log.debug("codex: %s", self._words[-1])

    async def _watch(self, process: Process) -> None:
        """Wait until the app server exits; then fail the pending requests and call ``lost``."""
        self._code = await ended(process) or UNKNOWN_EXIT
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(self._death(self._code))
        await self._lost(self._code)

    def _death(self, code: int) -> AgentDied:
        return AgentDied(code, "\n".join([f"Codex ended with code {code}", *self._words]))


def with_tools(environment: Mapping[str, str], folder: Path | None) -> dict[str, str]:
    """Return the environment with the folder of Codex's bundled programs added to PATH."""
    if folder is None:
        return dict(environment)
    path = environment.get("PATH") or os.environ.get("PATH", "")
    return {**environment, "PATH": os.pathsep.join(part for part in (str(folder), path) if part)}
