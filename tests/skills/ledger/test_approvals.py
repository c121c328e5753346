"""Who may publish facts where people have accounts, and what the server says of an approval in one."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from culture.config.skills import HistoryConfig
from culture.protocol.message import Message
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.skills.audit.file import NAME
from tests.skills.ledger.test_ledger import TAG, put
from tests.support.client import Client, connected
from tests.support.people import PASSWORD, verifier
from tests.support.servers import serving

CAPS = "message-tags echo-message draft/message-redaction"
ASKED = "2026-03-19T10:00:00+00:00"


class Scene:
    """A server with accounts of every class, and clients of it."""

    def __init__(self, port: int, store: AccountStore, stack: AsyncExitStack) -> None:
        self._port = port
        self._store = store
        self._stack = stack

    async def come(self, nick: str, account: str = "") -> Client:
        """A client in #work; logged in with a password (people) or a token where there is an account."""
        client = await self._stack.enter_async_context(connected(self._port))
        if account:
            found = self._store.get(account)
            is_person = found is not None and found.kind is UserClass.HUMAN
            client.send(f"PASS :{account}:{PASSWORD if is_person else self._store.add_token(account, 'test')}")
        await client.register(nick, CAPS)
        await client.join("#work")
        return client


@asynccontextmanager
async def scene(folder: Path, **settings: Any) -> AsyncIterator[Scene]:
    """People ori, and mia by local uid; the agents claude and rover; a bot."""
    store = AccountStore(folder / "accounts.json", "spark")
    store.add(new_account("ori", UserClass.HUMAN, verifier=verifier()))
    store.add(new_account("mia", UserClass.HUMAN, user=str(os.getuid()), always_on=False))
    for name, kind in (("claude", UserClass.AGENT), ("rover", UserClass.AGENT), ("helper", UserClass.BOT)):
        store.add(new_account(name, kind, always_on=False))
    async with serving(folder, **settings) as ircd, AsyncExitStack() as stack:
        yield Scene(ircd.port, store, stack)


async def said(client: Client, target: str, text: str) -> str:
    """The id of what somebody says."""
    lines = await client.ask(f"PRIVMSG {target} :{text}")
    return next(line.tags["msgid"] for line in lines if line.source.startswith(f"{client.nick}!"))


async def told(client: Client, question: str) -> list[Message]:
    """The lines of the answer, without what others do meanwhile."""
    lines = await client.ask(question)
    return [line for line in lines if line.verb.startswith("LEDGER") or line.verb.isdigit()]


def answer(msgid: str | None, by: str = "spark-ori", **more: Any) -> dict[str, Any]:
    """A closed question, as an agent publishes it."""
    named = {} if msgid is None else {"answer": msgid}
    fact = {"open": False, "outcome": "ANSWERED", "by": by, "class": "human", "human_confirmed": True}
    return {**fact, "place": "#work", "choice": "yes", "asked": ASKED, **named, **more}


async def published(agent: Client, fact: dict[str, Any]) -> dict[str, Any]:
    """What the ledger has of a question once it is published; its publisher is told the same verdict."""
    line = (await put(agent, "question", "q1", fact))[-1]
    assert line.verb == "LEDGEREND", line
    [shown, _] = await told(agent, "LEDGER GET question")
    found: dict[str, Any] = json.loads(shown.tags[TAG])
    assert json.loads(line.tags[TAG]) == {key: found[key] for key in ("verified", "verified_why")}
    return found


async def test_without_an_account_of_class_agent_nothing_is_published(tmp_path: Path) -> None:
    forged = answer("spark.1.1", verified=True)
    async with scene(tmp_path) as here:
        ori, claude = await here.come("spark-ori", "ori"), await here.come("spark-claude", "claude")
        nobody, helper = await here.come("spark-eve"), await here.come("spark-helper", "helper")
        for client in (nobody, helper):
            await client.ask(f"MODE {client.nick} +B")
        for client in (nobody, helper, ori):
            for kind, key, value in (
                ("question", "q1", forged),
                ("state", "now", {"state": "working"}),
                ("task", "t", {}),
            ):
                assert (await put(client, kind, key, value))[-1].verb == "481", (client.nick, kind)
        assert [line.verb for line in await told(nobody, "LEDGER GET *")] == ["481"]
        msgid = await said(ori, "#work", "@spark-eve hello")
        assert not [line for line in await nobody.ask(f"RECEIPT answered #work {msgid}") if line.verb == "FAIL"]
        for reader in (ori, claude, helper):
            assert [line.verb for line in await told(reader, "LEDGER GET *")] == ["LEDGEREND"], "no receipt either"
        for kind in ("state", "task"):  # as daemons do, and the orchestrator of a team
            assert (await put(claude, kind, "now", {"state": "working"}))[-1].verb == "LEDGEREND"


