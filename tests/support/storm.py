"""Many clients with receipts, a server that is killed again and again, and what must be on its disk afterwards."""

import asyncio
import hashlib
import json
import os
import random
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from culture.skills.history.sqlite import SQLiteStore
from culture.skills.history.store import View
from tests.support.client import PATIENCE, connected

ROOT = Path(__file__).resolve().parents[2]
CHANNEL = "#storm"
WINDOW = 5
CAPS = "message-tags echo-message agentirc.dev/receipts"


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
        settings = {"name": "spark", "flood": {"loopback": {"rate": 0}}, "urlindex": {"enabled": False}}
        config.write_text(json.dumps({**settings, "history": {"semantic": {"enabled": False}}}))
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

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


@dataclass
class Storm:
    """What the clients sent and what they were told is stored."""

    server: Server
    clients: int
    seed: int
    sent: Counter[int] = field(default_factory=Counter)
    receipted: set[str] = field(default_factory=set)
    kills: int = 0

    async def round(self, receipts: int, delay: float) -> None:
        """Talk until so many receipts have come, then kill the server in the middle of it."""
        await self.server.start()
        enough, now = asyncio.Event(), asyncio.Event()
        goal = len(self.receipted) + receipts
        async with asyncio.TaskGroup() as group:
            talking = [group.create_task(self._talk(number, goal, enough)) for number in range(self.clients)]
            try:
                async with asyncio.timeout(PATIENCE * 3):
                    await enough.wait()
                    asyncio.get_running_loop().call_later(delay, now.set)  # a random point of some later write
                    await now.wait()
            finally:
                await self.server.kill()
                for task in talking:
                    task.cancel()
        self.kills += 1

    async def _talk(self, number: int, goal: int, enough: asyncio.Event) -> None:
        names: dict[str, str] = {}
        waiting = 0
        with suppress(EOFError, ConnectionError, TimeoutError):
            async with connected(self.server.port) as client:
                await client.register(f"spark-c{number}", CAPS)
                await client.join(CHANNEL)
                while True:
                    while waiting < WINDOW:
                        self.sent[number] += 1
                        client.send(f"PRIVMSG {CHANNEL} :{text_of(number, self.sent[number])}")
                        waiting += 1
                    message = await client.receive()
                    client.seen.clear()
                    if message.verb == "PRIVMSG" and message.source.startswith(f"spark-c{number}!"):
                        names[message.tags["msgid"]] = message.params[1]
                    elif message.tags.get("agentirc.dev/receipt") == "stored":
                        self.receipted.add(names[message.tags["+draft/reply"]])
                        waiting -= 1
                        if len(self.receipted) >= goal:
                            enough.set()

    def check(self) -> int:
        """What was receipted is there, once, whole and in order; how many messages there are."""
        store = SQLiteStore(self.server.database)
        store.open()
        try:
            assert list(store.verify()) == []
            texts = [kept.entry.text for kept in store.everything("#storm") if kept.entry.verb == "PRIVMSG"]
            assert store.page(View(CHANNEL), None, None, 1, newest=True)
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


async def run(folder: Path, rounds: int, messages: int, clients: int, seed: int) -> Storm:
    """So many kills while so many messages are said; everything is looked at after each."""
    chance = random.Random(seed)
    storm = Storm(Server(folder), clients, seed)
    for _ in range(rounds):
        await storm.round(chance.randint(1, 2 * messages // rounds), chance.random() * 0.01)
        storm.check()
    return storm
