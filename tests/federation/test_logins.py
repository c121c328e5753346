"""How somebody was logged in crosses links: a login by local uid, or one that nothing is said of, is proven nowhere."""

import os
from pathlib import Path

import pytest

from culture.protocol.message import Message
from culture.protocol.vocabulary import Tag, UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.transport.parse_messages import MessageParser
from culture.transport.view import NetworkView
from tests.federation.meshes import Servers, linked
from tests.federation.test_trust import linked as linked_with_thor
from tests.support.client import Client, connected, registered
from tests.support.people import PASSWORD, verifier

CAPS = "message-tags account-tag draft/chathistory batch"
EDGE = ("alfa", "bravo")
FOUND = [("by uid", None), ("by password", "ori@alfa")]
BOB = "thor-bob!user@host"


def account_of(folder: Path) -> None:
    """An account of a person on alfa whose local uid is that of this process."""
    (folder / "alfa").mkdir()
    store = AccountStore(folder / "alfa" / "accounts.json", "alfa")
    store.add(new_account("ori", UserClass.HUMAN, user=str(os.getuid()), verifier=verifier()))


def proven(line: Message) -> str | None:
    """The account that a message proves to an agent, read as our clients do."""
    view = NetworkView()
    view.nick = "bravo-claude"
    message = MessageParser(view, ["agentirc.dev/mentions"], ()).message(line)
    assert message is not None
    return message.account


async def two_logins(made: Servers) -> tuple[Client, Client]:
    """The same person on alfa twice: by local uid, and with a password."""
    by_uid = await made.client("alfa-ori", "#work", caps="message-tags")
    by_password = await made._stack.enter_async_context(connected(made["alfa"].port))
    by_password.send(f"PASS :ori:{PASSWORD}")
    await by_password.register("alfa-ori", "message-tags")
    return by_uid, by_password


async def test_a_login_by_local_uid_is_no_proof_on_the_other_side_of_a_link(tmp_path: Path) -> None:
    account_of(tmp_path)
    async with linked(tmp_path, EDGE, [EDGE]) as made:
        claude = await made.client("bravo-claude", "#work", caps=CAPS)
        by_uid, by_password = await two_logins(made)
        await made.whole()
        for target in ("#work", "bravo-claude"):
            by_uid.send(f"PRIVMSG {target} :by uid")
            line = await claude.expect("PRIVMSG")
            assert (line.tags["account"], line.tags[Tag.CLASS]) == ("ori@alfa", "human")
            assert Tag.KEYBOARD in line.tags and proven(line) is None
            # What a client may say must not crowd out what its server says.
            by_uid.send(f"@+x={'y' * 4080} PRIVMSG {target} :by uid, with long tags")
            line = await claude.expect("PRIVMSG")
            assert Tag.KEYBOARD in line.tags and proven(line) is None
            by_password.send(f"PRIVMSG {target} :by password")
            line = await claude.expect("PRIVMSG")
            assert line.tags[Tag.LOGIN] == "password" and proven(line) == "ori@alfa"


async def test_a_login_by_local_uid_stays_no_proof_in_backfill_and_in_the_history(tmp_path: Path) -> None:
    account_of(tmp_path)
    async with linked(tmp_path, EDGE, [EDGE]) as made:
        claude = await made.client("bravo-claude", "#work", caps=CAPS)
        by_uid, by_password = await two_logins(made)
        await made.whole()
        await made.cut(*EDGE)
        for client, text in ((by_uid, "by uid"), (by_password, "by password")):
            await client.ask(f"PRIVMSG #work :{text}")
        made.heal(*EDGE)
        await made.whole()
        lines = [await claude.expect("PRIVMSG") for _ in range(2)]
        assert [(line.params[1], proven(line)) for line in lines] == FOUND
    async with linked(tmp_path, EDGE, [EDGE]) as made:  # and when it is read from the disk of the other side
        claude = await made.client("bravo-claude", "#work", caps=CAPS)
        lines = [line for line in await claude.ask("CHATHISTORY LATEST #work * 10") if line.verb == "PRIVMSG"]
        assert [(line.params[1], proven(line)) for line in lines] == FOUND


@pytest.mark.parametrize(
    ("trust", "tags", "account"),
    [
        ("full", "account=bob;kind=human;agentirc.dev/login=scram", "bob@thor"),
        ("full", "account=bob;kind=human", None),  # a peer of before, which says nothing of logins
        ("full", "account=bob;kind=human;agentirc.dev/login=scram;agentirc.dev/keyboard", None),
        ("full", "account=bob;kind=human;agentirc.dev/login=magic", None),
        ("full", "kind=human;agentirc.dev/login=scram", None),
        ("no_authority", "account=bob;kind=human;agentirc.dev/login=scram", None),
    ],
)
async def test_only_a_vouched_server_that_says_so_proves_a_login(
    tmp_path: Path, trust: str, tags: str, account: str | None
) -> None:
    async with (
        linked_with_thor(tmp_path, trust) as (ircd, peer),
        registered(ircd.port, "spark-claude", CAPS) as claude,
    ):
        await claude.join("#general")
        peer.arrive("thor-bob", "account=bob;kind=human")
        peer.join("thor-bob", "#general")
        peer.event("PRIVMSG #general :yes", BOB, tags)
        line = await claude.expect("PRIVMSG")
        assert proven(line) == account and (Tag.LOGIN in line.tags) is (account is not None)
