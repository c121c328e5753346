"""How agents of four makers and people talk, each item with each real program; their model is scripted."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from tests.clients import test_four_makers as makers
from tests.clients.test_four_makers import CLAUDE, CODEX, COPILOT, GENERAL, NICKS, OPEN, START, company, eventually
from tests.support import formserver
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


CACHE = "Which cache shall I use?"
CHOICES = [{"label": "Redis", "description": "a server"}, {"label": "In memory", "description": "nothing to run"}]
ASKING_USER = {
    CLAUDE: ("AskUserQuestion", {"questions": [{"question": CACHE, "header": "Cache", "options": CHOICES}]}),
    CODEX: (
        "request_user_input",
        {"questions": [{"id": "cache", "question": CACHE, "header": "Cache", "options": CHOICES}]},
    ),
    COPILOT: ("ask_user", {"question": CACHE, "choices": [each["label"] for each in CHOICES]}),
}
"""By which a program asks its user. OpenCode 1.18 offers no such tool to clients of ACP."""
FORM_TOOLS = {CLAUDE: "mcp__lunch__order", COPILOT: "lunch-order"}
"""The name of the tool that asks by a form. OpenCode answers such a server that it knows no elicitation."""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("nick", ASKING_USER)
async def test_what_a_program_asks_its_user_is_answered_in_the_room(
    ircd: IRCd, home: Path, model: Model, nick: str
) -> None:
    """Item A7: AskUserQuestion, request_user_input and ask_user, and a form of an MCP server, are questions."""
    settings = {nick: {**ASKS[nick], **with_form_server(nick)}}
    async with (
        registered(ircd.port, "spark-ori", "message-tags echo-message") as ori,
        company(ircd, home, model, settings=settings, nicks=[nick]) as daemons,
    ):
        await ori.join(GENERAL)
        name, given = ASKING_USER[nick]
        ori.send(f"PRIVMSG {GENERAL} :@{nick} cache it [[call {name} {json.dumps(given)}]] [[say chosen]]")
        first, *options, last = await question(ori, nick)
        assert first == f"[QUESTION] {CACHE}"
        assert [each.startswith(f"  {number}: ") for number, each in enumerate(options, 1)] == [True, True]
        assert last == f"Waiting for response. Reply with: @{nick} 1/2"
        ori.send(f"PRIVMSG {GENERAL} :@{nick} 2 looks good")
        assert await spoken(ori, nick) == "chosen"
        assert "In memory" in model.journal.asked("cache it")[-1].results[-1]
        await eventually(lambda: not daemons[nick].work.busy)
        if nick not in FORM_TOOLS:
            return
        ori.send(f"PRIVMSG {GENERAL} :@{nick} have lunch [[call {FORM_TOOLS[nick]} {{}}]] [[say eaten]]")
        for answer in ("yes", "rice", "no"):  # the tool, the dish, whether it shall be spicy
            await question(ori, nick)
            ori.send(f"PRIVMSG {GENERAL} :@{nick} {answer}")
        assert await spoken(ori, nick) == "eaten"
        eaten = model.journal.asked("have lunch")[-1].results[-1]
        assert '"action": "accept"' in eaten and '"dish": "rice"' in eaten and '"spicy": false' in eaten


def with_form_server(nick: str) -> dict[str, object]:
    """The settings with which a program has the MCP server that asks by a form; Copilot has it from its home."""
    if nick == COPILOT:
        server = {"type": "local", "command": sys.executable, "args": [formserver.__file__], "tools": ["*"]}
        folder = Path.home() / ".copilot"
        folder.mkdir(exist_ok=True)
        (folder / "mcp-config.json").write_text(json.dumps({"mcpServers": {"lunch": server}}))
    own = {"lunch": {"command": sys.executable, "args": [formserver.__file__]}}
    return {"mcp_servers": own} if nick == CLAUDE else {}
