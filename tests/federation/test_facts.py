"""Receipts go towards the sender, facts of the ledger to everybody; after a split all have the same."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from culture.config.links import LinkConfig
from culture.federation.linkfacts import milliseconds, roughly
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.events import Noted
from tests.federation import meshes
from tests.federation.meshes import Servers, linked
from tests.federation.test_trust import linked as linked_with_thor
from tests.skills.ledger.test_ledger import agent, put
from tests.skills.ledger.test_receipts import STATES, is_receipt, said, told
from tests.support.client import Client, connected, registered
from tests.support.clock import sleep
from tests.support.people import PASSWORD, verifier
from tests.support.servers import serving

CAPS = "message-tags echo-message agentirc.dev/receipts"
LINE = [("alfa", "bravo"), ("bravo", "carl")]


async def facts(client: Client, what: str = "*") -> list[tuple[object, ...]]:
    """What is said of agents; of links servers speak all the time."""
    lines = await client.ask(f"LEDGER GET {what}")
    return [(line.params, line.tags) for line in lines if line.verb == "LEDGER" and line.params[1] != "link"]


async def links(client: Client) -> dict[tuple[str, str], dict[str, Any]]:
    """The mesh as a server's ledger has it, by who speaks of whom."""
    lines = await client.ask("LEDGER GET link")
    rows = [line for line in lines if line.verb == "LEDGER"]
    assert all(line.params[0] == line.params[4] for line in rows)
    return {(line.params[0], line.params[2]): json.loads(line.tags["+agentirc.dev/fact"]) for line in rows}


async def states(clients: list[Client], wanted: dict[tuple[str, str], str]) -> None:
    """Wait until each of them is told these states, and of linked ones how long the way is."""
    for _ in range(200):
        found = [await links(client) for client in clients]
        known = [{pair: value["state"] for pair, value in each.items()} for each in found]
        measured = all("lag_ms" in value for each in found for value in each.values() if value["state"] == "linked")
        if all(each == wanted for each in known) and measured:
            return
        await sleep(0.05)
    raise AssertionError(found)


async def same(clients: list[Client], count: int) -> list[tuple[object, ...]]:
    """Wait until all are told the same facts."""
    for _ in range(200):
        found = [await facts(client) for client in clients]
        if all(each == found[0] for each in found) and len(found[0]) == count:
            return found[0]
        await sleep(0.05)
    raise AssertionError(found)


async def people(made: Servers, *names: str) -> list[Client]:
    return [await made.client(f"{name}-person", "#work", caps=CAPS) for name in names]


@pytest.mark.parametrize("private", [False, True])
async def test_receipts_cross_links_towards_the_sender_alone(tmp_path: Path, private: bool) -> None:
    async with linked(tmp_path, ("alfa", "bravo", "carl"), LINE) as made:
        sender, between, other = await people(made, "alfa", "bravo", "carl")
        claude = await made.client("carl-claude", "#work", caps=CAPS)
        await made.whole()
        msgid = await said(sender, "carl-claude" if private else "#work", "hello")
        await claude.expect("PRIVMSG")
        for state in STATES:
            assert await claude.ask(f"RECEIPT {state} {'alfa-person' if private else '#work'} {msgid}") == []
            assert await told(sender) == ("carl-claude", msgid, state)
        for client in (between, other):
            assert not [line for line in await client.sync() if is_receipt(line) and "!" in line.source]
        await same([sender, between, other], 3)


async def test_after_a_split_all_have_the_same_facts_and_the_receipt_comes(tmp_path: Path) -> None:
    async with linked(tmp_path, ("alfa", "bravo"), LINE[:1]) as made:
        one, other = await people(made, "alfa", "bravo")
        claude, rover = [await made.client(nick, "#work", caps=CAPS) for nick in ("alfa-claude", "bravo-rover")]
        for client in (claude, rover):
            await agent(client)
        await made.whole()
        msgid = await said(one, "bravo-rover")
        await rover.expect("PRIVMSG")
        await made.cut("alfa", "bravo")
        for number in range(3):
            await put(claude, "spend", f"turn-{number}", {"tokens": number})
            await put(rover, "state", "now", {"state": "working", "task": number})
        assert await rover.ask(f"RECEIPT delivered alfa-person {msgid}") == []
        assert len(await facts(one)) == 3 and len(await facts(other)) == 2
        made.heal("alfa", "bravo")
        await made.whole()
        assert await told(one) == ("bravo-rover", msgid, "delivered")
        held = await same([one, other], 5)
        assert '"task": 2' in str(held)


