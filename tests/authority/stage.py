"""The stage of the table of security.md: servers, agents, a team's room, a page, a bridge, and every sender."""

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NoReturn

import pytest

from culture.bridge.access import BridgeAccess
from culture.bridge.server import serving as bridging
from culture.bridge.settings import from_environment
from culture.cli.agents import agent_login
from culture.cli.team.factory import assemble
from culture.clients.shared.daemon import AgentDaemon
from culture.config import listen_policy
from culture.config.links import LinkConfig
from culture.config.model import Listen
from culture.orchestrator.errors import MemberNotStarted
from culture.orchestrator.team import Team
from culture.protocol.message import Message
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.ircd import IRCd
from tests.authority.senders import (
    GENERAL,
    NOBODY,
    ROOMS,
    Accounts,
    OnBridge,
    OnIRC,
    OnPage,
    Sender,
    come_in,
    in_process,
    is_let_in,
    over_websocket,
)
from tests.bridge.program import Refused, over_http
from tests.orchestrator.conftest import git_in
from tests.orchestrator.crew import team_yaml
from tests.support.agents import agents_yaml, playbook, running
from tests.support.client import connected
from tests.support.people import PASSWORD
from tests.support.servers import serving
from tests.support.web import settings_for, site_for
from tests.support.websocket import ORIGIN

STRICT, VOTING = "spark-iris", "spark-vera"
"""The agents: one takes the answers of people alone, the other those of logged-in people and of agents."""
IS_ROOT = os.getuid() == 0
_SECRET = "a-secret-of-both-sides"


