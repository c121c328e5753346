"""Agents are invited to the channels that have a tag of theirs, once, by their own server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from culture.protocol.vocabulary import UserClass
from culture.server.auth.accounts import new_account
from culture.server.ircd import IRCd
from tests.support.agents import agents_yaml, running
from tests.support.client import Client, connected, registered
from tests.support.people import PASSWORD, accounts_of, verifier
from tests.support.servers import serving


@asynccontextmanager
async def logged_in(port: int, account: str) -> AsyncIterator[Client]:
    async with connected(port) as client:
        client.send(f"PASS :{account}:{PASSWORD}")
        await client.register(f"spark-{account}")
        yield client


async def tags(client: Client, target: str, said: str) -> list[str]:
    """Set them; the channels that the client was invited to in answer."""
    answers = await client.ask(f"METADATA {target} SET agentirc.dev/tags :{said}")
    return [each.params[1] for each in answers if each.verb == "INVITE"]


@pytest.fixture
async def ircd(tmp_path: Path) -> AsyncIterator[IRCd]:
    async with serving(tmp_path) as server:
        yield server


async def agent(client: Client) -> None:
    await client.ask(f"MODE {client.nick} +B")


@pytest.mark.requirement("K12")
async def test_a_channel_that_gets_a_tag_calls_the_agents_that_have_it(ircd: IRCd) -> None:
    async with registered(ircd.port, "spark-ori") as ori, registered(ircd.port, "spark-bot") as bot:
        await agent(bot)
        await tags(bot, "*", "cmake, CUDA")
        await ori.join("#llama")
        await tags(ori, "#llama", "cuda")
        invited = await bot.expect("INVITE")
        assert (invited.source, *invited.params) == ("spark", "spark-bot", "#llama")
        await tags(ori, "#llama", "cuda,more")
        assert [each for each in await bot.sync() if each.verb == "INVITE"] == []


@pytest.mark.requirement("K12")
async def test_an_agent_that_comes_is_called_by_the_channels_there_are(ircd: IRCd) -> None:
    async with registered(ircd.port, "spark-ori") as ori, registered(ircd.port, "spark-bot") as bot:
        await ori.join("#llama")
        await tags(ori, "#llama", "cuda")
        await ori.join("#other")
        await tags(ori, "#other", "docs")
        await agent(bot)
        assert await tags(bot, "*", "cuda") == ["#llama"]


async def test_people_and_members_are_not_called(ircd: IRCd) -> None:
    async with registered(ircd.port, "spark-ori") as ori, registered(ircd.port, "spark-bot") as bot:
        await agent(bot)
        await tags(bot, "*", "cuda")
        await tags(ori, "*", "cuda")
        await bot.join("#llama")
        await tags(bot, "#llama", "cuda")
        assert [each for client in (ori, bot) for each in await client.sync() if each.verb == "INVITE"] == []


@pytest.mark.requirement("K12")
@pytest.mark.parametrize("joins", [True, False])
async def test_an_agent_joins_if_its_configuration_says_so(
    ircd: IRCd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joins: bool
) -> None:
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    home = tmp_path / "home"
    home.mkdir()
    said = {"nick": "spark-claude", "tags": ["cuda"], "join_matching": joins}
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#llama")
        await tags(ori, "#llama", "cuda")
        await ori.join("#nothing")
        async with running(agents_yaml(home, ircd.port, said), "spark-claude") as daemon:
            ori.send("INVITE spark-claude #nothing")
            if joins:
                assert (await ori.expect("JOIN")).params[0] == "#llama"
            await ori.sync()
            assert "#nothing" not in daemon.transport.channels
            assert ("#llama" in daemon.transport.channels) is joins


async def test_a_bot_by_its_own_word_is_not_let_in_where_people_have_accounts(tmp_path: Path) -> None:
    """An invitation opens a closed channel, and anybody can set +B and a tag."""
    store = accounts_of(tmp_path, "ori")
    store.add(new_account("claude", UserClass.AGENT, verifier=verifier()))
    async with (
        serving(tmp_path) as ircd,
        logged_in(ircd.port, "claude") as claude,
        logged_in(ircd.port, "ori") as ori,
        registered(ircd.port, "spark-eve") as eve,
    ):
        await eve.ask("MODE spark-eve +B")
        await ori.join("#vault")
        await tags(ori, "#vault", "cuda")
        assert await tags(eve, "*", "cuda") == [] and await tags(claude, "*", "cuda") == ["#vault"]


async def test_who_has_no_authority_calls_no_agent_to_a_channel(tmp_path: Path) -> None:
    """An agent follows an invitation of its server, which says nothing of whose channel it is."""
    store = accounts_of(tmp_path, "ori")
    for name, kind in (("claude", UserClass.AGENT), ("helper", UserClass.BOT)):
        store.add(new_account(name, kind, verifier=verifier()))
    async with serving(tmp_path) as ircd, logged_in(ircd.port, "claude") as claude:
        await tags(claude, "*", "cuda")
        for come in (registered(ircd.port, "spark-eve"), logged_in(ircd.port, "helper")):
            async with come as stranger:
                await stranger.join("#trap")
                answer = (await stranger.ask("METADATA #trap SET agentirc.dev/tags :cuda"))[-1]
                assert answer.params[:2] == ("METADATA", "KEY_NO_PERMISSION")
                assert await tags(claude, "*", "cuda,more") == await tags(claude, "*", "cuda") == []
