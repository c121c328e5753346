"""Agents of four makers and a person in one channel, each the real program; their model is scripted."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from culture.cli.skills import install
from culture.clients.shared.daemon import AgentDaemon
from culture.server.ircd import IRCd
from tests.clients.claude.conftest import variables as for_claude
from tests.clients.codex.conftest import CONFIG as FOR_CODEX
from tests.clients.codex.conftest import MODEL as CODEX_MODEL
from tests.clients.shared.sandbox.conftest import needs_bwrap
from tests.support.acpprograms import AGENTS, MODEL, OPENCODE, enter
from tests.support.agents import agents_yaml, running
from tests.support.client import Client, registered
from tests.support.model import Model, model_server
from tests.support.servers import serving
from tests.support.waiting import until

GENERAL = "#general"
CLAUDE, CODEX, OPEN, COPILOT = NICKS = [f"spark-{name}" for name in ("claude", "codex", "opencode", "copilot")]
KEY = "SCRIPTED_KEY"
# All four at once, on a machine that may be busy.
START = 60.0


@pytest.fixture
async def model() -> AsyncIterator[Model]:
    async with model_server() as running_model:
        yield running_model


@pytest.fixture
def home(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which all four programs find the scripted model, and a fresh ~/.culture."""
    for package in ("claude_agent_sdk", "openai_codex", "copilot", "acp"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    own = tmp_path / "home"
    enter(OPENCODE, own, model.url, monkeypatch)
    (own / ".codex").mkdir()
    (own / ".codex" / "config.toml").write_text(FOR_CODEX.format(model=CODEX_MODEL, url=model.url))
    (own / ".codex" / "auth.json").write_text('{"OPENAI_API_KEY": "dummy"}')
    folder, runtime = tmp_path / "culture", tmp_path / "run"
    for each in (folder, runtime):
        each.mkdir(mode=0o700)
    culture = {"CULTURE_HOME": str(folder), "XDG_RUNTIME_DIR": str(runtime), KEY: "dummy"}
    # Copilot unpacks 230 MB of itself into every new one.
    culture["XDG_CACHE_HOME"] = str(AGENTS / "cache")
    for name, value in {**for_claude(model.url), **culture}.items():
        monkeypatch.setenv(name, value)
    install("claude", own)
    return folder


@pytest.fixture
async def ircd(tmp_path: Path) -> AsyncIterator[IRCd]:
    async with serving(tmp_path / "server") as running_server:
        yield running_server


def copilot(model: Model) -> dict[str, Any]:
    """What makes Copilot use the scripted model."""
    path = AGENTS / "core" / "node_modules" / ".bin" / "copilot"
    if not path.exists():
        pytest.skip("not installed: copilot (make agents)")
    provider = {"type": "openai", "base_url": f"{model.url}/v1", "api_key_env": KEY}
    return {"provider": provider, "copilot_path": str(path)}


@asynccontextmanager
async def company(
    ircd: IRCd,
    home: Path,
    model: Model,
    judges: dict[str, dict[str, Any]] | None = None,
    rules: dict[str, Any] | None = None,
    settings: dict[str, dict[str, Any]] | None = None,
    nicks: Sequence[str] = NICKS,
) -> AsyncIterator[dict[str, AgentDaemon]]:
    """The agents, in the channel, each with its judge or without any, and with settings of its own."""
    agents: list[dict[str, Any]] = [
        {"nick": CLAUDE, "agent": "claude"},
        {"nick": CODEX, "agent": "codex"},
        {"nick": OPEN, "agent": "acp", "acp_command": OPENCODE.command},
        {"nick": COPILOT, "agent": "copilot", "model": MODEL, **copilot(model)},
    ]
    agents = [agent for agent in agents if agent["nick"] in nicks]
    for agent in agents:
        folder = home / "work" / agent["nick"]
        folder.mkdir(parents=True)
        judge = (judges or {}).get(agent["nick"], {"agent": "none"})
        agent |= {"supervisor": {"eval_interval": 1, **judge}, "directory": str(folder)}
        agent |= (settings or {}).get(agent["nick"], {})
    config = agents_yaml(home, ircd.port, *agents, rules=rules)
    async with AsyncExitStack() as stack:
        coming = [stack.enter_async_context(running(config, nick, START)) for nick in nicks]
        yield dict(zip(nicks, await asyncio.gather(*coming), strict=True))


def spoken(client: Client, nick: str) -> list[str]:
    """What an agent has said in the channel so far."""
    said = (each for each in client.seen if each.verb == "PRIVMSG" and each.source.startswith(f"{nick}!"))
    return [each.params[1] for each in said if each.params[0] == GENERAL]


async def quiet(daemons: dict[str, AgentDaemon], client: Client) -> None:
    """Nobody works, and nobody has anything left to do."""
    await until(
        lambda: not any(each.work.busy or any(each.inbox.counts()) for each in daemons.values()), patience=START
    )
    await client.sync()


async def come(client: Client, *wanted: tuple[str, str], verb: str = "PRIVMSG") -> None:
    """Wait until these have said that, or more, in whatever order; a program that starts may be silent for long."""
    left = list(wanted)
    async with asyncio.timeout(START):
        while left:
            try:
                line = await client.expect(verb, GENERAL)
            except TimeoutError:
                continue
            nick, text = line.source.partition("!")[0], line.params[1]
            left = [each for each in left if not (nick.startswith(each[0]) and each[1] in text)]


@pytest.mark.requirement("G15")
@pytest.mark.timeout(120)
async def test_four_makers_and_a_person_share_a_channel(ircd: IRCd, home: Path, model: Model, tmp_path: Path) -> None:
    async with (
        registered(ircd.port, "spark-ori", "message-tags echo-message") as ori,
        company(ircd, home, model) as daemons,
    ):
        await ori.join(GENERAL)
        expected = dict[str, list[str]]()

        # Each is mentioned, works, and answers once.
        for nick in NICKS:
            ori.send(f"PRIVMSG {GENERAL} :@{nick} [[bash printf $CULTURE_NICK > name]] [[say I am {nick}]]")
            expected[nick] = [f"I am {nick}"]
        await come(ori, *((nick, f"I am {nick}") for nick in NICKS))
        assert [(home / "work" / nick / "name").read_text() for nick in NICKS] == NICKS

        # One asks another, and thanks for the answer.
        question, answer = tmp_path / "question", tmp_path / "answer"
        question.write_text(f"@{COPILOT} how many? [[recite {answer}]]")
        answer.write_text(f"@{CLAUDE} four [[say thanks]]")
        ori.send(f"PRIVMSG {GENERAL} :@{CLAUDE} ask {COPILOT} [[recite {question}]]")
        expected[CLAUDE] += [question.read_text(), "thanks"]
        expected[COPILOT] += [answer.read_text()]
        await come(ori, (CLAUDE, "thanks"))

        # All are woken by one word.
        ori.send(f"PRIVMSG {GENERAL} :@all hands up [[say here]]")
        await come(ori, *((nick, "here") for nick in NICKS))
        await quiet(daemons, ori)
        assert {nick: spoken(ori, nick) for nick in NICKS} == {nick: [*expected[nick], "here"] for nick in NICKS}

        # Nobody loops: a compliment that would go round for ever stops, and waits for a person.
        for nick, other in zip(NICKS, [*NICKS[1:], CLAUDE], strict=True):
            (tmp_path / nick).write_text(f"@{other} well done [[recite {tmp_path / other}]]")
        ori.send(f"PRIVMSG {GENERAL} :@{CLAUDE} praise [[recite {tmp_path / CLAUDE}]]")
        await come(ori, ("spark-", "6 automatic replies in a row"), verb="NOTICE")
        await until(lambda: not any(each.work.busy for each in daemons.values()), patience=START)
        await ori.sync()
        praised = [text for nick in NICKS for text in spoken(ori, nick) if "well done" in text]
        assert len(praised) == 6
        assert sum(each.inbox.held() for each in daemons.values()) == 1


@needs_bwrap
@pytest.mark.requirement("I18")
@pytest.mark.timeout(120)
async def test_each_is_watched_by_an_agent_of_another_maker_all_of_them_in_sandboxes(
    ircd: IRCd, home: Path, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every backend judges once and is judged once; what is whispered is in the next prompt at the latest.

    Nothing of the owner's home is there but what each program needs; each speaks through its daemon.
    """
    monkeypatch.delenv("IS_SANDBOX", raising=False)
    (tmp_path / "home" / ".ssh").mkdir()
    (tmp_path / "home" / ".ssh" / "id").write_text("the owner's key")
    judges = {
        CLAUDE: {"agent": "codex"},
        CODEX: {"agent": "acp", "options": {"acp_command": OPENCODE.command}},
        OPEN: {"agent": "copilot", "model": MODEL, "options": copilot(model)},
        COPILOT: {"agent": "claude"},
    }
    rules = {"sandbox": {"kind": "bwrap", "hosts": [urlsplit(model.url).netloc]}}
    async with (
        registered(ircd.port, "spark-ori", "message-tags echo-message") as ori,
        company(ircd, home, model, judges, rules) as daemons,
    ):
        await ori.join(GENERAL)
        model.journal.verdicts = ["[[say CORRECTION Mind the marmot.]]"] * len(NICKS)
        for nick in NICKS:
            ori.send(f"PRIVMSG {GENERAL} :@{nick} first [[say one]]")
        await come(ori, *((nick, "one") for nick in NICKS))
        await until(lambda: not model.journal.verdicts, patience=START)
        await quiet(daemons, ori)
        for daemon in daemons.values():
            await daemon.supervision._supervisor.rest()  # type: ignore[union-attr]
        looking = "(cat ~/.ssh/id; grep -c . /proc/net/dev; printf $CULTURE_NICK) > seen 2>&1"
        sending = f'python3 -m culture.clients.shared.skill.irc_client send "{GENERAL}" "from inside"'
        for nick in NICKS:
            ori.send(f"PRIVMSG {GENERAL} :@{nick} second [[bash {looking}; {sending}]] [[say two]]")
        await come(ori, *((nick, "from inside") for nick in NICKS))
        await quiet(daemons, ori)
    for nick in NICKS:
        key, interfaces, name = (home / "work" / nick / "seen").read_text().splitlines()
        assert "No such file" in key, nick
        # Two lines of a head, and one for loopback.
        assert (interfaces, name) == ("3", nick)
        asked = model.journal.asked(f"@{nick} second")
        assert asked and "Mind the marmot." in asked[0].everything, nick