async def test_a_server_that_was_never_here_is_told_what_was_noted_before_it_came(tmp_path: Path) -> None:
    """Else an agent that says nothing new is missing in every view of the other side."""
    async with (
        serving(tmp_path / "alfa", name="alfa") as ircd,
        registered(ircd.port, "alfa-person", CAPS) as one,
        registered(ircd.port, "alfa-claude", CAPS) as claude,
    ):
        await agent(claude)
        await put(claude, "state", "now", {"state": "idle"})
        before = await facts(one)
    for _ in range(2):  # and once is enough
        async with linked(tmp_path, ("alfa", "bravo"), LINE[:1]) as made:
            one, other = await people(made, "alfa", "bravo")
            assert await same([one, other], 1) == before, "as of its own time"


@pytest.mark.parametrize("trust", ["no_authority", "restricted"])
async def test_facts_stay_on_this_side_of_a_link_without_full_trust(
    tmp_path: Path, trust: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {"trust": trust, **({"channels": ("#work",)} if trust == "restricted" else {})}
    monkeypatch.setattr(meshes, "LinkConfig", lambda **said: LinkConfig(**{**said, **more}))
    async with linked(tmp_path, ("alfa", "bravo"), LINE[:1]) as made:
        one, other = await people(made, "alfa", "bravo")
        claude = await made.client("alfa-claude", "#work", caps=CAPS)
        await agent(claude)
        await put(claude, "state", "now", {"state": "idle"})
        assert len(await facts(one)) == 1
        await said(one, "#work", "a word that comes after it")
        await other.expect("PRIVMSG")
        assert await facts(other) == []


async def test_every_server_knows_how_each_link_of_the_mesh_is(tmp_path: Path) -> None:
    """Also those between others; both sides of a link that is cut say so, and that it is back."""
    async with linked(tmp_path, ("alfa", "bravo", "carl"), LINE) as made:
        clients = await people(made, "alfa", "bravo", "carl")
        up = {pair: "linked" for one, other in LINE for pair in ((one, other), (other, one))}
        await states(clients, up)
        first = await links(clients[0])
        assert first["carl", "bravo"]["behind"] == 0 and first["carl", "bravo"]["lag_ms"] >= 5
        await made.cut("alfa", "bravo")
        await states(clients[:1], {**up, ("alfa", "bravo"): "down"})
        await states(clients[1:], {**up, ("bravo", "alfa"): "down"})
        made.heal("alfa", "bravo")
        await states(clients, up)
        again = (await links(clients[2]))["alfa", "bravo"]
        assert again["since"] > first["alfa", "bravo"]["since"]
        # From when to when it was down stays known when it is over.
        began, ended = again["outages"][-1]
        assert first["alfa", "bravo"]["since"] <= began <= ended == again["since"]


@pytest.mark.parametrize("trust", ["no_authority", "restricted"])
async def test_a_server_without_full_trust_learns_nothing_of_other_links(
    tmp_path: Path, trust: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {"trust": trust, **({"channels": ("#work",)} if trust == "restricted" else {})}
    monkeypatch.setattr(meshes, "LinkConfig", lambda **said: LinkConfig(**{**said, **more}))
    async with linked(tmp_path, ("alfa", "bravo"), LINE[:1]) as made:
        one, other = await people(made, "alfa", "bravo")
        await states([one], {("alfa", "bravo"): "linked"})
        await said(one, "#work", "a word that comes after it")
        await other.expect("PRIVMSG")
        await states([other], {("bravo", "alfa"): "linked"})


async def test_a_link_that_is_taken_away_is_said_to_be_so(tmp_path: Path) -> None:
    async with linked(tmp_path, ("alfa", "bravo"), LINE[:1]) as made:
        [one] = await people(made, "alfa")
        mesh: Any = made["alfa"].parts.skills.get("federation")
        await states([one], {("alfa", "bravo"): "linked", ("bravo", "alfa"): "linked"})
        mesh.standing._have({})
        for _ in range(200):
            if (await links(one))["alfa", "bravo"]["state"] == "removed":
                return
            await sleep(0.05)
        raise AssertionError(await links(one))


async def test_of_links_nobody_but_servers_speaks(tmp_path: Path) -> None:
    async with linked(tmp_path, ("alfa", "bravo"), LINE[:1]) as made:
        [claude] = [await made.client("alfa-claude", "#work", caps=CAPS)]
        await agent(claude)
        claude.send('@+agentirc.dev/fact={"state":"down"} LEDGER PUT link bravo')
        assert (await claude.expect("FAIL")).params[1] == "INVALID_KIND"
        ledger: Any = made["alfa"].parts.skills.get("ledger")
        stamp = made["bravo"].parts.router.ids.stamp()
        ledger.noted(Noted(stamp, "bravo-rover!r@h", "link", "alfa", "{}"))
        assert not [pair for pair in await links(claude) if "rover" in pair[0]]


def test_what_changes_all_the_time_is_rounded() -> None:
    assert [milliseconds(seconds) for seconds in (0.0, 0.004, 0.006, 0.011, 0.03, 0.3, 2.1)] == [
        *(5, 5, 10, 20, 50, 500, 5000),
    ]
    assert [roughly(count) for count in (0, 99, 100, 199, 4567)] == [0, 0, 100, 100, 4000]


async def test_an_approval_is_verified_by_the_server_where_it_was_published(tmp_path: Path) -> None:
    (tmp_path / "alfa").mkdir()
    store = AccountStore(tmp_path / "alfa" / "accounts.json", "alfa")
    store.add(new_account("ori", UserClass.HUMAN, verifier=verifier(), always_on=False))
    store.add(new_account("claude", UserClass.AGENT, always_on=False))
    async with (
        linked(tmp_path, ("alfa", "bravo"), LINE[:1]) as made,
        connected(made["alfa"].port) as ori,
        connected(made["alfa"].port) as claude,
    ):
        ori.send(f"PASS :ori:{PASSWORD}")
        claude.send(f"PASS :claude:{store.add_token('claude', 'test')}")
        for client, nick in ((ori, "alfa-ori"), (claude, "alfa-claude")):
            await client.register(nick, CAPS)
        [reader] = await people(made, "bravo")
        for key, msgid in (("q1", await said(ori, "alfa-claude")), ("q2", "alfa.1.1")):
            fact = {"open": False, "by": "alfa-ori", "class": "human", "answer": msgid, "verified": True}
            fact["asked"] = datetime.now(UTC).isoformat()
            await put(claude, "question", key, fact)
        for _ in range(200):  # bravo has none of the private message, and needs none
            found = {str(each[0]): str(each[1]) for each in await facts(reader, "question")}  # type: ignore[index]
            if len(found) == 2:
                break
            await sleep(0.05)
        shown = {key: value for params, value in found.items() for key in ("q1", "q2") if f"'{key}'" in params}
        assert '"verified":true' in shown["q1"] and "logged in as ori (password)" in shown["q1"]
        assert '"verified":false' in shown["q2"]


@pytest.mark.parametrize(
    ("tags", "verified"),
    [
        ("verified=true;why=logged\\sin", True),
        ("verified=false;why=made\\sup", False),
        ("", "unknown"),  # a server of before: its agents may write what they like into the fact itself
        ("verified=maybe;why=trust\\sme", "unknown"),
    ],
)
async def test_what_a_publisher_says_of_its_approval_is_no_word_of_its_server(
    tmp_path: Path, tags: str, verified: object
) -> None:
    fact = r'{"open":false,"by":"thor-ori","answer":"thor.1.1","verified":true,"\u0076erified_why":"trust me"}'
    async with linked_with_thor(tmp_path) as (ircd, peer), registered(ircd.port, "spark-person", CAPS) as person:
        peer.arrive("thor-claude", "account=claude;kind=agent")
        peer.event(f"LEDGER question q1 :{fact}", "thor-claude!user@host", tags)
        await peer.answered()
        [(_, shown)] = await facts(person, "question")
        value = json.loads(shown["+agentirc.dev/fact"])  # type: ignore[index]
        assert value["verified"] == verified and "trust" not in value["verified_why"]
