"""What was taken back while two servers were split is gone on both after the heal, wherever it was kept."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from culture.config.skills import HistoryConfig
from tests.federation.meshes import Servers, linked
from tests.federation.raw import mesh_of
from tests.skills.history.semantic.double import Double
from tests.skills.history.semantic.searches import stored
from tests.support.client import Client
from tests.support.postgres import postgres
from tests.support.waiting import PATIENCE, until

EDGE = ("spark", "thor")
CAPS = "echo-message message-tags draft/message-redaction"
SECRET = "the password is xyzzy4711, see https://xyzzy.example/"
QUESTIONS = ("HISTORY RECENT #x 10", "HISTORY SEARCH #x :xyzzy4711", "HISTORY SEMANTIC #x :the password", "URLS #x")

Settings = Mapping[str, Mapping[str, HistoryConfig]]

pytestmark = [pytest.mark.fault("D8"), pytest.mark.requirement("E06")]


@pytest.fixture(params=["sqlite", "postgresql"])
def each(request: pytest.FixtureRequest) -> Iterator[Settings]:
    """The settings of both servers: each has a history of its own, and finds by meaning."""
    with ExitStack() as stack:
        double = stack.enter_context(Double())
        made = {}
        for name in EDGE:
            store = "sqlite" if request.param == "sqlite" else stack.enter_context(postgres().corner())
            made[name] = {"history": HistoryConfig(store=store, semantic=double.settings())}
        yield made


async def answers(client: Client) -> list[str]:
    """What each question about #x shows of the secret."""
    return [
        question for question in QUESTIONS if any("xyzzy" in line.params[-1] for line in await client.ask(question))
    ]


async def answered(client: Client, questions: Sequence[str]) -> None:
    """Wait until these questions show it, and no others: vectors are made a moment later."""
    async with asyncio.timeout(PATIENCE):
        while await answers(client) != [*questions]:
            pass


def in_logs(servers: Servers) -> list[str]:
    """The servers whose log of the links has it."""
    return [
        name
        for name in EDGE
        if any("xyzzy" in entry.data for entry in mesh_of(servers[name]).log._reader.since(0, 1_000))
    ]


async def test_what_both_had_before_the_split_is_gone_on_both(tmp_path: Path, each: Settings) -> None:
    async with linked(tmp_path, EDGE, [EDGE], each) as servers:
        ada = await servers.client("spark-ada", "#x", caps=CAPS)
        bob = await servers.client("thor-bob", "#x", caps=CAPS)
        ada.send(f"PRIVMSG #x :{SECRET}")
        msgid = (await ada.expect("PRIVMSG", "#x", SECRET)).tags["msgid"]
        await answered(bob, QUESTIONS)
        await servers.cut(*EDGE)
        await bob.ask("PART #x")  # nobody is in the channel any more when it is taken back
        ada.send(f"REDACT #x {msgid}")
        await ada.expect("REDACT", "#x")
        servers.heal(*EDGE)
        await servers.whole()
        await answered(bob, ())
        await until(lambda: not in_logs(servers))
        weechat = await servers.client("thor-weechat", "#x", caps="message-tags server-time")
        await weechat.sync()
        assert not any("xyzzy" in line.params[-1] for line in weechat.seen)
        for name in EDGE:
            (vectors,) = servers[name].parts.config.data_dir.rglob("vectors.db")
            await until(lambda: stored(vectors.parent) == {})  # noqa: B023


async def test_what_was_said_and_taken_back_in_the_split_never_comes(tmp_path: Path, each: Settings) -> None:
    async with linked(tmp_path, EDGE, [EDGE], each) as servers:
        ada = await servers.client("spark-ada", "#x", caps=CAPS)
        bob = await servers.client("thor-bob", "#x", caps=CAPS)
        await servers.cut(*EDGE)
        ada.send(f"PRIVMSG #x :{SECRET}")
        msgid = (await ada.expect("PRIVMSG", "#x", SECRET)).tags["msgid"]
        ada.send(f"REDACT #x {msgid}")
        await ada.expect("REDACT", "#x")
        servers.heal(*EDGE)
        await bob.expect("REDACT", "#x", msgid)
        assert await answers(bob) == []
        assert not any("xyzzy" in line.params[-1] for line in bob.seen)
        await until(lambda: not in_logs(servers))
