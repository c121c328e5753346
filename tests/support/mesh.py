"""A mesh of real servers: processes with data folders of their own, linked through proxies that tests command."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

from culture.protocol.names import fold, short_name
from culture.skills.history.sqlite import SQLiteStore
from tests.support.client import Client, registered
from tests.support.clock import sleep
from tests.support.ports import reserved
from tests.support.proxy import Proxy, proxied
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
SETTINGS: Mapping[str, Any] = {
    "flood": {"loopback": {"rate": 0}},
    "urlindex": {"enabled": False},
    "history": {"semantic": {"enabled": False}},
    "operators": [{"name": "root", "password": "very secret"}],
}
Edge = tuple[str, str]
"""Who dials, and whom."""

_LOOK_AGAIN = 0.02
_watchers = count(1)


class Heard(NamedTuple):
    """A message as a server's history has it."""

    msgid: str
    source: str
    text: str


class Member:
    """One server: a process on a folder and a port that stay the same when it starts again."""

    def __init__(self, name: str, folder: Path, port: int, settings: Mapping[str, Any]) -> None:
        self.name = name
        self.port = port
        self.settings: dict[str, Any] = {**settings, "name": name, "listen": [{"port": port}]}
        """What the next start or reload says in culture.yaml."""
        self.source = ROOT
        """Where the program is that the next start runs."""
        self.log: list[str] = []
        """What the server wrote, since the first start."""
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._news = asyncio.Event()

    @property
    def data(self) -> Path:
        """What the server remembers."""
        return self._folder / "data"

    @property
    def pid(self) -> int:
        """The process."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Is there a process?"""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Run until it accepts connections."""
        assert not self.is_running
        self._write_settings()
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "culture", "server", "start", "--foreground"),
            *("--config", str(self._file), "--data-dir", str(self.data)),
            cwd=self.source,
            env={"PATH": os.environ["PATH"], "CULTURE_HOME": str(self._folder)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        since = len(self.log)
        self._listening = asyncio.create_task(self._listen())
        await self.told("listens on", since)

    async def told(self, text: str, since: int = 0) -> None:
        """Wait until this is in the log, after so many lines of it."""
        async with asyncio.timeout(PATIENCE):
            while not any(text in line for line in self.log[since:]):
                assert self._listening is not None and not self._listening.done(), "\n".join(self.log)
                self._news.clear()
                await self._news.wait()

    def reload(self) -> None:
        """Tell it to read its settings again."""
        self._write_settings()
        os.kill(self.pid, signal.SIGHUP)

    async def kill(self, kind: signal.Signals = signal.SIGKILL) -> None:
        """End the process, by default without a chance to save anything."""
        if self._process is not None and self.is_running:
            self._process.send_signal(kind)
            async with asyncio.timeout(PATIENCE):
                await self._process.wait()
        if self._listening is not None:
            await self._listening

    def history(self, channel: str | None = None) -> list[Heard]:
        """The messages on its disk, of one channel or of all and in private, in the order of their times."""
        file = self.data / "history" / "history.db"
        kept = SQLiteStore(file).everything(channel and fold(channel)) if file.exists() else ()
        entries = (each.entry for each in kept)
        return [Heard(each.msgid, each.source, each.text) for each in entries if each.verb in ("PRIVMSG", "NOTICE")]

    @property
    def _file(self) -> Path:
        return self._folder / "culture.yaml"

    def _write_settings(self) -> None:
        self._folder.mkdir(exist_ok=True)
        self._file.write_text(json.dumps(self.settings), encoding="utf-8")

    async def _listen(self) -> None:
        assert self._process is not None and self._process.stderr is not None
        async for line in self._process.stderr:
            self.log.append(line.decode(errors="replace").rstrip())
            self._news.set()
        await self._process.wait()
        self._news.set()


class Mesh:
    """Servers by name, and the proxies between them; ``mesh`` makes one."""

    def __init__(self, members: Iterable[Member], proxies: Mapping[Edge, Proxy]) -> None:
        self.members = {member.name: member for member in members}
        self._proxies = proxies

    def proxy(self, one: str, other: str) -> Proxy:
        """What lies between two servers; its client is the one that dials."""
        return self._proxies[(one, other) if (one, other) in self._proxies else (other, one)]

    @asynccontextmanager
    async def client(self, server: str, nick: str, caps: str = "", password: str = "") -> AsyncIterator[Client]:
        """A user of one of the servers."""
        async with registered(self.members[server].port, nick, caps, password) as client:
            yield client

    @asynccontextmanager
    async def operator(self, server: str) -> AsyncIterator[Client]:
        """An operator of one of the servers, under a nick that nobody else has."""
        async with self.client(server, f"{short_name(server)}-watch{next(_watchers)}") as client:
            client.send("OPER root :very secret")
            await client.expect("381")
            yield client

    async def start(self, *names: str) -> None:
        """Run these, on the data that they left."""
        starting = (self.members[name].start() for name in names)
        # One that fails must not leave another on its way.
        for failure in await asyncio.gather(*starting, return_exceptions=True):
            if failure is not None:
                raise failure

    async def kill(self, *names: str) -> None:
        """kill -9."""
        await asyncio.gather(*(self.members[name].kill() for name in names))

    async def stop(self, *names: str) -> None:
        """End these as an administrator does."""
        await asyncio.gather(*(self.members[name].kill(signal.SIGTERM) for name in names))

    def history(self, name: str, channel: str | None = None) -> list[Heard]:
        """The messages on a server's disk."""
        return self.members[name].history(channel)

    async def linked(self, *names: str) -> None:
        """Wait until each of these, without names each that runs, says that it reaches all of them and no other."""
        these = names or tuple(name for name, member in self.members.items() if member.is_running)
        await asyncio.gather(*(self.reaches(name, these) for name in these))

    async def reaches(self, name: str, others: Iterable[str]) -> None:
        """Wait until a server says that these make up the mesh; it is one of them itself, said or not."""
        wanted = {short_name(each) for each in (name, *others)}
        found: set[str] = set()
        async with self.operator(name) as watch:
            try:
                async with asyncio.timeout(PATIENCE):
                    while (found := await _servers(watch)) != wanted:
                        await sleep(_LOOK_AGAIN)
            except TimeoutError:
                raise AssertionError(f"{name} reaches {sorted(found)}, not {sorted(wanted)}") from None


