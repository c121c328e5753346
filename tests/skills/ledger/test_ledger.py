"""LEDGER: facts that agents say of themselves, kept on disk, for people and agents to read."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.protocol.message import Message, escape
from culture.skills.ledger.facts import Fact, FactQuery
from culture.skills.ledger.store import LedgerStore
from tests.support.client import Client, registered
from tests.support.servers import Serve

CAPS = "message-tags"
TAG = "+agentirc.dev/fact"


async def agent(client: Client) -> None:
    """Be a bot, as every daemon is."""
    await client.ask(f"MODE {client.nick} +B")


async def put(client: Client, kind: str, key: str, value: Any) -> list[Message]:
    return await client.ask(f"@{TAG}={escape(json.dumps(value))} LEDGER PUT {kind} {key}")


async def get(client: Client, what: str) -> list[tuple[str, ...]]:
    lines = await client.ask(f"LEDGER GET {what}")
    assert lines[-1].verb == "LEDGEREND"
    return [(*line.params[:3], line.tags[TAG]) for line in lines[:-1]]


async def test_a_fact_is_there_for_all_who_may_know_and_after_a_restart(serve: Serve) -> None:
    async with serve() as ircd, registered(ircd.port, "spark-claude", CAPS) as claude:
        await agent(claude)
        assert [line.params for line in await put(claude, "state", "now", {"state": "idle"})] == [
            ("state", "now", "Kept")
        ]
        await put(claude, "state", "now", {"state": "working", "task": "a; b\\ c"})
        await put(claude, "spend", "turn-1", {"tokens": 7})
    async with serve() as ircd, registered(ircd.port, "spark-ori", CAPS) as ori:
        working = ("spark-claude", "state", "now", '{"state": "working", "task": "a; b\\\\ c"}')
        spent = ("spark-claude", "spend", "turn-1", '{"tokens": 7}')
        assert await get(ori, "state") == [working]
        assert await get(ori, "* SPARK-CLAUDE") == [spent, working]
        assert await get(ori, "* * limit=1") == [spent]
        assert await get(ori, "* spark-eve") == []
        assert await get(ori, "* key=turn-1") == [spent]
        assert await get(ori, "* since=2001-01-01T00:00:00Z") == [spent, working]
        assert await get(ori, "* since=2999-01-01") == []
        assert await get(ori, "* before=2999-01-01") == [spent, working]
        assert await get(ori, "* before=2001-01-01T00:00:00Z") == []


async def test_links_have_a_fact_on_disk_before_the_ledger_does(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a crash in between it would be kept here, and never come to the others."""
    order: list[str] = []

    def write(store: LedgerStore, facts: Sequence[Fact]) -> None:
        order.append("ledger")

    def wait(patience: float) -> bool:
        order.append("links")
        return True

    async with serve() as ircd, registered(ircd.port, "spark-claude", CAPS) as claude:
        await agent(claude)
        monkeypatch.setattr(LedgerStore, "write", write)
        ircd.parts.offers.wait_for_first = wait
        await put(claude, "state", "now", {"state": "idle"})
        assert order == ["links", "ledger"]


async def test_only_agents_say_facts_and_only_good_ones(serve: Serve) -> None:
    async with serve() as ircd, registered(ircd.port, "spark-ori", CAPS) as ori:
        assert [line.verb for line in await put(ori, "state", "now", {})] == ["481"]
        await agent(ori)
        refused = {
            ("nonsense", "now", "{}"): "INVALID_KIND",
            ("receipt", "spark.1.1/answered", "{}"): "INVALID_KIND",
            ("link", "thor", "{}"): "INVALID_KIND",
            ("state", "x" * 121, "{}"): "INVALID_KEY",
            ("state", "now", "[]"): "INVALID_FACT",
            ("state", "now", "{"): "INVALID_FACT",
            ("state", "now", ""): "INVALID_FACT",
            ("state", "now", '{"a":"' + "x" * 2000 + '"}'): "INVALID_FACT",
        }
        for (kind, key, value), code in refused.items():
            [line] = await ori.ask(f"@{TAG}={escape(value)} LEDGER PUT {kind} {key}")
            assert line.params[:2] == ("LEDGER", code)
        for what in ("limit=0", "since=yesterday", "before=", "nick a=b", "* * *"):
            [line] = await ori.ask(f"LEDGER GET state {what}")
            assert line.params[:2] == ("LEDGER", "INVALID_PARAMS")
        assert await get(ori, "*") == []


