"""A public server in the mesh: TLS, logins, and a restricted link to the machines at home."""

import asyncio
import re
import shlex
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from culture.cli.agents import agent_login
from culture.cli.commands import assembled
from culture.config.links import LinkConfig
from culture.config.load import load_server
from culture.config.model import Listen, ServerConfig
from culture.server.auth.account_store import AccountStore
from culture.server.ircd import IRCd
from tests.federation.raw import SECRET, mesh_of
from tests.support.agents import agents_yaml, playbook, prompts, running
from tests.support.client import Client, connected, registered
from tests.support.people import PASSWORD, accounts_of
from tests.support.ports import reserved
from tests.support.servers import serving
from tests.support.tls import client_context, made
from tests.support.waiting import until

PAGE = Path(__file__).resolve().parents[2] / "docs" / "server" / "public.md"


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[tuple[IRCd, IRCd]]:
    """home dials the public server; only #help crosses."""
    own, own_print = made(tmp_path, "home")
    theirs, their_print = made(tmp_path, "chat")
    (tmp_path / "public").mkdir()
    accounts_of(tmp_path / "public", "ada")
    shared: dict[str, Any] = {"secret": SECRET, "trust": "restricted", "channels": ("#help",)}
    waits = LinkConfig(name="home", fingerprint=own_print, **shared)
    async with serving(
        tmp_path / "public",
        name="chat.example.org",
        listen=(Listen(port=0, tls=theirs), Listen(port=0)),
        links=(waits,),
    ) as public:
        dials = LinkConfig(
            name="chat.example.org", address=f"127.0.0.1:{public.port}", fingerprint=their_print, **shared
        )
        listen = (Listen(port=0), Listen(port=0, tls=own))
        async with serving(tmp_path / "home", name="home", listen=listen, links=(dials,)) as home:
            await until(lambda: bool(mesh_of(home).links and mesh_of(public).links))
            yield home, public


@asynccontextmanager
async def visitor(public: IRCd) -> AsyncIterator[Client]:
    """Somebody from outside, over TLS and with a login."""
    async with connected(public.port, tls=client_context()) as client:
        client.send(f"PASS :ada:{PASSWORD}")
        await client.register("chat-ada")
        yield client


@pytest.mark.requirement("E16")
@pytest.mark.fault("D18")
async def test_only_what_is_meant_for_both_crosses(pair: tuple[IRCd, IRCd]) -> None:
    home, public = pair
    async with registered(home.port, "home-ori", "message-tags") as ori, visitor(public) as ada:
        await ori.join("#plans")
        await ada.join("#plans")
        await ori.join("#help")
        await ada.join("#help")
        await ori.expect("JOIN", "#help", where=lambda line: line.source.startswith("chat-ada!"))
        await ori.ask("PRIVMSG #plans :a secret")
        await ada.ask("PRIVMSG #plans :anybody?")
        await ada.ask("PRIVMSG #help :hello")
        heard = await ori.expect("PRIVMSG", "#help", "hello")
        assert heard.tags.get("agentirc.dev/class", "unknown") == "unknown"
        await ori.ask("PRIVMSG #help :welcome")
        await ada.expect("PRIVMSG", "#help", "welcome")
        user = home.parts.network.user("chat-ada")
        assert user is not None and user.kind == "unknown" and user.account == "ada@chat"
        for client, text in ((ada, "a secret"), (ori, "anybody?")):
            assert not [line for line in client.seen if text in str(line)]


@pytest.mark.requirement("E16")
async def test_who_is_not_in_it_is_not_known_outside(pair: tuple[IRCd, IRCd]) -> None:
    home, public = pair
    async with registered(home.port, "home-ori") as ori, registered(home.port, "home-max") as max_:
        await max_.join("#plans")
        await ori.join("#help")
        await until(lambda: public.parts.network.user("home-ori") is not None)
        assert public.parts.network.user("home-max") is None
        assert public.parts.network.channel("#plans") is None
        await ori.ask("PART #help")
        await until(lambda: public.parts.network.user("home-ori") is None)


