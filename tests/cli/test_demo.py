"""``culture demo``: every scene really happens, the home folder is not touched, and nothing is left."""

import asyncio
import re
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from culture.cli.demo.home import processes_of
from culture.cli.demo.participants import BUILDER, DIGGER, ECHO, MOST_HOPS, SCOUT, WORKSHOP, YOU
from culture.ledger_views.ledger import LedgerFact, facts
from culture.transport import Address, ClientIdentity, IRCTransport
from tests.cli.shell import Process, Shell
from tests.support.clock import sleep
from tests.support.waiting import PATIENCE

_WAITS = 4


@pytest.fixture
def temporary(shell: Shell) -> Iterator[Path]:
    """Where the demonstration makes its folder; the paths of sockets must not get long."""
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        shell.environment["TMPDIR"] = folder
        yield Path(folder)


async def told(demo: Process, text: str) -> str:
    """Wait until it has said this: a dozen processes are started, on a machine which may be busy."""
    for _ in range(_WAITS - 1):
        with suppress(TimeoutError):
            return await demo.until(text)
    return await demo.until(text)


async def played(demo: Process) -> str:
    """Wait until all scenes are over."""
    for text in (
        "1. A mention",
        "2. An agent",
        "3. The supervisor",
        "4. The link",
        "5. The loop guard",
        "culture status",
    ):
        await told(demo, text)
    return demo.said


async def ledger_of(folder: Path, said: str) -> tuple[list[LedgerFact], dict[str, list[str]]]:
    """What the ledger of the first server has, and what was said in two channels there."""
    port = re.search(r"spark +127\.0\.0\.1:(\d+)", said)
    assert port is not None
    token = (folder / "secrets" / YOU).read_text().strip()
    transport = IRCTransport(Address("127.0.0.1", int(port[1])), ClientIdentity(YOU, YOU, token, bot=False))
    await transport.start()
    try:
        channels = {}
        for name in ("#general", WORKSHOP):
            channels[name] = [message.text for message in await transport.history(name)]
        return await facts(transport, "*", "*", "limit=1000"), channels
    finally:
        await transport.stop()


def shown(address: str) -> str:
    """What a browser is shown there."""
    with urlopen(address, timeout=PATIENCE) as answer:
        return str(answer.read().decode())


def only(found: list[LedgerFact], kind: str, nick: str) -> list[LedgerFact]:
    return [fact for fact in found if (fact.kind, fact.nick) == (kind, nick)]


def is_gone(folder: Path) -> bool:
    """Neither the folder nor a process of it is there."""
    return not folder.exists() and not processes_of(folder)


async def made(temporary: Path, pattern: str = "culture-demo-*") -> Path:
    """Wait until the demonstration has made its folder, and something in it."""
    async with asyncio.timeout(PATIENCE):
        while not (found := [*temporary.glob(pattern)]):  # noqa: ASYNC240
            await sleep(0.02)
    return temporary / found[0].relative_to(temporary).parts[0]


async def test_every_scene_happens_and_nothing_is_left(shell: Shell, temporary: Path) -> None:
    demo = await shell.spawn("demo", "--fast", "--keep-open")
    said = await played(demo)
    folder = await made(temporary)
    found, channels = await ledger_of(folder, said)
    assert processes_of(folder)

    answered = [fact for fact in only(found, "receipt", SCOUT) if fact.key.endswith("/answered")]
    assert len(answered) >= 2, "the mention, and the one of the split"
    (question,) = only(found, "question", BUILDER)
    assert question.value["by"] == YOU and question.value["human_confirmed"] and not question.value["open"]
    assert [fact.value["event"] for fact in only(found, "alert", DIGGER)] == ["agent_spiraling"]
    polite = [fact for nick in (ECHO, SCOUT) for fact in only(found, "task", nick)]
    assert len([fact for fact in polite if fact.value["place"] == WORKSHOP]) == MOST_HOPS
    for text in ("are you still there?", "Here on thor it is quiet: is anybody there?"):
        assert sum(text in line for line in channels["#general"]) == 1
    assert any("automatic replies in a row" in line for line in channels[WORKSHOP])

    assert {fact.key: fact.value["state"] for fact in only(found, "link", "spark")} == {"thor": "linked"}
    link = re.search(r"http://\S+/login/\S+", said)
    assert link is not None
    assert YOU in await asyncio.to_thread(shown, link[0])

    demo.signal(signal.SIGINT)
    assert await demo.ended() == 0 and "5 of 5 scenes" in demo.said and "Traceback" not in demo.said
    assert is_gone(folder)
    assert not shell.home.exists() and not (shell.folder / ".culture").exists()


async def test_broken_off_at_once_it_leaves_nothing(shell: Shell, temporary: Path) -> None:
    demo = await shell.spawn("demo", "--fast", "--no-web")
    await demo.until("Everything starts")
    folder = await made(temporary, "culture-demo-*/run/*.pid")
    demo.signal(signal.SIGINT)
    assert await demo.ended() == 5 and "Broken off" in demo.said and "Traceback" not in demo.said
    assert is_gone(folder)


async def test_killed_it_is_cleared_away_by_its_caretaker(shell: Shell, temporary: Path) -> None:
    demo = await shell.spawn("demo", "--fast", "--no-web")
    await told(demo, "agents: thor-scout")
    folder = await made(temporary)
    assert processes_of(folder)
    await demo.kill()
    async with asyncio.timeout(PATIENCE):
        while not is_gone(folder):
            await sleep(0.05)