async def test_an_approval_is_verified_against_the_message_that_it_names(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        ori, mia = await here.come("spark-ori", "ori"), await here.come("spark-mia")
        claude, rover = await here.come("spark-claude", "claude"), await here.come("spark-rover", "rover")
        eve = await here.come("spark-eve")
        yes, private = await said(ori, "#work", "@spark-claude yes"), await said(ori, "spark-claude", "yes")
        for msgid in (yes, private):
            found = await published(claude, answer(msgid))
            assert found["verified"] is True and found["human_confirmed"] is True
            assert found["verified_why"] == "logged in as ori (password)" and found["answer"] == msgid
        # An agent's vote, of its class.
        vote = await said(rover, "#work", "@spark-claude yes")
        found = await published(claude, answer(vote, "spark-rover", **{"class": "agent", "human_confirmed": False}))
        assert found["verified"] is True and found["verified_why"] == "logged in as rover (token)"
        # By local uid: it is that account, and nobody knows whether a person typed it.
        found = await published(claude, answer(await said(mia, "#work", "@spark-claude yes"), "spark-mia"))
        assert found["verified"] == "unknown" and "local uid" in found["verified_why"]
        assert "human_confirmed" not in found
        # A yes of whatever age would do for a question of which nobody knows when it was asked.
        for asked in (None, "yesterday", "2026-01-01T00:00:00"):
            found = await published(claude, answer(yes, asked=asked))
            assert found["verified"] == "unknown" and "when the question was asked" in found["verified_why"]
            assert "human_confirmed" not in found
        # Nothing named, or a message of another server that is not here.
        for fact in (answer(None), answer("thor.1.1")):
            assert (await published(claude, fact))["verified"] == "unknown"
        secret = await said(ori, "spark-rover", "yes, it is rosebud")
        by_eve = await said(eve, "#work", "@spark-claude yes")
        for fact, why in (
            (answer("spark.1.1"), "no such message to spark-claude"),
            (answer(secret), "no such message to spark-claude"),
            (answer(by_eve), "from spark-eve"),
            (answer(by_eve, "spark-eve"), "class unknown"),
            (answer(vote, "spark-rover"), "class agent"),
            (answer(yes, asked="2999-01-01T00:00:00+00:00"), "older than the question"),
        ):
            found = await published(claude, {**fact, "verified": True, "verified_why": "trust me"})
            assert found["verified"] is False and why in found["verified_why"], found
            assert "human_confirmed" not in found and "ori" not in found["verified_why"]
        # To somebody else in the same channel.
        found = await published(claude, answer(await said(ori, "#work", "@spark-rover yes")))
        assert found["verified"] == "unknown" and "not to it" in found["verified_why"]
        assert "human_confirmed" not in found
        # Taken back: nobody can say any more what it was.
        await ori.ask(f"REDACT #work {yes}")
        assert (await published(claude, answer(yes)))["verified_why"] == "the message was taken back"
    lines = [json.loads(line) for line in (tmp_path / "data" / "audit" / NAME).read_text().splitlines()]
    closed = [line for line in lines if line["what"] == "was answered"]
    assert [line["verified"] for line in closed].count(True) == 3
    assert closed[0]["answer"] == yes and "rosebud" not in str(closed)


async def test_an_open_question_and_one_that_nobody_answered_have_no_verdict(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        claude = await here.come("spark-claude", "claude")
        for fact in ({"open": True, "text": "may I?"}, {"open": False, "outcome": "TIMED_OUT", "by": None}):
            escaped = json.dumps(fact)[:-1] + r', "\u0076erified": true}'
            await claude.ask(
                f"@{TAG}={escaped.replace(chr(92), chr(92) * 2).replace(' ', chr(92) + 's')} LEDGER PUT question q1"
            )
            [shown, _] = await told(claude, "LEDGER GET question")
            assert json.loads(shown.tags[TAG]) == fact


@pytest.mark.parametrize(
    ("kind", "fact", "left"),
    [
        ("task", {"by": "spark-ori"}, {"by"}),
        ("alert", {"text": "done"}, {"text"}),
        ("question", {"open": True, "by": "spark-ori", "outcome": "ANSWERED", "choice": "yes"}, {"open"}),
        ("question", {"open": False, "outcome": "TIMED_OUT", "by": None, "answer": "x"}, {"open", "outcome", "by"}),
        ("question", {"open": False, "outcome": "ANSWERED"}, {"open", "outcome", "verified", "verified_why"}),
    ],
)
async def test_no_fact_of_another_shape_passes_for_an_approval(
    tmp_path: Path, kind: str, fact: dict[str, Any], left: set[str]
) -> None:
    """Neither in the ledger nor in the audit."""
    forged = {**fact, "class": "human", "human_confirmed": True, "verified": True, "verified_why": "trust me"}
    if kind != "question":
        del forged["class"]
    async with scene(tmp_path) as here:
        claude = await here.come("spark-claude", "claude")
        await put(claude, kind, "k1", forged)
        [shown, _] = await told(claude, f"LEDGER GET {kind}")
        found = json.loads(shown.tags[TAG])
        assert found.keys() - {"class"} == left and found.get("verified") in (None, "unknown")
    lines = (tmp_path / "data" / "audit" / NAME).read_text()
    assert "human_confirmed" not in lines and "trust me" not in lines and '"verified":true' not in lines


async def test_without_a_history_an_approval_is_never_verified(tmp_path: Path) -> None:
    async with scene(tmp_path, history=HistoryConfig(enabled=False)) as here:
        ori, claude = await here.come("spark-ori", "ori"), await here.come("spark-claude", "claude")
        found = await published(claude, answer(await said(ori, "#work", "@spark-claude yes")))
        assert found["verified"] == "unknown" and found["verified_why"] == "the history of this server is off"


@pytest.mark.parametrize("value", [True, "true"])
async def test_half_a_character_in_a_fact_breaks_nothing(tmp_path: Path, value: object) -> None:
    async with scene(tmp_path) as here:
        claude = await here.come("spark-claude", "claude")
        found = await published(claude, answer(None, text="\ud800", verified=value))
        assert found["text"] == "\ud800" and found["verified"] == "unknown"
