"""How agents of four makers and people talk, each item with each real program; their model is scripted."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from culture.clients.shared.daemon import AgentDaemon
from culture.protocol.message import Message
from culture.server.ircd import IRCd
from tests.clients import test_four_makers as makers
from tests.clients.test_four_makers import CLAUDE, CODEX, COPILOT, GENERAL, NICKS, OPEN, START, company
from tests.support import formserver
from tests.support.client import Client, registered
from tests.support.model import Model
from tests.support.waiting import until

home, ircd, model = makers.home, makers.ircd, makers.model

SKILL = "python3 -P -m culture.clients.shared.skill.irc_client"
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


async def said(client: Client, verb: str, target: str, where: Callable[[Message], bool]) -> Message:
    """The next such message; a program on a busy machine may be silent for long."""
    async with asyncio.timeout(START):
        while True:
            try:
                return await client.expect(verb, target, where=where)
            except TimeoutError:
                continue


async def spoken(client: Client, nick: str) -> str:
    """The next line of an agent in the channel."""
    return (await said(client, "PRIVMSG", GENERAL, lambda each: each.source.startswith(f"{nick}!"))).params[1]


async def question(client: Client, nick: str) -> list[str]:
    """The lines of the next question that an agent asks to use a tool."""
    lines = [await spoken(client, nick)]
    while not lines[-1].startswith("Waiting for response."):
        lines.append(await spoken(client, nick))
    return lines


@pytest.mark.timeout(240)
@pytest.mark.parametrize("nick", NICKS)
async def test_a_person_sees_the_whole_change_before_saying_yes(
    ircd: IRCd, home: Path, model: Model, nick: str
) -> None:
    """Items A4 and A7: the diff of a change and the end of a command are shown; an unrelated yes approves neither."""
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
        ori.send(f"PRIVMSG {GENERAL} :@{nick} yes the README looks great now")
        await said(ori, "NOTICE", "spark-ori", lambda each: "I cannot tell what that means" in each.params[1])
        assert "'hello'" in file.read_text()
        ori.send(f"PRIVMSG {GENERAL} :@{nick} yes")
        assert [await spoken(ori, nick) for _ in range(2)] == ["changed", "ok"]
        assert "'good evening'" in file.read_text()
        await until(lambda: not daemons[nick].work.busy)
        ori.send(f"PRIVMSG {GENERAL} :@{nick} clean [[bash touch made {'&& true ' * 40}; rm greet.py]] [[say kept]]")
        lines = await question(ori, nick)
        assert lines[-2].endswith("; rm greet.py") and all(each.startswith("  ") for each in lines[2:-1])
        ori.send(f"PRIVMSG {GENERAL} :@{nick} no")
        # OpenCode ends its turn at a no, the others go on.
        await until(lambda: not (daemons[nick].questions.open or daemons[nick].work.busy))
        assert file.exists() and not (home / "work" / nick / "made").exists()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("nick", NICKS)
async def test_each_place_has_its_prompts_and_its_closing_texts(
    ircd: IRCd, home: Path, model: Model, nick: str
) -> None:
    """Items A3, A5, A6, A8 and A9: it closes what it was asked, where it was asked, and knows what came between."""
    judge, once = home / "judge.yaml", r"marmots=42(?![\s\S]*lunch)"
    judge.write_text(json.dumps({"judge": [{"when": once, "verdict": "CORRECTION Mind the 42 marmots."}]}))
    judges = {nick: {"agent": "scripted", "playbook": str(judge)}}
    async with (
        registered(ircd.port, "spark-ori", "message-tags echo-message") as ori,
        company(ircd, home, model, judges, nicks=[nick]) as daemons,
    ):
        await ori.join(GENERAL)
        counting = "[[bash echo marmots=$((40+2))]]"  # what comes of it only who sees results knows
        work = f'[[bash {SKILL} send "{GENERAL}" "On it."]] {counting} [[say It is 42.]]'
        ori.send(f"PRIVMSG {GENERAL} :@{nick} count {work}")
        assert [await spoken(ori, nick) for _ in range(2)] == ["On it.", "It is 42."]
        await until(lambda: not daemons[nick].work.busy)
        await daemons[nick].supervision._supervisor.rest()  # type: ignore[union-attr]
        first = model.journal.asked("count")[0].everything
        assert f"You are {nick}, an agent" in first and "Talk on IRC with people and other agents." in first
        ori.send(f"PRIVMSG {GENERAL} :@{nick} fyi: lunch at noon [[say [no reply]]]")
        await until(lambda: bool(model.journal.asked("lunch at noon")))
        await until(lambda: not daemons[nick].work.busy)

        ori.send(f"PRIVMSG {GENERAL} :@{nick} build [[wait BUILT]] [[say built]]")
        await until(lambda: bool(model.journal.asked("build")))
        ori.send(f"PRIVMSG {nick} :my salary is 90 [[say noted]]")
        ori.send(f"PRIVMSG {GENERAL} :@{nick} and me? [[say you too]]")
        await until(lambda: daemons[nick].inbox.counts()[0] == 2)
        model.release("BUILT")
        noted = await said(ori, "PRIVMSG", "spark-ori", lambda each: each.source.startswith(f"{nick}!"))
        assert noted.params[1] == "noted" and "+draft/reply" in noted.tags
        await until(lambda: daemons[nick].inbox.counts() == (0, 0) and not daemons[nick].work.busy)
        while "you too" not in makers.spoken(ori, nick):
            await spoken(ori, nick)
        assert makers.spoken(ori, nick) == ["On it.", "It is 42.", "built", "you too"]
        assert any("Mind the 42 marmots." in each.everything for each in model.journal.requests)

        await is_paused_and_told(ori, model, daemons[nick])
    prompts = [each.prompt for each in model.journal.requests]
    assert any("salary" in each for each in prompts)
    assert not any("salary" in each and GENERAL in each for each in prompts)


async def is_paused_and_told(ori: Client, model: Model, daemon: AgentDaemon) -> None:
    """Item A8: after a pause in its work the agent reads who paused it, and who let it go on."""
    nick = daemon.config.nick
    ori.send(f"PRIVMSG {GENERAL} :@{nick} dig [[wait DUG]] [[say dug]]")
    await until(lambda: bool(model.journal.asked("dig")))
    ori.send(f"PRIVMSG {GENERAL} :@{nick} pause")
    await until(lambda: daemon.notes.paused)
    model.release("DUG")
    await until(lambda: not daemon.work.busy)
    ori.send(f"PRIVMSG {GENERAL} :@{nick} resume: the disk is free [[say on it again]]")
    while "on it again" not in await spoken(ori, nick):
        pass
    resumed = model.journal.requests[-1].prompt
    assert "spark-ori paused you" in resumed and "spark-ori let you go on" in resumed


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


@pytest.mark.timeout(240)
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
        await until(lambda: not daemons[nick].work.busy)
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