async def _servers(watch: Client) -> set[str]:
    return {short_name(row.params[1]) for row in await watch.ask("LINKS") if row.verb == "364"}


@asynccontextmanager
async def mesh(
    folder: Path,
    names: Sequence[str],
    edges: Sequence[Edge] = (),
    links: Mapping[Edge, Mapping[str, Any]] | None = None,
    source: Path = ROOT,
    **settings: Any,
) -> AsyncIterator[Mesh]:
    """Servers that run, each edge a link that its first dials through a proxy.

    ``links`` says more of a link as one side has it: ``{("thor", "spark"): {"trust": "no_authority"}}`` is what thor
    says of spark. ``source`` is where the program lies that they run, ``settings`` hold for every server.
    """
    async with AsyncExitStack() as stack:
        ports = {name: stack.enter_context(reserved()) for name in names}
        members = {name: Member(name, folder / name, ports[name], {**SETTINGS, **settings}) for name in names}
        proxies = {edge: await stack.enter_async_context(proxied(ports[edge[1]])) for edge in edges}
        for member in members.values():
            member.source = source
        for edge, proxy in proxies.items():
            _configure(members, edge, proxy.port, links or {})
        made = Mesh(members.values(), proxies)
        stack.push_async_callback(made.kill, *names)
        await made.start(*names)
        yield made


def _configure(members: Mapping[str, Member], edge: Edge, port: int, more: Mapping[Edge, Mapping[str, Any]]) -> None:
    """Both sides know each other and a secret; one knows where the other is."""
    dials, waits = edge
    secret = token_hex(16)
    for own, other, address in ((dials, waits, {"address": f"127.0.0.1:{port}"}), (waits, dials, {})):
        link = {"name": other, "secret": secret, **address, **more.get((own, other), {})}
        members[own].settings.setdefault("links", []).append(link)
