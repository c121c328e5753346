"""Commands that fork from an interpreter which has loaded the command line already."""

import asyncio
import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Protocol

from tests.support.fork_server import MOST
from tests.support.waiting import PATIENCE

_REPLY = 32
_SUPPORT = Path(__file__).parent
# Loading a model takes longer than most commands.
WITHOUT_MODEL = _SUPPORT / "withoutmodel"
PYTHONPATH = os.pathsep.join((str(_SUPPORT.parents[1]), str(WITHOUT_MODEL)))
"""This tree, also where another one is installed."""


def network() -> str:
    """The network namespace of this thread; empty on systems without."""
    try:
        return os.readlink("/proc/thread-self/ns/net")
    except OSError:
        return ""


NETWORK = network()
"""The namespace that fork servers are in: a test in one of its own starts its commands for real."""


class Command(Protocol):
    """What a started command can do, forked or not: a part of asyncio's Process."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    @property
    def stdout(self) -> asyncio.StreamReader | None: ...
    def send_signal(self, signal: int) -> None: ...
    def kill(self) -> None: ...
    async def wait(self) -> int: ...
    async def communicate(self, input: bytes | None = None) -> tuple[bytes, bytes]: ...


class Forked:
    """A process that a fork server has made, with the members of asyncio's Process that the tests need."""

    def __init__(
        self,
        pid: int,
        reply: socket.socket,
        stdout: asyncio.StreamReader,
        stderr: asyncio.StreamReader | None,
        stdin: int | None,
    ) -> None:
        self.pid = pid
        self.stdout = stdout
        self._reply = reply
        self._stderr = stderr
        self._stdin = stdin
        self._code: int | None = None

    @property
    def returncode(self) -> int | None:
        if self._code is None:
            try:
                self._note(self._reply.recv(_REPLY))
            except BlockingIOError:
                return None
        return self._code

    async def wait(self) -> int:
        if self._code is None:
            self._note(await asyncio.get_running_loop().sock_recv(self._reply, _REPLY))
        assert self._code is not None
        return self._code

    def _note(self, answer: bytes) -> None:
        assert answer, "the fork server has ended"
        self._code = int(answer)
        self._reply.close()

    async def communicate(self, input: bytes | None = None) -> tuple[bytes, bytes]:
        try:
            if self._stdin is not None:
                _type(self._stdin, input or b"")
            out = await self.stdout.read()
            err = await self._stderr.read() if self._stderr is not None else b""
            await self.wait()
        except BaseException:
            self.kill()
            raise
        return out, err

    def send_signal(self, signal: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@functools.cache
def _server(path: str) -> socket.socket:
    """The socket of a fork server whose modules come from here; it lives as long as this process."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.fork_server", str(its.fileno())],
            env={"PYTHONPATH": path, "PATH": os.defpath},
            pass_fds=(its.fileno(),),
            stdin=subprocess.DEVNULL,
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


async def fork(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path,
    *,
    has_input: bool,
    errors_apart: bool,
    module: str = "culture",
) -> Forked:
    """Fork ``python -m MODULE`` with exactly these arguments and this environment, its stdin a pipe or empty.

    ``errors_apart``: stderr is not one with stdout.
    """
    out, its_out = os.pipe()
    err, its_err = os.pipe() if errors_apart else (None, os.dup(its_out))
    its_in, given = os.pipe() if has_input else (os.open(os.devnull, os.O_RDONLY), None)
    reply = _ask(module, arguments, environment, cwd, (its_in, its_out, its_err))
    for each in (its_in, its_out, its_err):
        os.close(each)
    reply.setblocking(False)
    async with asyncio.timeout(PATIENCE):
        pid = int(await asyncio.get_running_loop().sock_recv(reply, _REPLY))
    return Forked(pid, reply, await _reader(out), await _reader(err) if err is not None else None, given)


def run(
    arguments: Sequence[str], environment: Mapping[str, str], cwd: Path, typed: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a forked ``culture`` to its end; what is typed comes through a pipe."""
    its_in, given = os.pipe() if typed is not None else (os.open(os.devnull, os.O_RDONLY), None)
    with TemporaryFile("w+", encoding="utf-8") as out, TemporaryFile("w+", encoding="utf-8") as err:
        with _ask("culture", arguments, environment, cwd, (its_in, out.fileno(), err.fileno())) as reply:
            os.close(its_in)
            if given is not None:
                _type(given, (typed or "").encode())
            reply.settimeout(PATIENCE)
            pid = int(reply.recv(_REPLY))
            try:
                code = int(reply.recv(_REPLY))
            except BaseException:
                os.kill(pid, signal.SIGKILL)
                raise
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(["culture", *arguments], code, out.read(), err.read())


def _ask(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path,
    streams: tuple[int, int, int],
) -> socket.socket:
    """Have a process made with these streams; a socket from which its id comes, and how it ended."""
    request = {
        "module": module,
        "arguments": arguments,
        "environment": dict(environment),
        "cwd": str(cwd),
        "umask": _umask(),
    }
    text = json.dumps(request).encode()
    assert len(text) <= MOST
    reply, its_reply = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its_reply:
        socket.send_fds(_server(environment["PYTHONPATH"]), [text], [*streams, its_reply.fileno()])
    return reply


def _type(pipe: int, text: bytes) -> None:
    """Write into the stdin of a process, which may have ended without it, and close it."""
    with suppress(BrokenPipeError):
        assert os.write(pipe, text) == len(text), "more than a pipe takes at once"
    os.close(pipe)


def _umask() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("\nUmask:")[2].split()[0], 8)


async def _reader(pipe: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(pipe, "rb", 0))
    return reader
