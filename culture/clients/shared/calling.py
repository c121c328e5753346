"""Asking a daemon something from within a loop; what ``skill.call`` is for everybody else."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from culture.clients.shared.ipc import STOPPING, BadLine, Lines, Request, Response, decode_answer, encode
from culture.clients.shared.skill.call import PATIENCE, CallFailed, NoDaemon, check_listener, check_owner, find_socket
from culture.runtime import REAL, Runtime

_CHUNK = 1 << 16
_LONGEST_ANSWER = 1 << 28


async def call(
    nick: str,
    type: str,
    fields: Mapping[str, object] | None = None,
    patience: float | None = PATIENCE,
    *,
    runtime: Runtime = REAL,
) -> object:
    """The data of the response; CallFailed when there is none, NoDaemon when nobody is there, or any more."""
    try:
        async with asyncio.timeout(patience):
            return await _ask(nick, Request(type, runtime.token_hex(16), fields or {}))
    except TimeoutError:
        raise CallFailed(f"the daemon of {nick} does not answer") from None
    except (FileNotFoundError, ConnectionError):
        raise NoDaemon(f"the daemon of {nick} is not running") from None
    except (OSError, ValueError) as error:
        raise CallFailed(f"the daemon of {nick} cannot be asked: {error}") from None


async def _ask(nick: str, request: Request) -> object:
    path = find_socket(nick)
    check_owner(path)
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        check_listener(writer.get_extra_info("socket"))
        with suppress(ConnectionError):
            # It may hang up on us; why, is still to be read.
            writer.write(encode(request))
            await writer.drain()
        return _data(nick, await _response(nick, reader, request.id))
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def _response(nick: str, reader: asyncio.StreamReader, id: str) -> Response:
    lines = Lines(_LONGEST_ANSWER)
    while chunk := await reader.read(_CHUNK):
        for line in lines.feed(chunk):
            answer = _decoded(line) if line is not None else None
            if isinstance(answer, Response) and answer.id in (id, None):
                return answer
    raise NoDaemon(f"the daemon of {nick} ended before it answered")


def _decoded(line: bytes) -> object:
    try:
        return decode_answer(line)
    except BadLine as bad:
        raise CallFailed(f"the daemon's answer cannot be read: {bad}") from None


def _data(nick: str, response: Response) -> object:
    if response.ok:
        return response.data
    if response.error == STOPPING:
        raise NoDaemon(f"the daemon of {nick} is stopping")
    raise CallFailed(response.error or "the daemon refused")
