"""Whose account a token opens, and what its bearer is."""

import asyncio
from pathlib import Path

import pytest

from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.ircd import IRCd
from tests.server.oidc.conftest import Trust
from tests.server.oidc.logins import logs_in, show
from tests.support.client import Client, connected
from tests.support.clock import Clock
from tests.support.issuer import Issuer, bearer
from tests.support.people import PASSWORD, accounts_of, authenticate, come_in, plain

CLASSES = {"class_claim": "groups", "classes": {"human": ("people",), "agent": ("agents",), "bot": ("bots",)}}


def store(folder: Path) -> AccountStore:
    """As the command line opens it."""
    return AccountStore(folder / "accounts.json", "spark")


@pytest.mark.requirement("A21")
async def test_a_token_takes_over_no_local_account(tmp_path: Path, trusting: Trust, issuer: Issuer) -> None:
    """Neither by its name, however written, nor by a nick of it."""
    accounts = accounts_of(tmp_path, "ada")
    accounts.add(new_account("bob", UserClass.BOT, nicks=("robert",)))
    async with trusting() as ircd:
        for name in ("ada", "ADA", "bob", "robert", "spark-ada", "spark-robert"):
            assert not await logs_in(ircd, issuer.token(name)), name
        assert [each.name for each in store(tmp_path).all()] == ["ada", "bob"]
        async with connected(ircd.port) as client:
            assert (await authenticate(client, "PLAIN", plain("ada", PASSWORD))).verb == "903"


@pytest.mark.parametrize(
    "name", ["ori@example.org", "o ri", "", "0", "*", "server", "x" * 33, "örí", "ori\n", "spark-ori", "a.b", "#ori"]
)
async def test_what_cannot_be_an_account(trusting: Trust, issuer: Issuer, name: str) -> None:
    async with trusting({"account_claim": "nickname"}) as ircd:
        assert not await logs_in(ircd, issuer.token("1", nickname=name))
        assert ircd.parts.accounts.all() == ()


async def test_the_subject_decides_once_it_has_an_account(tmp_path: Path, trusting: Trust, issuer: Issuer) -> None:
    """Another name for the same `sub` leads to the same account; the same name for another does not. Also later."""
    said = {"account_claim": "preferred_username"}
    async with trusting(said) as ircd:
        assert not await logs_in(ircd, issuer.token("1"))
        assert await logs_in(ircd, issuer.token("1", preferred_username="ori"))
        assert not await logs_in(ircd, issuer.token("2", preferred_username="ori"))
        assert not await logs_in(ircd, issuer.token("2", preferred_username="Ori"))
    async with trusting(said) as ircd:
        assert not await logs_in(ircd, issuer.token("2", preferred_username="ori"))
        assert await logs_in(ircd, issuer.token("1", preferred_username="renamed"), "ori")
        assert await logs_in(ircd, issuer.token("1", preferred_username="no name"), "ori")
    assert [each.name for each in store(tmp_path).all()] == ["ori"]


async def test_many_first_logins_make_one_account(tmp_path: Path, trusting: Trust, issuer: Issuer) -> None:
    async with trusting() as ircd:
        assert all(await asyncio.gather(*(logs_in(ircd, issuer.token()) for _ in range(8))))
        assert [each.name for each in store(tmp_path).all()] == ["ori"]


async def test_who_is_revoked_here_is_out_and_stays_out(tmp_path: Path, trusting: Trust, issuer: Issuer) -> None:
    """Also under another name; until the account gets a password."""
    async with trusting({"account_claim": "nickname"}) as ircd, connected(ircd.port) as ori:
        assert await show(ori, *bearer(issuer.token("1", nickname="ori"))) == "903"
        await come_in(ori, "spark-ori")
        await asyncio.to_thread(store(tmp_path).revoke, "ori")
        assert (await ori.ended())[-1].params[-1].endswith("(Your account was revoked)")
        assert not await logs_in(ircd, issuer.token("1", nickname="ori"))
        assert not await logs_in(ircd, issuer.token("1", nickname="another"))
        assert [each.name for each in store(tmp_path).all()] == ["ori"]


@pytest.mark.fault("C8")
@pytest.mark.requirement("A21")
@pytest.mark.parametrize(
    ("groups", "kind"),
    [
        ("people", "human"),
        (["staff", "people"], "human"),
        (["agents"], "agent"),
        (["bots"], "bot"),
        (["people", "agents"], "agent"),
        (["people", "bots"], "bot"),
        (["human"], "unknown"),
        ([["people"]], "unknown"),
        ({"people": True}, "unknown"),
        (None, "unknown"),
    ],
    ids=str,
)
async def test_what_somebody_is(trusting: Trust, issuer: Issuer, groups: object, kind: str) -> None:
    """C8: a person is only who the mapping makes one."""
    async with trusting(CLASSES) as ircd, connected(ircd.port) as ori:
        assert await show(ori, *bearer(issuer.token(groups=groups, kind="human"))) == "903"
        await come_in(ori, "spark-ori")
        assert ircd.parts.network.users["spark-ori"].kind == kind


@pytest.mark.fault("C8")
async def test_without_a_mapping_nobody_is_a_person(trusting: Trust, issuer: Issuer) -> None:
    async with trusting() as ircd, connected(ircd.port) as ori:
        assert await show(ori, *bearer(issuer.token(groups=["people"], **{"class": "human"}))) == "903"
        await come_in(ori, "spark-ori")
        assert ircd.parts.network.users["spark-ori"].kind == "unknown"
        assert not ircd.parts.accounts.knows_people


async def present(ircd: IRCd, client: Client, token: str) -> str:
    assert await show(client, *bearer(token)) == "903"
    await come_in(client, "spark-ori")
    return ircd.parts.network.users["spark-ori"].kind


async def test_a_class_that_changed_holds_for_who_is_there(trusting: Trust, issuer: Issuer) -> None:
    """What the newest token says, for all sessions and on disk."""
    async with trusting(CLASSES) as ircd, connected(ircd.port) as one, connected(ircd.port) as two:
        assert await present(ircd, one, issuer.token(groups="people")) == "human"
        assert await present(ircd, two, issuer.token(groups="agents")) == "agent"
        account = ircd.parts.accounts.get("ori")
        assert account is not None and account.kind is UserClass.AGENT and not account.always_on


async def test_a_login_outlives_its_token(trusting: Trust, issuer: Issuer, clock: Clock) -> None:
    """The connection goes on; the next one needs a token that is good."""
    async with trusting() as ircd, connected(ircd.port) as ori:
        token = issuer.token()
        await present(ircd, ori, token)
        clock.now += 86400
        assert not await logs_in(ircd, token)
        assert (await ori.ask("JOIN #general"))[0].verb == "JOIN"
