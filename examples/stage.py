"""Where an example takes place: a server, its agents and a person, in a home folder of their own."""

import argparse
import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from culture.clients.shared.assembly import assemble, backend_fields
from culture.config.agents import BACKEND_FIELDS
from culture.config.load import load_agents
from culture.config.model import Listen, ServerConfig
from culture.config.skills import Embeddings, HistoryConfig
from culture.protocol.vocabulary import ExtensionVerb
from culture.server.ircd import IRCd
from culture.transport import Address, ClientIdentity, IRCTransport, Message

SERVER, PERSON = "spark", "spark-ori"
PATIENCE = 60.0


class Stage:
    """A person among agents: says something, and waits for what is said to it."""

    def __init__(self, home: Path, transport: IRCTransport) -> None:
        self.home = home
        self._transport = transport
        self._heard: list[Message] = []
        self._news = asyncio.Condition()

    async def say(self, channel: str, text: str) -> None:
        """Say something as the person."""
        show(channel, PERSON, text)
        await self._transport.send_privmsg(channel, text)

    async def hears(self, pattern: str, times: int = 1) -> list[Message]:
        """Wait for so many messages in which the pattern is found; they are not found again."""
        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(lambda: len(self._matching(pattern)) >= times)
        found = self._matching(pattern)[:times]
        self._heard = [each for each in self._heard if each not in found]
        return found

    async def links(self, channel: str) -> list[tuple[str, str, str]]:
        """Which links were shared there, how often, and by whom the last time, as the server's index has it."""
        lines = await self._transport.request(ExtensionVerb.URLS.value, channel)
        return [
            (line.params[4], line.params[3], line.params[1]) for line in lines if line.verb == ExtensionVerb.URLS.value
        ]

    async def take(self, message: Message) -> None:
        """Somebody said something."""
        show(message.channel, message.sender, message.text)
        async with self._news:
            self._heard.append(message)
            self._news.notify_all()

    def _matching(self, pattern: str) -> list[Message]:
        return [each for each in self._heard if re.search(pattern, each.text)]


def show(place: str, who: str, text: str) -> None:
    """A message on the terminal."""
    first, *further = text.split("\n")
    print(f"{place} <{who}> {first}", *(f"    {line}" for line in further), sep="\n", flush=True)


@asynccontextmanager
async def stage(folder: Path, home: Path, channels: list[str]) -> AsyncIterator[Stage]:
    """The agents of ``folder/agents.yaml``, on a server of their own; all of it ends with the block."""
    culture = home / ".culture"
    culture.mkdir(mode=0o700)
    os.environ.update(HOME=str(home), CULTURE_HOME=str(culture))
    shutil.copytree(folder / "playbooks", home / folder.name / "playbooks")
    settings = ServerConfig(
        name=SERVER,
        listen=(Listen(port=0),),
        data_dir=culture / "data" / SERVER,
        accounts_file=culture / "accounts.json",
        history=HistoryConfig(semantic=Embeddings(enabled=False)),
    )
    (culture / "culture.yaml").write_text(f"name: {SERVER}\n", encoding="utf-8")
    async with AsyncExitStack() as stack:
        # Sockets have short paths, and the folder's may be long.
        os.environ["XDG_RUNTIME_DIR"] = stack.enter_context(TemporaryDirectory(prefix="culture-"))
        ircd = await stack.enter_async_context(IRCd(settings).running())
        server = f"server: {{host: 127.0.0.1, port: {ircd.port}}}\n"
        agents = server + (folder / "agents.yaml").read_text(encoding="utf-8")
        (culture / "agents.yaml").write_text(agents, encoding="utf-8")
        person = await _person(ircd.port, home, channels, stack)
        config = load_agents(culture / "agents.yaml", {**BACKEND_FIELDS, **backend_fields()}).config
        for agent in config.agents:
            agent.directory.mkdir(parents=True, exist_ok=True)
            daemon = assemble(config, agent.nick)
            stack.push_async_callback(daemon.stop)
            await daemon.start()
        yield person


async def _person(port: int, home: Path, channels: list[str], stack: AsyncExitStack) -> Stage:
    heard: asyncio.Queue[Message] = asyncio.Queue()
    identity = ClientIdentity(PERSON, bot=False)
    transport = IRCTransport(Address("127.0.0.1", port), identity, channels, on_message=heard.put_nowait)
    person = Stage(home, transport)
    listening = asyncio.create_task(_listen(heard, person))
    stack.push_async_callback(_ended, listening)
    stack.push_async_callback(transport.stop)
    await transport.start()
    return person


async def _listen(heard: "asyncio.Queue[Message]", person: Stage) -> None:
    while True:
        message = await heard.get()
        if not message.own and not message.notice:
            await person.take(message)


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def main(name: str, play: Callable[[Path], Coroutine[None, None, None]]) -> None:
    """Play an example in a folder that is gone afterwards, or in the one that ``--home`` names, which stays."""
    arguments = argparse.ArgumentParser(prog=f"examples/run {name}")
    arguments.add_argument("--home", type=Path, metavar="FOLDER", help="an empty folder for everything, which is kept")
    given = arguments.parse_args()
    if given.home is not None:
        given.home.mkdir(parents=True, exist_ok=True)
        if any(given.home.iterdir()):
            sys.exit(f"{given.home} is not empty: name a folder that is")
        asyncio.run(play(given.home.absolute()))
        print(f"\nEverything is in {given.home}: CULTURE_HOME={given.home}/.culture culture history search …")
        return
    with TemporaryDirectory() as home:
        asyncio.run(play(Path(home)))
