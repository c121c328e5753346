"""The IRC tools as they are installed, as a process of their own, with the live daemon of an agent on a real server."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from culture.cli.skills import install
from culture.protocol.vocabulary import Exit
from culture.server.ircd import IRCd
from tests.clients.shared.test_daemon import NICK
from tests.support.agents import agents_yaml, playbook, running
from tests.support.client import Client, registered
from tests.support.waiting import PATIENCE


class Tools:
    """The installed client, run as an agent's program runs it."""

    def __init__(self, home: Path) -> None:
        install("claude", home)
        self._client = home / ".claude" / "skills" / "irc" / "irc_client.py"

    async def __call__(self, *words: str, code: Exit = Exit.DONE) -> str:
        """Run a command, which ends with this exit code; return what it prints."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(self._client),
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "CULTURE_NICK": NICK},
        )
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate()
        assert process.returncode == code, (out, err)
        return out.decode()


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    return Tools(tmp_path / "agent")


async def question(ori: Client) -> str:
    """The text of the next question in #general."""
    line = await ori.expect("PRIVMSG", "#general", where=lambda message: message.source.startswith(f"{NICK}!"))
    return line.params[1]


@pytest.mark.requirement("H06", "H07", "H09", "H10", "H11", "H20", "L07")
async def test_channel_tools_with_a_live_daemon(ircd: IRCd, home: Path, tools: Tools) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK):
        await ori.join("#other")
        await ori.join("#general")
        ori.send("PRIVMSG #other :before it came")
        await ori.sync()
        assert await tools("join", "#other") == "In #other.\n"
        ori.send("PRIVMSG #other :while it is there")
        await ori.sync()
        rows = dict(line.split(maxsplit=1) for line in (await tools("channels")).splitlines())
        assert (rows["#other"], rows["#general"]) == ("2 members", "2 members")
        people = [line.split() for line in (await tools("who", "#other")).splitlines()]
        assert {row[0]: "operator" in row for row in people} == {"spark-ori": True, NICK: False}
        heard = await tools("read", "#other")
        assert "<spark-ori> while it is there" in heard and "before it came" not in heard
        assert await tools("send", "#other", "hello", "from", "a", "shell") == "Sent to #other.\n"
        await ori.expect("PRIVMSG", "#other", "hello from a shell")
        assert await tools("part", "#other") == "Left #other.\n"
        await ori.expect("PART", "#other")
        ori.send("PRIVMSG #other :after it left")
        await ori.sync()
        assert "after it left" not in await tools("read", "#other", code=Exit.FAILED)
        assert "#other" not in await tools("channels")


@pytest.mark.requirement("H08", "L07")
@pytest.mark.parametrize("where", ["#general", NICK])
async def test_question_is_answered_by_a_mention_or_in_private(
    ircd: IRCd, home: Path, tools: Tools, where: str
) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK):
        await ori.join("#general")
        asking = asyncio.create_task(tools("ask", "#general", "shall I?"))
        assert "shall I?" in await question(ori)
        ori.send(f"PRIVMSG {where} :" + ("yes q1" if where == NICK else f"@{NICK} yes"))
        assert (await asking).startswith("yes")


@pytest.mark.requirement("H08", "L07")
async def test_question_that_nobody_answers_ends_with_nothing(ircd: IRCd, home: Path, tools: Tools) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK):
        await ori.join("#general")
        asking = asyncio.create_task(tools("ask", "#general", "--timeout", "1", "shall I?", code=Exit.TIMED_OUT))
        assert "shall I?" in await question(ori)
        assert await asking == ""