class Stage:
    """Servers, agents, a team's room, a page and a bridge, and all senders."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._accounts = {name: Accounts(folder / name, name) for name in ("spark", "thor", "odin", "loki")}
        self.daemons: dict[str, AgentDaemon] = {}
        self.senders: dict[str, Sender | None] = {}
        """By their names in the table; None for who is not let in."""

    async def set_up(self) -> None:
        """Start everything, and let the senders in."""
        tokens = self._make_accounts()
        spark, others = await self._servers()
        self._spark = spark
        self.ada = (await self._client(spark.port, "spark-ada", PASSWORD)).client
        self.agent = await self._client(spark.port, "spark-claude", tokens["spark-claude"])
        await self._agents(spark.port)
        await self._team(spark.port)
        await self._local_senders(spark, tokens)
        await self._page_and_bridge(spark, tokens)
        await self._linked_senders(others, tokens)
        await self._everybody_is_here()

    # Who and what there is

    def _make_accounts(self) -> dict[str, str]:
        """Make the accounts; the tokens of agents and bots by nick."""
        tokens = {}
        for name in ("ada", "ori", "pia", "wim", "zoe"):
            self._accounts["spark"].person(name)
        self._accounts["spark"].person("mia", str(os.getuid()))
        tokens["spark-ori"] = self._accounts["spark"].token("ori")
        for name in ("rover", "jules", "claude", "sam"):
            tokens[f"spark-{name}"] = self._accounts["spark"].program(name, UserClass.AGENT)
        for name in ("helper", "relay"):
            tokens[f"spark-{name}"] = self._accounts["spark"].program(name, UserClass.BOT)
        for name in ("thor", "odin", "loki"):
            self._accounts[name].person("tom")
            self._accounts[name].person("uma", str(os.getuid()))
            tokens[f"{name}-ann"] = self._accounts[name].program("ann", UserClass.AGENT)
            tokens[f"{name}-robot"] = self._accounts[name].program("robot", UserClass.BOT)
        store = AccountStore(self._folder / "spark" / "accounts.json", "spark")
        for nick in (STRICT, VOTING, "spark-team-demo", "spark-Harper"):
            agent_login.ensure_account(nick, store, always_on=False)
        return tokens

    async def _servers(self) -> tuple[IRCd, dict[str, IRCd]]:
        waits, others = LinkConfig(name="spark", secret=_SECRET), {}
        links = []
        for name, trust in (("thor", "full"), ("odin", "no_authority"), ("loki", "restricted")):
            crosses: dict[str, Any] = {"channels": ROOMS} if trust == "restricted" else {}
            theirs = waits.model_copy(update={"trust": trust, **crosses}) if crosses else waits
            others[name] = await self._serving(name, links=(theirs,), self_registration="anybody")
            address = f"127.0.0.1:{others[name].port}"
            links.append(LinkConfig(name=name, secret=_SECRET, address=address, trust=trust, **crosses))  # type: ignore[arg-type]
        page = listen_policy.WebSocket(origins=(ORIGIN,))
        spark = await self._serving(
            "spark",
            listen=(Listen(port=0), Listen(port=0, websocket=page)),
            links=tuple(links),
            self_registration="anybody",
            local_users=(str(NOBODY),),
        )
        return spark, others

    async def _serving(self, name: str, **settings: Any) -> IRCd:
        return await self._stack.enter_async_context(serving(self._folder / name, name=name, **settings))

    async def _agents(self, port: int) -> None:
        home, book = self._folder / "home", playbook(self._folder / "books", [])
        trusts = {STRICT: {"humans": "always", "agents": "never"}}
        trusts[VOTING] = {"humans": "confirmed", "agents": "vote", "quorum": 1}  # type: ignore[dict-item]
        config = agents_yaml(
            home, port, *({"nick": nick, "playbook": book, "trust": trust} for nick, trust in trusts.items())
        )
        for nick in trusts:
            self.daemons[nick] = await self._stack.enter_async_context(running(config, nick))

    async def _team(self, port: int) -> None:
        """The ears of a team, and nobody whom it could hire."""
        project = self._folder / "project"
        project.mkdir()
        git_in(project, "init", "--quiet")
        git_in(project, "commit", "--quiet", "--allow-empty", "-m", "the beginning")
        config = team_yaml(self._folder / "home", project, port, limits={"tasks": 50})
        self.team = Team(await assemble(config, _nobody))
        hears = asyncio.create_task(self.team._read_messages())
        await self.team.context.rooms.start()

        async def end() -> None:
            hears.cancel()
            await asyncio.gather(hears, return_exceptions=True)
            await self.team.context.jobs.stop()
            await self.team.context.rooms.stop("over")
            self.team.context.store.close()

        self._stack.push_async_callback(end)

    async def _client(self, port: int, nick: str, secret: str = "") -> OnIRC:
        return await come_in(await self._stack.enter_async_context(connected(port)), nick, secret)

    async def _registered(self, port: int, nick: str) -> OnIRC:
        """Somebody who has made the account of this nick."""
        client = await self._client(port, nick)
        assert "SUCCESS" in str(await client.ask("REGISTER * * correct-horse"))
        return client

    async def _local_senders(self, spark: IRCd, tokens: dict[str, str]) -> None:
        port = spark.port
        come = self.senders
        come["a person, logged in"] = await self._client(port, "spark-ori", PASSWORD)
        come["a person, by local user id"] = await self._client(port, "spark-mia")
        come["an agent"] = await self._client(port, "spark-rover", tokens["spark-rover"])
        em = self.team.context.em
        come["the EM of the team, an agent"] = await self._client(port, em, agent_login.read_token(em) or "")
        come["a bot"] = await self._client(port, "spark-helper", tokens["spark-helper"])
        come["who registered an account"] = await self._registered(port, "spark-selfie")
        come["who has no account"] = await self._client(port, "spark-eve")
        come["who has no account and says `+B`"] = wally = await self._client(port, "spark-wally")
        await wally.ask("MODE spark-wally +B")
        shell = await self._stack.enter_async_context(in_process(port, agent=STRICT))
        assert not await is_let_in(shell, "spark-mia"), "the nick of its owner"
        come["a process of an agent"] = await come_in(shell, "spark-shell")
        if IS_ROOT:
            await self._other_users(port)
        websocket = spark.ports[1]
        for kind, nick, secret in (
            ("a person, logged in", "spark-pia", PASSWORD),
            ("an agent", "spark-sam", tokens["spark-sam"]),
            ("a bot", "spark-relay", tokens["spark-relay"]),
        ):
            page = await self._stack.enter_async_context(over_websocket(websocket))
            come[f"WebSocket: {kind}"] = await come_in(page, nick, secret)
        stranger = await self._stack.enter_async_context(over_websocket(websocket))
        assert not await is_let_in(stranger, "spark-page")
        come["WebSocket: without a login"] = None

    async def _other_users(self, port: int) -> None:
        come, enter = self.senders, self._stack.enter_async_context
        come["another user, in `local_users`"] = await come_in(await enter(in_process(port, NOBODY)), "spark-nobody")
        assert not await is_let_in(await enter(in_process(port, NOBODY - 1)), "spark-other")
        come["another user"] = None
        come["another user, logged in"] = await come_in(
            await enter(in_process(port, NOBODY - 1)), "spark-zoe", PASSWORD
        )

    async def _page_and_bridge(self, spark: IRCd, tokens: dict[str, str]) -> None:
        site = await self._stack.enter_async_context(site_for(settings_for(self._folder / "spark", spark.port)))
        browser = await site.browser().come_in("wim")
        for room in ROOMS:
            await browser.post("/say", {"HX-Request": "true"}, room=GENERAL, text=f"/join {room}")
        self.senders["the web page: a person"] = OnPage(browser, "spark-wim")
        access = BridgeAccess(self._folder / "bridge" / "access.json")
        nicks = {
            "token for an agent": "spark-jules",
            "token for a nick without an account": "spark-nell",
            "token for a person": "spark-ori",
        }
        secrets = {name: access.issue((nick,), ROOMS)[1] for name, nick in nicks.items()}
        said = {"IRC_SERVER": "127.0.0.1", "IRC_PORT": str(spark.port), "MCP_PORT": "0"}
        bridge = await self._stack.enter_async_context(bridging(from_environment(said), access, tokens.get))
        for name, nick in nicks.items():
            program = await self._stack.enter_async_context(over_http(bridge, secrets[name]))
            self.senders[f"the bridge: {name}"] = OnBridge(program, nick)
        with pytest.raises(Refused, match="not of class agent"):
            await program.call("send_message", channel=GENERAL, text="I am ori")
        self.senders["the bridge: token for a person"] = None

    async def _linked_senders(self, others: dict[str, IRCd], tokens: dict[str, str]) -> None:
        for name, trust in (("thor", "full"), ("odin", "no_authority"), ("loki", "restricted")):
            port, link = others[name].port, f"link `{trust}`"
            self.senders[f"{link}: a person"] = await self._client(port, f"{name}-tom", PASSWORD)
            self.senders[f"{link}: an agent"] = await self._client(port, f"{name}-ann", tokens[f"{name}-ann"])
            self.senders[f"{link}: a bot"] = await self._client(port, f"{name}-robot", tokens[f"{name}-robot"])
            self.senders[f"{link}: who registered an account"] = await self._registered(port, f"{name}-selfie")
            self.senders[f"{link}: who has no account"] = await self._client(port, f"{name}-eve")
            self.senders[f"{link}: a person, by local user id"] = await self._client(port, f"{name}-uma")

    async def _everybody_is_here(self) -> None:
        for name, sender in self.senders.items():
            if sender is not None:
                await self.said(sender, GENERAL, f"hello from {name}")

    async def said(self, sender: Sender, channel: str, text: str) -> Message:
        """Let a sender say something; the message as a person of our server sees it."""
        await sender.say(channel, text)
        return await self.ada.expect(
            "PRIVMSG", channel, text, where=lambda line: line.source.startswith(f"{sender.nick}!")
        )


def _is_from(nick: str, line: Message) -> bool:
    return line.source.startswith(f"{nick}!")


def _nobody(nick: str) -> NoReturn:
    raise MemberNotStarted(f"{nick} is not hired here")
