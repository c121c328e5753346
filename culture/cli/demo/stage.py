"""The stage of the demo: real server and daemon processes, and two people's connections."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from threading import Thread

from culture.cli.agents import daemon_launch
from culture.cli.demo import participants
from culture.cli.demo.home import end_those_of, temporary_home
from culture.cli.demo.participants import EVE, HERE, THERE, YOU, DemoPerson
from culture.cli.options import Choices
from culture.cli.server import background
from culture.clients.shared import ending
from culture.config import paths
from culture.lib.files import PRIVATE_FILE
from culture.lib.process.background import EndedEarly
from culture.protocol.names import fold
from culture.transport import Address, ClientIdentity, IRCTransport, Message

HOST = "127.0.0.1"
PATIENCE = 30.0
_LOOK_AGAIN = 0.05
_GRACE = 5.0
_LOGIN_MINUTES = 60


class SceneFailed(Exception):
    """Something that a scene of the demo needs did not happen; the message says what."""


class DemoListener:
    """Stores the messages that a person of the demo has received."""

    def __init__(self) -> None:
        self.all: list[Message] = []
        self._news = asyncio.Event()

    def hear(self, message: Message) -> None:
        """Store a received message, and wake the tasks that wait in ``expect``."""
        self.all.append(message)
        self._news.set()

    async def expect(self, what: str, fits: Callable[[Message], bool], since: int = 0) -> Message:
        """Wait until a message for which ``fits`` is true was received; return the first one.

        ``since``: number of received messages to skip. ``what``: the text of SceneFailed, which is raised on timeout.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    for message in self.all[since:]:
                        if fits(message):
                            return message
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise SceneFailed(what) from None


class DemoConnection:
    """The IRC connection of one of the two people in the demo."""

    def __init__(self, person: DemoPerson, port: int) -> None:
        self.nick = person.nick
        self.ears = DemoListener()
        identity = ClientIdentity(person.nick, person.nick, person.token, bot=False)
        self.transport = IRCTransport(Address(HOST, port), identity, participants.CHANNELS, on_message=self.ears.hear)

    def sees(self, nick: str, channel: str = participants.CHANNELS[0]) -> bool:
        """Whether ``nick`` is in a channel, as far as this person's IRC client knows."""
        return any(fold(member.nick) == fold(nick) for member in self.transport.members(channel))

    def sees_all(self, channel: str) -> bool:
        """Whether a channel has both people of the demo, and the agents that belong there.

        It is so as far as this person's IRC client knows.
        """
        agents = participants.AGENTS if channel in participants.WHERE_AGENTS_ARE else ()
        return all(self.sees(nick, channel) for nick in (YOU, EVE, *agents))


class DemoStage:
    """Everything that runs during the demo: servers, daemons, connections, web page."""

    def __init__(
        self,
        folder: Path,
        you: DemoConnection,
        eve: DemoConnection,
        ports: dict[str, int],
        secret: Path,
        page: str,
        no_page: str,
    ) -> None:
        self.folder = folder
        self.you = you
        self.eve = eve
        self.ports = ports
        self.secret = secret
        """File with the secret of the link."""
        self.page = page
        """Login link of the web page; empty if there is none."""
        self.no_page = no_page
        """Why there is no page although one was wanted."""

    async def culture(self, *words: str) -> str:
        """Run `culture` with these arguments and return its output; raise SceneFailed if it fails."""
        return await _culture(*words)

    async def until(self, what: str, fact: Callable[[], bool]) -> None:
        """Wait until ``fact()`` is true; on timeout, raise SceneFailed with the text ``what``."""
        await until(what, fact)

    def whispers(self, nick: str) -> list[str]:
        """Return the whispers that an agent's supervisor sent, read from the daemon's log."""
        mark = "the supervisor whispers "
        lines = paths.log_file(nick).read_text(encoding="utf-8", errors="replace").splitlines()
        return [line.partition(mark)[2] for line in lines if mark in line]


