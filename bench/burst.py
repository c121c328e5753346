"""How long it takes until a server that is linked knows everybody on the other one, and how it answers meanwhile."""

import asyncio
import re
import time
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from secrets import token_hex

from bench.linked import PATIENCE, Talker, dialling, waiting

_AT_ONCE = 200
_LUSERS = re.compile(r" 251 \S+ :There are (\d+) users and (\d+)")
_CHANNELS = re.compile(r" 254 \S+ (\d+) ")


@dataclass(frozen=True)
class Burst:
    """From the start of the new server, as its log has it, until it knows everything."""

    users: int
    channels: int
    seconds: float
    longest_answer_ms: float
    """The longest that LUSERS took on the new server meanwhile."""


class _User(asyncio.Protocol):
    """Comes in, joins a channel and stays."""

    def __init__(self, number: int, channel: str) -> None:
        self._hello = f"NICK spark-u{number}\r\nUSER bench 0 * :Bench\r\nJOIN {channel}\r\nPING in\r\n"
        self._end = b""
        self.is_in: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport
        transport.write(self._hello.encode())

    def data_received(self, data: bytes) -> None:
        if not self.is_in.done() and b" PONG " in self._end + data:
            self.is_in.set_result(None)
        self._end = data[-8:]


def burst(users: int, channels: int, history: bool) -> Burst:
    """So many users in so many channels on spark; then thor is started, which dials it."""
    return asyncio.run(_burst(users, channels, history))


async def _burst(users: int, channels: int, history: bool) -> Burst:
    secret = token_hex(16)
    with waiting(history, secret) as spark:
        crowd = await _come_in(spark.port, users, channels)
        with dialling(history, secret, spark.port) as thor:
            done = await asyncio.to_thread(_wait, thor.port, users, channels)
            seconds = done.at - _began(thor.folder / "output.log")
        for user in crowd:
            user.transport.abort()
    return Burst(users, channels, seconds, done.longest * 1e3)


async def _come_in(port: int, users: int, channels: int) -> list[_User]:
    loop, crowd = asyncio.get_running_loop(), []
    for first in range(0, users, _AT_ONCE):
        some = [
            loop.create_connection(partial(_User, number, f"#c{number % channels}"), "127.0.0.1", port)
            for number in range(first, min(first + _AT_ONCE, users))
        ]
        came = [user for _, user in await asyncio.gather(*some)]
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(user.is_in for user in came))
        crowd += came
    return crowd


@dataclass
class _Done:
    at: float
    longest: float


def _wait(port: int, users: int, channels: int) -> _Done:
    watch, deadline, longest = Talker(port, "thor-watch"), time.time() + PATIENCE, 0.0
    while True:
        asked = time.time()
        known = _known(watch)
        answered = time.time()
        longest = max(longest, answered - asked)
        if known[0] > users and known[1] >= channels and _everybody_is_there(watch, users, channels):
            return _Done(answered, longest)
        if answered > deadline:
            raise SystemExit(f"after {PATIENCE:g} s thor knows {known[0]} users and {known[1]} channels")
        time.sleep(0.01)


def _known(watch: Talker) -> tuple[int, int]:
    """Users and channels."""
    answer = "\n".join(watch.ask("LUSERS\r\nPING done", " PONG "))
    people, rooms = _LUSERS.search(answer), _CHANNELS.search(answer)
    return sum(map(int, people.groups())) if people else 0, int(rooms[1]) if rooms else 0


def _everybody_is_there(watch: Talker, users: int, channels: int) -> bool:
    members: Counter[str] = Counter()
    for number in range(channels):
        for line in watch.ask(f"NAMES #c{number}", " 366 "):
            if " 353 " in line:
                members.update(nick.lstrip("@+") for nick in line.rpartition(":")[2].split())
    return len(members) == members.total() == users


def _began(log: Path) -> float:
    """When the server was ready to link, by its own log."""
    line = next(line for line in log.read_text(encoding="utf-8").splitlines() if " listens on " in line)
    return datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f").timestamp()
