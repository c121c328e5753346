"""An agent looks up what was said, as its server's history has it."""

from pathlib import Path

import pytest

from culture.config import paths
from culture.server.ircd import IRCd
from tests.clients.ipc import Wire
from tests.clients.shared.test_daemon import NICK
from tests.support.agents import agents_yaml, playbook, running
from tests.support.client import registered


@pytest.mark.requirement("A27")
async def test_an_agent_finds_what_was_said_before_it_came(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with registered(ircd.port, "spark-ori", "draft/multiline batch message-tags") as ori:
        await ori.join("#general")
        await ori.ask("PRIVMSG #general :the cmake flags for Thor are -DGGML_CUDA=ON")
        await ori.ask("PRIVMSG #general :lunch?")
        await ori.join("#llama")
        for line in (
            "BATCH +1 draft/multiline #llama",
            "@batch=1 PRIVMSG #llama :flags:",
            "@batch=1 PRIVMSG #llama :-O3",
        ):
            ori.send(line)
        await ori.ask("BATCH -1")
        await ori.join("#secret")
        await ori.ask("MODE #secret +i")
        async with running(config, NICK), Wire(paths.agent_socket(NICK)) as agent:
            found = (await agent.call("irc_search", channel="#general", text="Thor flags"))["data"]
            assert [(each["nick"], each["text"]) for each in found] == [
                ("spark-ori", "the cmake flags for Thor are -DGGML_CUDA=ON")
            ]
            assert found[0]["msgid"] and found[0]["channel"] == "#general"
            elsewhere = (await agent.call("irc_search", channel="#llama", text="flags"))["data"]
            assert [each["text"] for each in elsewhere] == ["flags:\n-O3"]
            assert (await agent.call("irc_search", channel="#general", text="dinner"))["data"] == []
            refused = await agent.call("irc_search", channel="#secret", text="flags")
            assert "not on that channel" in refused["error"]
            without_model = await agent.call("irc_search", channel="#general", text="flags", meaning=True)
            assert "switched off" in without_model["error"]
