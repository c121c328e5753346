"""Another user of this machine who listens where a server of ours should be."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from culture.config import peer_uid
from culture.runtime import REAL, Runtime
from tests.support.waiting import PATIENCE

USER, UID = ("nobody", 65534) if os.geteuid() != 65534 else ("daemon", 1)
"""Somebody who does not run these tests."""
# Greets everybody with all that could make a client do something; prints what it is told.
_PROGRAM = """
import os, socket, sys, threading
host, port, uid, says = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
if uid:
    os.setgroups([])
    os.setuid(uid)
own = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
say = lambda text: os.write(1, (text + chr(10)).encode())
say(f"port {own.getsockname()[1]}")
def serve(client):
    try:
        client.sendall(says.encode())
        while data := client.recv(65536):
            say("told " + data.hex())
    except OSError:
        pass
    say("gone")
while True:
    client, _ = own.accept()
    say("came")
    threading.Thread(target=serve, args=(client,), daemon=True).start()
"""
GREETING = (
    ":spark 001 spark-ada :welcome\r\n:spark CAP * LS :sasl=PLAIN\r\n:spark 464 * :Password incorrect\r\n"
    "SERVER thor 1 :a server\r\nERROR :Wrong password\r\n"
)


class Squatter:
    """The process, and what it has seen."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._news = asyncio.Event()
        self.port = 0
        self.tries = 0
        """How many connections it took."""
        self.ended = 0
        """How many of them are over."""
        self.told = b""
        """What it was told on all of them."""
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            what, _, value = line.decode().strip().partition(" ")
            self.port = int(value) if what == "port" else self.port
            self.tries += what == "came"
            self.ended += what == "gone"
            self.told += bytes.fromhex(value) if what == "told" else b""
            self._news.set()

    async def until(self, fact: Callable[[], object]) -> None:
        """Wait until this is so; looked at whenever it sees something."""
        async with asyncio.timeout(PATIENCE):
            while not fact():
                self._news.clear()
                await self._news.wait()

    async def heard(self, tries: int) -> bytes:
        """What it was told in so many connections, each of which is over."""
        await self.until(lambda: self.ended >= tries and self.ended == self.tries)
        return self.told

    async def end(self) -> None:
        """Give the port back."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._reading


@asynccontextmanager
async def squatting(
    monkeypatch: pytest.MonkeyPatch, port: int = 0, says: str = GREETING, host: str = "127.0.0.1"
) -> AsyncIterator[Squatter]:
    """One on this port. Only root can be another user: everybody else is told by a double that it were one."""
    uid = UID if os.geteuid() == 0 else 0
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-S", "-c", _PROGRAM, host, str(port), str(uid), says, stdout=asyncio.subprocess.PIPE
    )
    squatter = Squatter(process)
    try:
        await squatter.until(lambda: squatter.port)
        if not uid:
            _pretend(monkeypatch, (host, squatter.port), process)
        yield squatter
    finally:
        await squatter.end()


def _pretend(monkeypatch: pytest.MonkeyPatch, place: peer_uid.Address, process: asyncio.subprocess.Process) -> None:
    real = peer_uid.socket_owner

    def socket_owner(
        client: peer_uid.Address, server: peer_uid.Address, *, runtime: Runtime = REAL
    ) -> tuple[int, int] | None:
        is_theirs = client == place and process.returncode is None
        return (UID, 1) if is_theirs else real(client, server, runtime=runtime)

    monkeypatch.setattr(peer_uid, "socket_owner", socket_owner)