async def until(what: str, fact: Callable[[], bool]) -> None:
    """Wait until ``fact()`` is true; on timeout, raise SceneFailed with the text ``what``."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not fact():  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_AGAIN)
    except TimeoutError:
        raise SceneFailed(what) from None


@asynccontextmanager
async def running_stage(port: int, web: bool) -> AsyncIterator[DemoStage]:
    """Yield the running servers, daemons and connections of the demo; stop them after the block.

    ``port``: that of the first server, 0 for any free one. ``web``: whether to start the web page.
    """
    with temporary_home() as folder:
        caretaker, hands = _caretaker(folder), ThreadPoolExecutor(len(participants.AGENTS) + 1)
        try:
            async with AsyncExitStack() as stack:
                stage = await _raise(folder, port, web, hands, stack)
                yield stage
        finally:
            await asyncio.shield(_clear(folder, hands, caretaker))


async def _raise(folder: Path, port: int, web: bool, hands: ThreadPoolExecutor, stack: AsyncExitStack) -> DemoStage:
    secret = folder / "link.secret"
    secret.write_text(participants.new_secret(), encoding="utf-8")
    secret.chmod(PRIVATE_FILE)
    shared = secret.read_text(encoding="utf-8")
    thor = await _serve(hands, participants.write_server(folder, THERE, 0, {"name": HERE, "secret": shared}), THERE)
    link = {"name": THERE, "address": f"{HOST}:{thor}", "secret": shared}
    spark = await _serve(hands, participants.write_server(folder, HERE, port, link), HERE)
    ports = {HERE: spark, THERE: thor}
    you, eve = (DemoConnection(participants.admit(folder, nick), ports[nick.partition("-")[0]]) for nick in (YOU, EVE))
    nicks = [(nick, server) for server in ports for nick in participants.write_agents(folder, server, ports[server])]
    loop = asyncio.get_running_loop()
    daemons = [loop.run_in_executor(hands, _start, folder, nick, server) for nick, server in nicks]
    showing = loop.run_in_executor(hands, _page, folder) if web else None
    await asyncio.gather(*daemons, *(_come(seat, stack) for seat in (you, eve)))
    page, no_page = await showing if showing is not None else ("", "")
    return DemoStage(folder, you, eve, ports, secret, page, no_page)


async def _serve(hands: ThreadPoolExecutor, file: Path, name: str) -> int:
    """Start the demo server ``name`` and return its port; SceneFailed is raised if it exits.

    ``hands``: the threads that start processes. ``file``: the server's configuration.
    """
    loop = asyncio.get_running_loop()
    try:
        note = await loop.run_in_executor(hands, background.start, name, ("--config", str(file)))
    except EndedEarly as early:
        raise SceneFailed(f"{name} does not start: {early.text}") from None
    return note.addresses[0][1]


def _start(folder: Path, nick: str, server: str) -> None:
    try:
        daemon_launch.start(nick, participants.agents_file(folder, server), PATIENCE)
    except daemon_launch.DaemonNotStarted as failure:
        raise SceneFailed(str(failure)) from None


def _page(folder: Path) -> tuple[str, str]:
    """Start the web page of the demo; return its login link, and why there is none.

    ``folder``: the demo's home folder. One of the two strings is empty.
    """
    config = participants.server_file(folder, HERE)
    try:
        from culture.cli.web import process  # takes long to load

        settings = Choices(config).load().config
        process.start(settings.name, ("--config", str(config), "--port", "0"))
        return process.link(settings, YOU, _LOGIN_MINUTES), ""
    except ModuleNotFoundError as missing:
        return "", f"{missing.name} is not installed"
    except EndedEarly as early:
        return "", early.text.splitlines()[-1]
    except Exception as error:
        return "", str(error)


async def _come(seat: DemoConnection, stack: AsyncExitStack) -> None:
    async with asyncio.timeout(PATIENCE):
        await seat.transport.start()
    stack.push_async_callback(seat.transport.stop)


async def _culture(*words: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "culture", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    output = out.decode(errors="replace").strip()
    if process.returncode:
        raise SceneFailed(f"culture {' '.join(words)} ended with {process.returncode}: {output}")
    return output


def _caretaker(folder: Path) -> "subprocess.Popen[bytes]":
    """Start the caretaker: a process that stops the demo and deletes ``folder`` if we die."""
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.Popen(
        [sys.executable, "-m", "culture.cli.demo.home", str(folder)],
        cwd="/",
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


async def _clear(folder: Path, hands: ThreadPoolExecutor, caretaker: "subprocess.Popen[bytes]") -> None:
    """Stop the demo's daemons, then everything else that runs in ``folder``, and the caretaker.

    ``hands``: the threads that start processes.
    """
    await asyncio.gather(*(_end(nick) for nick in participants.AGENTS))
    await asyncio.to_thread(_end_everything, folder, hands)
    assert caretaker.stdin is not None
    caretaker.kill()
    caretaker.stdin.close()
    await asyncio.to_thread(caretaker.wait)


def _end_everything(folder: Path, hands: ThreadPoolExecutor) -> None:
    """End all processes that run in ``folder``, until no thread can start another one.

    ``hands``: the threads that start processes; they are shut down.
    """
    letting_go = Thread(target=lambda: hands.shutdown(cancel_futures=True))
    letting_go.start()
    while letting_go.is_alive():
        end_those_of(folder, _GRACE)
        letting_go.join(_LOOK_AGAIN)
    end_those_of(folder, _GRACE)


async def _end(nick: str) -> None:
    with suppress(OSError):
        await ending.end(nick, grace=_GRACE, told=_GRACE)
