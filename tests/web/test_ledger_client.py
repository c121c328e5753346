"""The facts of the page: all of them, however many there are, and those that are gone are gone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from culture.ledger_views.ledger import MOST
from culture.protocol.vocabulary import ClientTag
from culture.transport import Address, ClientIdentity
from culture.web.ledger_client import LedgerClient
from culture.web.mesh_model import MeshModel
from tests.federation.meshes import linked
from tests.support.client import Client, registered
from tests.support.servers import serving
from tests.support.waiting import until

EACH = 550


@asynccontextmanager
async def reading(port: int, nick: str) -> AsyncIterator[MeshModel]:
    """A board of the server on this port."""
    ledger = LedgerClient(Address("127.0.0.1", port), ClientIdentity(nick), every=0.05)
    await ledger.start()
    try:
        yield MeshModel(ledger)
    finally:
        await ledger.stop()


async def _spends(client: Client, nick: str, turns: int) -> None:
    client.send(f"MODE {nick} +B")
    for number in range(turns):
        client.send(f'@{ClientTag.FACT.value}={{"tokens":1}} LEDGER PUT spend turn-{number}')
    await client.sync()


async def test_more_facts_than_one_answer_has_are_all_known(tmp_path: Path) -> None:
    async with serving(tmp_path) as ircd:
        for nick in ("spark-one", "spark-two"):
            async with registered(ircd.port, nick, "message-tags") as bot:
                await _spends(bot, nick, EACH)
        assert 2 * EACH > MOST
        async with reading(ircd.port, "spark-reader") as model:
            await until(lambda: sum(turn.tokens for turn in model.turns()) == 2 * EACH)
            assert model.turns() is model.turns()


async def test_what_was_said_on_the_other_side_of_a_split_is_known_afterwards(tmp_path: Path) -> None:
    async with (
        linked(tmp_path, ("alfa", "bravo"), [("alfa", "bravo")]) as servers,
        reading(servers["alfa"].port, "alfa-reader") as model,
    ):
        await until(lambda: model.mesh().links)
        await servers.cut("alfa", "bravo")
        bot = await servers.client("bravo-bot", caps="message-tags")
        await _spends(bot, "bravo-bot", 1)
        assert not model.turns()
        servers.heal("alfa", "bravo")
        await until(model.turns)
