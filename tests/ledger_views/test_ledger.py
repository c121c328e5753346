"""Reading more of the ledger than one answer holds, from a real server."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from culture.ledger_views.ledger import LedgerFact, all_facts, facts
from culture.skills.ledger.facts import Fact as Kept
from culture.skills.ledger.store import LedgerStore
from culture.transport import Address, ClientIdentity, IRCTransport
from tests.support.servers import serving

MANY = 2_345
NOW = datetime.now(UTC).replace(microsecond=0)


def fill(folder: Path, apart: float) -> None:
    """So many turns, the last of them now, each so many microseconds after the one before."""
    folder.mkdir(parents=True)
    store = LedgerStore(folder / "ledger.db")
    at = round(NOW.timestamp() * 1_000_000)
    store.write(
        [
            Kept("spark-claude", "spend", f"turn-{number}", "{}", at - round((MANY - number) * apart), "spark", number)
            for number in range(1, MANY + 1)
        ]
    )
    store.close()


def turns(found: list[LedgerFact]) -> list[int]:
    return [int(fact.key.removeprefix("turn-")) for fact in found]


@pytest.mark.parametrize("apart", [3.0, 1_000_000.0], ids=["hundreds in a millisecond", "one a second"])
async def test_all_facts_are_read_however_many_there_are(tmp_path: Path, apart: float) -> None:
    fill(tmp_path / "data" / "ledger", apart)
    async with serving(tmp_path) as ircd:
        transport = IRCTransport(Address("127.0.0.1", ircd.port), ClientIdentity("spark-ori", bot=False))
        await transport.start()
        try:
            assert len(await facts(transport, "spend", "*", "limit=5000")) == 1_000
            found = await all_facts(transport, "spend")
            assert sorted(turns(found)) == list(range(1, MANY + 1))
            assert [fact.at for fact in found] == sorted(fact.at for fact in found)
            since = NOW - timedelta(microseconds=1_500 * apart)
            late = turns(await all_facts(transport, "spend", since))
            assert sorted(late) == list(range(MANY - 1_500, MANY + 1))
            assert await all_facts(transport, "spend", nick="spark-eve") == await all_facts(transport, "state") == []
        finally:
            await transport.stop()
