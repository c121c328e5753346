"""Asking a daemon something over its socket, and waiting for the answer."""

import os
import socket
import stat
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from culture.clients.shared.ipc import (
    MARGIN,
    WORK_LIMIT,
    BadLine,
    Lines,
    Request,
    Response,
    Whisper,
    decode_answer,
    encode,
)
from culture.config.paths import agent_socket, earlier_socket
from culture.protocol.vocabulary import Environment

PATIENCE = WORK_LIMIT + MARGIN
_CHUNK = 1 << 16
_LONGEST_ANSWER = 1 << 28
_RETRY = 0.02
_CREDENTIALS = struct.Struct("3i")


class CallFailed(Exception):
    """The daemon refused, or did not answer; the text says why."""


class NoDaemon(CallFailed):
    """Nobody is there to be asked."""


class NoNick(CallFailed):
    """It is not known whose daemon is meant."""


def own_nick() -> str:
    """The agent that calls: what its daemon put into ``CULTURE_NICK``."""
    nick = os.environ.get(Environment.NICK)
    if not nick:
        raise NoNick(
            f"{Environment.NICK} is not set: the daemon sets it for its agent; by hand, set it to the agent's nick"
        )
    return nick


def patience_for(timeout: float | None) -> float | None:
    """How long to wait for the answer to a question: always longer than the daemon does.

    Without a timeout the daemon's settings say when a question ends, and the client waits as long as the daemon lives.
    """
    return None if timeout is None else timeout + PATIENCE


def call(
    nick: str,
    type: str,
    fields: Mapping[str, object] | None = None,
    *,
    hear: Callable[[Whisper], None] = lambda whisper: None,
    patience: float | None = PATIENCE,
) -> object:
    """The data of the response; CallFailed when there is none. Whispers that come before it go to ``hear``."""
    deadline = None if patience is None else time.monotonic() + patience
    request = Request(type, _new_id(), fields or {})
    with _connected(nick) as wire:
        try:
            wire.sendall(encode(request))
        except (BrokenPipeError, ConnectionResetError):
            # It hung up on us; why, is still to be read.
            pass
        for line in _lines(wire, deadline):
            answer = _decoded(line)
            if isinstance(answer, Whisper):
                hear(answer)
            elif answer.id in (request.id, None):
                if answer.ok:
                    return answer.data
                raise CallFailed(answer.error or "the daemon refused")
    raise CallFailed(f"the daemon of {nick} ended before it answered")


def _new_id() -> str:
    """A random UUID; the module of that name takes longer to load than everything else here."""
    digits = bytearray(os.urandom(16))
    digits[6], digits[8] = digits[6] & 0x0F | 0x40, digits[8] & 0x3F | 0x80
    text = digits.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _connected(nick: str) -> socket.socket:
    try:
        path = find_socket(nick)
    except ValueError as wrong:
        raise CallFailed(str(wrong)) from None
    not_running = f"the daemon of {nick} is not running: start it with: culture start {nick}"
    wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        check_owner(path)
        _connect(wire, path)
        check_listener(wire)
    except (FileNotFoundError, ConnectionRefusedError):
        wire.close()
        raise NoDaemon(not_running) from None
    except OSError as error:
        wire.close()
        raise CallFailed(f"{path}: {error.strerror or error}") from None
    return wire


def find_socket(nick: str) -> Path:
    """The socket of an agent's daemon, or of one of an earlier version that still runs; ValueError for no nick."""
    path, before = agent_socket(nick), earlier_socket(nick)
    is_before = before is not None and not path.exists() and before.is_socket() and not before.is_symlink()
    return before if before is not None and is_before else path


def check_owner(path: Path) -> None:
    """Raise OSError for what is no socket of this user, a symlink included: others may make files in that folder."""
    status = path.lstat()
    if not stat.S_ISSOCK(status.st_mode):
        raise OSError("is no socket; it is not used")
    if status.st_uid != os.geteuid():
        raise OSError("belongs to another user; it is not used")


def check_listener(wire: socket.socket) -> None:
    """Raise OSError where another user's process listens, by the kernel; the file may have been swapped meanwhile."""
    if hasattr(socket, "SO_PEERCRED"):
        _, uid, _ = _CREDENTIALS.unpack(wire.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        if uid != os.geteuid():
            raise OSError("belongs to another user; it is not used")


def _connect(wire: socket.socket, path: Path) -> None:
    wire.settimeout(PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return wire.connect(str(path))
        except BlockingIOError:
            # The daemon's backlog is full, which a Unix socket does not wait for by itself.
            if time.monotonic() > deadline:
                raise
            time.sleep(_RETRY)


def _lines(wire: socket.socket, deadline: float | None) -> Iterator[bytes]:
    lines = Lines(_LONGEST_ANSWER)
    while True:
        wire.settimeout(None if deadline is None else max(deadline - time.monotonic(), 0.001))
        try:
            chunk = wire.recv(_CHUNK)
        except TimeoutError:
            raise CallFailed("the daemon does not answer") from None
        except ConnectionResetError:
            return
        if not chunk:
            return
        yield from (line for line in lines.feed(chunk) if line is not None)


def _decoded(line: bytes) -> Response | Whisper:
    try:
        return decode_answer(line)
    except BadLine as bad:
        raise CallFailed(f"the daemon's answer cannot be read: {bad}") from None