async def test_too_many_at_once_are_refused_and_tags_are_needed(serve: Serve) -> None:
    async with (
        serve() as ircd,
        registered(ircd.port, "spark-claude", CAPS) as claude,
        registered(ircd.port, "spark-ori") as ori,
    ):
        await agent(claude)
        for number in range(1_000):
            claude.send(f"@{TAG}={{}} LEDGER PUT alert a{number}")
        answers = await claude.sync()
        assert {line.params[1] for line in answers if line.verb == "FAIL"} == {"RATE_LIMITED"}
        assert 600 <= len([line for line in answers if line.verb == "LEDGEREND"]) < 1_000
        [line] = await ori.ask("LEDGER GET alert")
        assert line.params[:2] == ("LEDGER", "NEED_TAGS")


async def test_receipts_are_facts(serve: Serve) -> None:
    async with (
        serve() as ircd,
        registered(ircd.port, "spark-ori", f"{CAPS} echo-message") as ori,
        registered(ircd.port, "spark-claude", CAPS) as claude,
    ):
        ori.send("PRIVMSG spark-claude :a secret")
        msgid = (await ori.expect("PRIVMSG")).tags["msgid"]
        for state in ("delivered", "injected"):
            await claude.ask(f"RECEIPT {state} spark-ori {msgid}")
        found = await get(ori, f"receipt * key={msgid}")
        assert [(nick, key) for nick, _, key, _ in found] == [
            ("spark-claude", f"{msgid}/injected"),
            ("spark-claude", f"{msgid}/delivered"),
        ]
        assert "secret" not in str(found) and "ori" not in str(found)


facts = st.builds(
    Fact,
    st.sampled_from(["spark-a", "Spark-A", "thor-b"]),
    st.sampled_from(["state", "spend"]),
    st.sampled_from(["now", "turn-1"]),
    st.sampled_from(["{}", '{"a":1}', '{"a":2}']),
    st.integers(1, 3),
    st.sampled_from(["spark", "thor"]),
    st.integers(1, 3),
)


@given(st.lists(facts, max_size=20, unique_by=lambda fact: (fact.at, fact.origin, fact.seq)), st.randoms())
def test_in_whatever_order_facts_come_the_same_hold(tmp_path_factory: Any, some: list[Fact], dice: Any) -> None:
    mixed = [*some, *some]
    dice.shuffle(mixed)
    held = []
    for order in (some, mixed):
        store = LedgerStore(tmp_path_factory.mktemp("ledger") / "ledger.db")
        store.write(order)
        held.append(store.find(FactQuery(most=100)))
        store.close()
    assert held[0] == held[1]
    assert len(held[0]) == len({fact.place for fact in some})


def test_the_oldest_are_forgotten(tmp_path: Path) -> None:
    store = LedgerStore(tmp_path / "ledger.db")
    nicks = ("spark-a", "spark-b")
    store.write([Fact(nick, "spend", f"t{at}", "{}", at, "spark", at) for nick in nicks for at in range(10)])
    store.prune(2, 100, 5)
    assert [(fact.nick, fact.at) for fact in store.find(FactQuery(nick="spark-a"))] == [
        ("spark-a", at) for at in (9, 8, 7, 6, 5)
    ]
    store.prune(0, 4, 5)
    assert {fact.at for fact in store.find(FactQuery())} == {9, 8}
    store.close()