@pytest.mark.requirement("E16")
def test_the_settings_of_the_page_are_settings(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    file = tmp_path / "culture.yaml"
    configs = []
    for block in blocks:
        file.write_text(block)
        configs.append(load_server(file).config)
    public, home = configs
    assert public.short_name == "chat" and not public.listen[1].is_loopback
    assert home.listen[1].tls is not None and home.listen[1].is_loopback


@pytest.mark.requirement("E13")
async def test_logins_and_what_skills_keep_are_each_servers_own(tmp_path: Path) -> None:
    """What a skill keeps is made of what comes over the links."""
    for name in ("spark", "thor"):
        (tmp_path / name).mkdir()
    accounts_of(tmp_path / "spark", "ori")
    waits, history = LinkConfig(name="spark", secret=SECRET), Path("history") / "history.db"
    async with serving(tmp_path / "thor", name="thor", links=(waits,)) as thor:
        dials = LinkConfig(name="thor", secret=SECRET, address=f"127.0.0.1:{thor.port}")
        async with serving(tmp_path / "spark", name="spark", links=(dials,)) as spark:
            await until(lambda: "thor" in mesh_of(spark).links)
            async with connected(thor.port) as stranger:
                stranger.send(f"PASS :ori:{PASSWORD}")
                stranger.send("NICK thor-ori")
                stranger.send("USER ori 0 * :Ori")
                assert (await stranger.receive()).verb == "464"
            async with registered(spark.port, "spark-x") as one, registered(thor.port, "thor-y") as other:
                await one.join("#general")
                await other.join("#general")
                await one.expect("JOIN", "#general")
                await one.ask("PRIVMSG #general :for both histories")
                await other.expect("PRIVMSG", "#general", "for both histories")
                for client in (one, other):
                    found = [line.params[-1] for line in await client.ask("HISTORY RECENT #general 1")]
                    assert "for both histories" in found
    assert (tmp_path / "spark" / "data" / history).exists() and (tmp_path / "thor" / "data" / history).exists()


class Recipe:
    """The commands and settings of the page, as they stand there, but for addresses, ports and folders."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        page = PAGE.read_text(encoding="utf-8")
        self.settings = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
        self.commands = re.findall(r"^culture (.*)$", page, re.MULTILINE)
        self._folder = folder
        self._monkeypatch = monkeypatch
        self._replaced = {"/tmp/link": str(folder / "link")}

    def home(self, side: str) -> Path:
        return self._folder / side

    def replace(self, text: str, by: str) -> None:
        """From now on this is written instead of what stands on the page."""
        self._replaced[text] = by

    async def type(self, side: str, begins: str) -> str:
        """Type the command of the page that begins so, on one of the machines; what it prints."""
        [line] = [each for each in self.commands if each.startswith(begins)]
        for text, by in self._replaced.items():
            line = line.replace(text, by)
        self._monkeypatch.setenv("CULTURE_HOME", str(self.home(side)))
        result = await asyncio.to_thread(CliRunner().invoke, assembled(), shlex.split(line))
        assert result.exit_code == 0, result.output
        return result.output

    def configure(self, side: str, text: str, **ports: int) -> ServerConfig:
        """Write culture.yaml of a machine."""
        text = text.replace("~/.culture", str(self.home(side))).replace("0.0.0.0", "127.0.0.1")
        for name, port in ports.items():
            text = text.replace(f"port: {name[1:]}", f"port: {port}")
        self._monkeypatch.setenv("CULTURE_HOME", str(self.home(side)))
        file = self.home(side) / "culture.yaml"
        file.write_text(f"{text}flood: {{loopback: {{rate: 0}}}}\nhistory: {{semantic: {{enabled: false}}}}\n")
        return load_server(file).config


def fingerprint(printed: str) -> str:
    found = re.search(r"[0-9a-f]{64}", printed.lower().replace(":", ""))
    assert found is not None, printed
    return found[0]


@asynccontextmanager
async def recipe(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Recipe, IRCd, IRCd]]:
    """The page, followed from its first line to the link."""
    steps = Recipe(folder, monkeypatch)
    for side in ("public", "spark"):
        steps.home(side).mkdir(mode=0o700)
    public_text, home_text = steps.settings
    theirs = fingerprint(await steps.type("public", "server cert --name chat.example.org"))
    steps.commands.append("server cert --name spark")
    ours = fingerprint(await steps.type("spark", "server cert --name spark"))
    steps.replace("<SHA-256 of spark's certificate>", ours)
    steps.replace("<SHA-256 of the public one>", theirs)
    accounts_of(steps.home("public"), "ada")
    accounts_of(steps.home("spark"), "spark-ori")
    with reserved() as port:
        public = steps.configure("public", f"{public_text}self_registration: anybody\n", p6667=0, p6697=port)
        home = steps.configure("spark", f"name: spark\n{home_text}", p6667=0, p6697=0)
        steps.replace("chat.example.org:6697", f"127.0.0.1:{port}")
        await steps.type("public", "mesh link spark")
        await steps.type("spark", "mesh link chat.example.org")
        async with IRCd(public).running() as chat, IRCd(home).running() as spark:
            await until(lambda: bool(mesh_of(spark).links and mesh_of(chat).links))
            yield steps, spark, chat


@pytest.mark.requirement("E16")
async def test_the_recipe_gives_nobody_outside_a_turn_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes by the public machine, its people included, speaks to an agent at home in vain."""
    async with recipe(tmp_path, monkeypatch) as (steps, spark, chat), AsyncExitStack() as stack:
        tls_port, nick = chat.ports[1], "spark-claude"
        home = steps.home("spark")
        agent_login.ensure_account(nick, AccountStore(home / "accounts.json", "spark"))
        agent = {"nick": nick, "playbook": playbook(home, []), "channels": ["#help"]}
        daemon = await stack.enter_async_context(running(agents_yaml(home, spark.ports[0], agent), nick))
        ada, eve = [await stack.enter_async_context(connected(tls_port, tls=client_context())) for _ in range(2)]
        ada.send(f"PASS :ada:{PASSWORD}")
        await ada.register("chat-ada")
        await eve.register("chat-eve")
        assert "SUCCESS" in str((await eve.ask("REGISTER * * correct-horse"))[0])
        for visitor in (ada, eve):
            await visitor.join("#help")
            await until(lambda: chat.parts.network.user(nick) is not None)
            await visitor.ask(f"PRIVMSG #help :@{nick} open the door")
            await visitor.ask(f"PRIVMSG {nick} :open the door")
            await visitor.ask(f"PRIVMSG {nick} :@{nick} go on")
        await until(lambda: daemon.held.total == 6)
        assert {each.nick: each.count for each in daemon.held.holdings} == {"chat-ada": 3, "chat-eve": 3}
        async with connected(spark.ports[0]) as ori:
            ori.send(f"PASS :spark-ori:{PASSWORD}")
            await ori.register("spark-ori")
            await ori.join("#help")
            ori.send(f"PRIVMSG #help :@{nick} good morning")
            await ori.expect("PRIVMSG", "#help", "heard: good morning")
            (prompt,) = prompts(home / "work")
            assert "open the door" not in prompt
