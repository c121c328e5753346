"""Many clients with receipts, a server that is killed in the middle of it, and what must be on its disk afterwards."""

import asyncio
import hashlib
import json
import os
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from culture.skills.history.sqlite import SQLiteStore
from tests.support.client import Client, connected
from tests.support.clock import sleep
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
CHANNEL = "#storm"
WINDOW = 5
CAPS = "message-tags echo-message agentirc.dev/receipts"
SETTINGS = {
    "name": "spark",
    "flood": {"loopback": {"rate": 0}},
    "urlindex": {"enabled": False},
    "history": {"semantic": {"enabled": False}},
    "operators": [{"name": "root", "password": "very secret"}],
}


def text_of(client: int, number: int) -> str:
    """A message that shows whether it is whole."""
    body = f"{client} {number}"
    return f"{body} {hashlib.sha256(body.encode()).hexdigest()}"


class Server:
    """A real process on a data folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: asyncio.subprocess.Process | None = None
        self.port = 0

    @property
    def database(self) -> Path:
        return self.folder / "data" / "history" / "history.db"

    async def start(self) -> None:
        config = self.folder / "culture.yaml"
        config.write_text(json.dumps(SETTINGS))
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "culture", "server", "start", "--foreground", "--config", str(config)),
            *("--port", "0", "--data-dir", str(self.folder / "data")),
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "CULTURE_HOME": str(self.folder)},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert self._process.stderr is not None
        async with asyncio.timeout(PATIENCE):
            said = ""
            while "listens on" not in said:
                line = (await self._process.stderr.readline()).decode()
                assert line, said
                said += line
        self.port = int(said.rsplit("port ", 1)[1].split()[0])

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def kill(self) -> None:
        if self._process is not None and self.is_running:
            self._process.kill()
            await self._process.wait()


@dataclass
class Storm:
    """What the clients sent and what they were told is stored."""

    server: Server
    clients: int
    pace: float | None = None
    """Seconds between two messages of a client; without, each has so many messages on their way to the disk."""
    sent: Counter[int] = field(default_factory=Counter)
    receipted: set[str] = field(default_factory=set)
    heard: int = 0
    notices: list[str] = field(default_factory=list)
    kills: int = 0
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def talking(self) -> "AsyncIterator[Storm]":
        """The server runs and everybody talks; in the end it is killed in the middle of it."""
        await self.server.start()
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._client(number)) for number in range(self.clients)]
                tasks.append(group.create_task(self._watch()))
                try:
                    yield self
                    assert self.server.is_running
                finally:
                    await self.server.kill()
                    self.kills += 1
                    for task in tasks:
                        task.cancel()
        finally:
            await self.server.kill()

    async def until(self, fact: Callable[[], bool]) -> None:
        """Wait for a fact, so long as anything is heard at all."""
        while not fact():
            self._news.clear()
            async with asyncio.timeout(PATIENCE):
                await self._news.wait()

    async def receipts(self, number: int) -> None:
        """Wait for so many more receipts."""
        goal = len(self.receipted) + number
        await self.until(lambda: len(self.receipted) >= goal)

    async def hear(self, number: int) -> None:
        """Wait until everybody together has heard so many more messages."""
        goal = self.heard + number
        await self.until(lambda: self.heard >= goal)

    async def told(self, text: str) -> None:
        """Wait until operators have been told this, and forget it."""
        await self.until(lambda: any(text in notice for notice in self.notices))
        self.notices.clear()

    async def _client(self, number: int) -> None:
        with suppress(EOFError, ConnectionError, TimeoutError):
            async with connected(self.server.port) as client:
                await client.register(f"spark-c{number}", CAPS)
                await client.join(CHANNEL)
                if self.pace is None:
                    for _ in range(WINDOW):
                        self._say(client, number)
                    await self._listen(client, number)
                else:
                    async with asyncio.TaskGroup() as group:
                        listening = group.create_task(self._listen(client, number))
                        while not listening.done():
                            self._say(client, number)
                            await sleep(self.pace)

    def _say(self, client: Client, number: int) -> None:
        self.sent[number] += 1
        client.send(f"PRIVMSG {CHANNEL} :{text_of(number, self.sent[number])}")

    async def _listen(self, client: Client, number: int) -> None:
        names: dict[str, str] = {}
        while True:
            try:
                message = await client.receive()
            except (EOFError, ConnectionError, TimeoutError):
                return
            client.seen.clear()
            self._news.set()
            if message.verb == "PRIVMSG":
                self.heard += 1
                if message.source.startswith(f"spark-c{number}!"):
                    names[message.tags["msgid"]] = message.params[1]
            elif message.tags.get("agentirc.dev/receipt") == "stored":
                self.receipted.add(names.pop(message.tags["+draft/reply"]))
                if self.pace is None:
                    self._say(client, number)

    async def _watch(self) -> None:
        """What operators are told."""
        with suppress(EOFError, ConnectionError, TimeoutError):
            async with connected(self.server.port) as client:
                await client.register("spark-root")
                client.send("OPER root :very secret")
                while True:
                    line = await client.reader.readline()
                    if not line:
                        return
                    if line.startswith(b"PING"):
                        client.send_raw(line.replace(b"PING", b"PONG", 1))
                    elif b" NOTICE " in line:
                        self.notices.append(line.decode())
                        self._news.set()

    def check(self) -> int:
        """What was receipted is there, once, whole and in order; how many messages there are."""
        store = SQLiteStore(self.server.database)
        store.open()
        try:
            assert list(store.verify()) == []
            texts = [kept.entry.text for kept in store.everything(CHANNEL) if kept.entry.verb == "PRIVMSG"]
        finally:
            store.close()
        assert len(texts) == len(set(texts)), "something is there twice"
        assert self.receipted <= set(texts), sorted(self.receipted - set(texts))[:5]
        last: Counter[int] = Counter()
        for text in texts:
            client, number = map(int, text.split()[:2])
            assert text == text_of(client, number), f"not whole: {text}"
            assert number > last[client], f"out of order: {text}"
            last[client] = number
        return len(texts)


async def kill_again_and_again(folder: Path, kills: int, messages: int, clients: int, seed: int) -> Storm:
    """So many kills, at random points, while so many messages are said; everything is looked at after each."""
    chance = random.Random(seed)
    storm = Storm(Server(folder), clients)
    for _ in range(kills):
        async with storm.talking():
            await storm.receipts(chance.randint(1, 2 * messages // kills))
            await sleep(chance.random() * 0.01)
        storm.check()
    return storm
