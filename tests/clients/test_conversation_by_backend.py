"""How agents of four makers and people talk, each item with each real program; their model is scripted."""

import asyncio
import json
from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from tests.clients import test_four_makers as makers
from tests.clients.test_four_makers import CLAUDE, CODEX, COPILOT, GENERAL, NICKS, OPEN, START, company, eventually
from tests.support.client import Client, registered
from tests.support.model import Model

home, ircd, model = makers.home, makers.ircd, makers.model

ASKS = {
    CLAUDE: {"permission_mode": "default"},
    CODEX: {"approval_policy": "untrusted"},
    OPEN: {"permissions": "ask"},
    COPILOT: {"permission_mode": "ask"},
}
OLD, NEW = "    return 'hello'", "    return 'good evening'"
PATCH = f"*** Begin Patch\n*** Update File: greet.py\n@@\n def greet():\n-{OLD}\n+{NEW}\n*** End Patch"


def reading(nick: str, file: Path) -> str:
    """The call by which a program reads the file first, where it must."""
    calls = {CLAUDE: ("Read", {"file_path": str(file)}), OPEN: ("read", {"filePath": str(file)})}
    return f"[[call {calls[nick][0]} {json.dumps(calls[nick][1])}]]" if nick in calls else ""


def editing(nick: str, file: Path) -> str:
    """The call by which a program changes the file."""
    name, given = {
        CLAUDE: ("Edit", {"file_path": str(file), "old_string": OLD, "new_string": NEW}),
        CODEX: ("exec_command", {"cmd": f"apply_patch <<'END'\n{PATCH}\nEND\n"}),
        OPEN: ("edit", {"filePath": str(file), "oldString": OLD, "newString": NEW}),
        COPILOT: ("edit", {"path": str(file), "old_str": OLD, "new_str": NEW}),
    }[nick]
    return f"[[call {name} {json.dumps(given)}]]"


async def spoken(client: Client, nick: str) -> str:
    """The next line of an agent in the channel; a program that starts may be silent for long."""
    async with asyncio.timeout(START):
        while True:
            try:
                said = await client.expect("PRIVMSG", GENERAL)
            except TimeoutError:
                continue
            if said.source.startswith(f"{nick}!"):
                return said.params[1]


async def question(client: Client, nick: str) -> list[str]:
    """The lines of the next question that an agent asks to use a tool."""
    lines = [await spoken(client, nick)]
    while not lines[-1].startswith("Waiting for response."):
        lines.append(await spoken(client, nick))
    return lines


@pytest.mark.timeout(120)
@pytest.mark.parametrize("nick", NICKS)
async def test_a_person_sees_the_whole_change_before_saying_yes(
    ircd: IRCd, home: Path, model: Model, nick: str
) -> None:
    """Item A7: the diff of a change, and all lines of a command, in lines that pass for no other question's."""
    async with (
        registered(ircd.port, "spark-ori", "message-tags echo-message") as ori,
        company(ircd, home, model, settings=ASKS, nicks=[nick]) as daemons,
    ):
        await ori.join(GENERAL)
        file = home / "work" / nick / "greet.py"
        file.write_text(f"def greet():\n{OLD}\n")
        ori.send(f"PRIVMSG {GENERAL} :@{nick} change it {reading(nick, file)} {editing(nick, file)} [[say changed]]")
        lines = await question(ori, nick)
        while "Read: " in lines[1]:
            ori.send(f"PRIVMSG {GENERAL} :@{nick} yes")
            lines = await question(ori, nick)
        assert "greet.py [+1 -1, " in lines[1]
        assert f"  -{OLD}" in lines and f"  +{NEW}" in lines
        assert "'hello'" in file.read_text()
        ori.send(f"PRIVMSG {GENERAL} :@{nick} yes")
        assert await spoken(ori, nick) == "changed"
        assert "'good evening'" in file.read_text()
        await eventually(lambda: not daemons[nick].work.busy)
        ori.send(f"PRIVMSG {GENERAL} :@{nick} clean [[bash touch made {'&& true ' * 40}; rm greet.py]] [[say kept]]")
        lines = await question(ori, nick)
        assert lines[-2].endswith("; rm greet.py") and all(each.startswith("  ") for each in lines[2:-1])
        ori.send(f"PRIVMSG {GENERAL} :@{nick} no")
        # OpenCode ends its turn at a no, the others go on.
        await eventually(lambda: not (daemons[nick].questions.open or daemons[nick].work.busy))
        assert file.exists() and not (home / "work" / nick / "made").exists()
