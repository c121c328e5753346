"""The real Claude Code in a real daemon, among people."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared.daemon import AgentDaemon
from culture.config.agents import AgentsConfig
from culture.lib.process.orphans import carrying
from culture.server.ircd import IRCd
from tests.realclients.weechat import Weechat, weechat
from tests.support.agents import agents_yaml, running
from tests.support.client import Client, registered

NICK = "spark-claude"
GENERAL = "#general"
SKILL = "python3 -m culture.clients.shared.skill.irc_client"
"""As SKILL.md teaches it."""


def configured(
    ircd: IRCd, home: Path, *others: dict[str, Any], rules: dict[str, Any] | None = None, **settings: Any
) -> AgentsConfig:
    """agents.yaml with the agent and these settings for it, and with others that are not run."""
    agent = {"nick": NICK, "agent": "claude", "supervisor": {"agent": "none"}, **settings}
    return agents_yaml(home, ircd.port, agent, *others, rules=rules)


@asynccontextmanager
async def working(
    ircd: IRCd, home: Path, *others: dict[str, Any], **settings: Any
) -> AsyncIterator[tuple[AgentDaemon, Client]]:
    """The agent, and a person in ``#general`` and ``#alerts`` with it."""
    async with registered(ircd.port, "spark-ori", "message-tags echo-message") as ori:
        for channel in (GENERAL, "#alerts"):
            await ori.join(channel)
        async with running(configured(ircd, home, *others, **settings), NICK) as daemon:
            yield daemon, ori


def spoken(client: Client, where: str = GENERAL) -> list[str]:
    """What the agent has said there so far, as itself."""
    said = (each for each in client.seen if each.verb == "PRIVMSG" and each.source.startswith(f"{NICK}!"))
    return [each.params[1] for each in said if each.params[0] == where]


def program(token: str | None) -> int:
    """The process of Claude Code itself, among the agent's."""
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in carrying(token or "")}
    (pid,) = (pid for pid, command in commands.items() if b"claude_agent_sdk" in command)
    return pid


@asynccontextmanager
async def wendy_at_weechat(ircd: IRCd, folder: Path) -> AsyncIterator[Weechat]:
    """spark-wendy, who sits at weechat in ``#general``."""
    if shutil.which("weechat-headless") is None:
        pytest.skip("not installed: weechat-headless")
    async with weechat(folder / "weechat", f"irc://spark-wendy@127.0.0.1:{ircd.port}/{GENERAL}") as wendy:
        await wendy.shows("Channel #general: ", GENERAL)
        yield wendy
