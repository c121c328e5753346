"""Agents with a daemon use their skill, programs without one the bridge, and both meet on IRC."""

import asyncio
from pathlib import Path

import pytest

from culture.clients.shared.skill import irc
from culture.server.ircd import IRCd
from tests.bridge.conftest import Bridge
from tests.bridge.program import Refused, over_http
from tests.support.agents import agents_yaml, running
from tests.support.client import registered


@pytest.mark.requirement("H26")
async def test_an_agent_by_its_skill_and_a_program_by_the_bridge_talk(
    ircd: IRCd, bridge: Bridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, runtime = tmp_path / "home", tmp_path / "run"
    for folder in (home, runtime):
        folder.mkdir(mode=0o700)
    monkeypatch.setenv("CULTURE_HOME", str(home))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("CULTURE_NICK", "spark-build")
    config = agents_yaml(home, ircd.port, {"nick": "spark-build"}, rules={"wake": "anybody"})
    async with (
        registered(ircd.port, "spark-ori") as ori,
        running(config, "spark-build"),
        bridge(ircd.port) as port,
        over_http(port) as program,
    ):
        await ori.join("#general")
        await asyncio.to_thread(irc.irc_send, "#general", "by the skill")
        await program.call("send_message", channel="#general", text="by the bridge", sender="jules")
        found = (await program.call("read_messages", channel="#general"))["messages"]
        assert [(each["sender"], each["text"]) for each in found] == [
            ("spark-jules", "by the bridge"),
            ("spark-build", "by the skill"),
        ]
        assert "by the bridge" in await asyncio.to_thread(irc.irc_read, "#general")
        with pytest.raises(Refused, match="somebody else, who is on line"):
            await program.call("send_message", channel="#general", text="x", sender="build")
