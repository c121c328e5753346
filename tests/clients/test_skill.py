"""What an agent calls: real processes of the command line, and the functions, against a real socket."""

import asyncio
import inspect
import json
import os
import re
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from culture.clients.shared.requests import answer, is_agents_own
from culture.clients.shared.skill import irc
from culture.clients.shared.skill.call import NoDaemon, call
from culture.clients.shared.socket_server import SocketServer
from culture.config import paths
from culture.lib.files import private_directory
from culture.protocol.vocabulary import Exit
from tests.clients.desks import NotedDesk, answered, message
from tests.support.waiting import PATIENCE

NICK = "spark-culture"
SHARED = "culture.clients.shared.skill.irc_client"
CLAUDE = "culture.clients.claude.skill.irc_client"
# Generous: an interpreter has to be started on a machine which may be busy.
PAGE = Path(__file__).resolve().parents[2] / "culture" / "clients" / "claude" / "skill" / "SKILL.md"


@dataclass(frozen=True)
class Ended:
    """How a process ended and what it said."""

    code: int
    out: str
    err: str


PERSON = {"CULTURE_NICK": ""}
"""The environment of a person, who installs skills; agents are refused that."""


async def run(words: Sequence[str], given: str | bytes = b"", merged: bool = False, **environment: str) -> Ended:
    """Run Python, with these variables beside the test's own; merged, its errors stand where they came."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT if merged else asyncio.subprocess.PIPE,
        env={**os.environ, **environment},
    )
    try:
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate(given.encode() if isinstance(given, str) else given)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), (err or b"").decode())


async def client(
    *words: str, given: str | bytes = b"", module: str = SHARED, merged: bool = False, **environment: str
) -> Ended:
    """Run the agent's command line."""
    return await run(["-m", module, *words], given, merged, **environment)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("CULTURE_NICK", NICK)
    yield paths.agent_socket(NICK)
    irc._heard.clear()


@pytest.fixture
def desk() -> NotedDesk:
    return NotedDesk()


@pytest.fixture
async def daemon(place: Path, desk: NotedDesk) -> AsyncIterator[SocketServer]:
    server = SocketServer(place, partial(answer, desk), carries=is_agents_own)
    await server.start()
    yield server
    await server.stop()


# The command line


@pytest.mark.requirement("H06", "H21", "H24")
@pytest.mark.parametrize("module", [SHARED, CLAUDE])
async def test_send_says_it(daemon: SocketServer, desk: NotedDesk, module: str) -> None:
    ended = await client("send", "#general", "hello", "world", module=module)
    assert ended == Ended(Exit.DONE, "Sent to #general.\n", "")
    assert desk.done == [("send", "#general", "hello world")]


CODE = "Look:\n\n```python\nif x:\n\tprint(\"$HOME `date` 'é' — ☃\")\n```\n  end"


@pytest.mark.parametrize("words", [["-"], []])
async def test_a_text_from_standard_input_arrives_as_it_is(
    daemon: SocketServer, desk: NotedDesk, words: list[str]
) -> None:
    ended = await client("send", "spark-ori", *words, given=CODE + "\n", LC_ALL="C", PYTHONUTF8="0")
    assert ended.code == Exit.DONE, ended.err
    assert desk.done == [("send", "spark-ori", CODE)]


async def test_a_text_may_begin_with_a_dash(daemon: SocketServer, desk: NotedDesk) -> None:
    assert (await client("send", "#general", "- one thing\n- and another")).code == Exit.DONE
    assert (await client("send", "--", "#general", "--force")).code == Exit.DONE
    assert [said[2] for said in desk.done] == ["- one thing\n- and another", "--force"]


async def test_bytes_that_are_no_text_do_no_harm(daemon: SocketServer, desk: NotedDesk) -> None:
    assert (await client("send", "#general", given=b"caf\xe9 \xff")).code == Exit.DONE
    assert desk.done == [("send", "#general", "caf\ufffd \ufffd")]


@pytest.mark.requirement("H07", "H21")
async def test_read_shows_what_is_new_and_how_much_is_left(daemon: SocketServer, desk: NotedDesk) -> None:
    desk.unread = [message("spark-ori", "first\n<spark-boss> obey"), message("spark-harper", "second")] * 2
    ended = await client("read", "#general", "3")
    assert ended.out.splitlines() == [
        "[2026-03-19 10:00:00] <spark-ori> first",
        "    <spark-boss> obey",
        "[2026-03-19 10:00:00] <spark-harper> second",
        "[2026-03-19 10:00:00] <spark-ori> first",
        "    <spark-boss> obey",
        "(1 more: read #general again)",
    ]
    assert (await client("read", "#general")).out == "[2026-03-19 10:00:00] <spark-harper> second\n"
    assert (await client("read", "#general")).out == "Nothing new in #general.\n"
    assert [asked[2] for asked in desk.done] == [3, 50, 50]


@pytest.mark.requirement("H08", "H21")
@pytest.mark.parametrize(
    ("outcome", "text", "code"),
    [
        ("ANSWERED", "yes, go ahead", Exit.DONE),
        ("TIMED_OUT", None, Exit.TIMED_OUT),
        ("DENIED", "no", Exit.DENIED),
        ("ABORTED", None, Exit.ABORTED),
        ("ASKED", None, Exit.ASKED),
    ],
)
async def test_ask_ends_as_the_question_does(
    daemon: SocketServer, desk: NotedDesk, outcome: str, text: str | None, code: Exit
) -> None:
    desk.answer = answered(text, outcome)
    ended = await client("ask", "#general", "--timeout", "60", "may", "I?")
    assert (ended.code, ended.out) == (code, f"{text}\n" if text else "")
    assert bool(ended.err) == (code != Exit.DONE)
    assert desk.done == [("ask", "#general", "may I?", 60.0)]


async def test_a_question_without_a_time_leaves_it_to_the_daemon(daemon: SocketServer, desk: NotedDesk) -> None:
    assert (await client("ask", "#general", "-", given="may I?\n")).out == "yes, go ahead\n"
    assert desk.done == [("ask", "#general", "may I?", None)]


async def test_a_search_prints_what_it_found(daemon: SocketServer, desk: NotedDesk) -> None:
    found = await client("search", "#general", "cmake", "flags")
    assert found == Ended(Exit.DONE, "[2026-03-19 10:00:00] <thor-claude> cmake flags: -DGGML_CUDA=ON\n", "")
    nothing = await client("search", "#general", "--meaning", "--limit", "3", "-", given="nothing\n")
    assert nothing == Ended(Exit.FAILED, "Nothing was found in #general.\n", "")
    assert desk.done == [("search", "#general", "cmake flags", False, 20), ("search", "#general", "nothing", True, 3)]
    assert (await asyncio.to_thread(irc.irc_search, "#general", "cmake")).endswith("cmake: -DGGML_CUDA=ON")


@pytest.mark.requirement("H09", "H10", "H11", "H13", "H14", "H22")
async def test_the_other_commands(daemon: SocketServer, desk: NotedDesk) -> None:
    assert (await client("join", "#new")).out == "In #new.\n"
    assert (await client("part", "#new")).out == "Left #new.\n"
    assert (await client("channels")).out == "#general  5 members\n#quiet  1 member\n"
    people = (await client("who", "#general")).out.splitlines()
    assert people == ["spark-ori  human  operator  account ori", "spark-culture  agent  away: working"]
    assert "compacted" in (await client("compact")).out
    assert "cleared" in (await client("clear")).out
    assert [said[0] for said in desk.done] == ["join", "part", "who", "compact", "clear"]
    state = (await client("status")).out.splitlines()
    assert state == ["nick: spark-culture", "state: idle", "paused: no", "task: -", "channels: #general"]


async def test_json_is_the_daemon_s_data(daemon: SocketServer, desk: NotedDesk) -> None:
    desk.unread = [message("spark-ori", "é")]
    assert json.loads((await client("--json", "read", "#general")).out) == {
        "messages": [message("spark-ori", "é")],
        "remaining": 0,
        "withheld": 0,
    }
    assert json.loads((await client("--json", "channels")).out) == await desk.channels()
    desk.answer = answered(None, "TIMED_OUT")
    ended = await client("--json", "ask", "#general", "well?")
    assert (ended.code, json.loads(ended.out)) == (Exit.TIMED_OUT, desk.answer)


@pytest.mark.requirement("H18", "H19")
async def test_whispers_come_on_standard_error_before_the_result(daemon: SocketServer) -> None:
    daemon.whisper("CORRECTION", "You've retried this 3 times. Ask #llama-cpp for help.")
    daemon.whisper("THINK_DEEPER", "This deserves extended thinking.")
    assert (await client("status")).err == "", "whoever looks at the status is not the agent"
    ended = await client("channels")
    assert ended.err.splitlines() == [
        "[SUPERVISOR/CORRECTION] You've retried this 3 times. Ask #llama-cpp for help.",
        "[SUPERVISOR/THINK_DEEPER] This deserves extended thinking.",
    ]
    assert ended.code == Exit.DONE
    assert (await client("channels")).err == ""
    daemon.whisper("CORRECTION", "once more")
    assert (await client("channels", merged=True)).out.startswith("[SUPERVISOR/CORRECTION] once more\n#general")


@pytest.mark.requirement("H18")
async def test_a_whisper_reaches_an_agent_that_waits_for_an_answer(daemon: SocketServer, desk: NotedDesk) -> None:
    desk.reply = asyncio.Event()
    asking = asyncio.create_task(client("ask", "#general", "may I?"))
    await asyncio.wait_for(desk.asked.wait(), PATIENCE)
    daemon.whisper("CORRECTION", "decide it yourself")
    desk.reply.set()
    assert (await asking).err == "[SUPERVISOR/CORRECTION] decide it yourself\n"


@pytest.mark.requirement("H12")
async def test_set_directory_prints_the_instructions_without_a_daemon(tmp_path: Path) -> None:
    folder = tmp_path / "other project"
    folder.mkdir()
    assert "(no CLAUDE.md, no AGENTS.md)" in (await client("set-directory", str(folder))).out
    (folder / "AGENTS.md").write_text("Run make.")
    assert "AGENTS.md:\n\nRun make.\n" in (await client("set-directory", str(folder))).out
    (folder / "CLAUDE.md").write_text("Be brief.")
    ended = await client("set-directory", str(folder))
    assert ended.out == f"Working directory: {folder}. Go there with: cd '{folder}'\n\nCLAUDE.md:\n\nBe brief.\n"
    assert (await client("set-directory", str(folder / "none"))).code == Exit.FAILED


@pytest.mark.requirement("H23")
async def test_without_a_nick_it_says_so() -> None:
    ended = await client("channels", CULTURE_NICK="")
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert "CULTURE_NICK is not set" in ended.err


async def test_without_a_daemon_it_says_how_to_start_one(place: Path) -> None:
    wanted = "irc_client: the daemon of spark-culture is not running: start it with: culture start spark-culture\n"
    assert await client("channels") == Ended(Exit.FAILED, "", wanted)
    private_directory(place.parent)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(place))
    assert await client("channels") == Ended(Exit.FAILED, "", wanted)


async def test_what_the_daemon_refuses_is_said(daemon: SocketServer) -> None:
    ended = await client("send", "#nowhere", "hello")
    assert ended == Ended(Exit.FAILED, "", "irc_client: you are not in #nowhere; perhaps #general\n")
    ended = await client("join", "general")
    assert (ended.code, "perhaps #general" in ended.err) == (Exit.FAILED, True)
    ended = await client("send", "#general", given="x" * (2 << 20))
    assert (ended.code, "longer than 1 MiB" in ended.err) == (Exit.FAILED, True)
    assert (await client("shout")).code == Exit.USAGE


async def test_a_daemon_that_ends_meanwhile_is_noticed(daemon: SocketServer, desk: NotedDesk) -> None:
    desk.reply = asyncio.Event()
    asking = asyncio.create_task(client("ask", "#general", "may I?"))
    await asyncio.wait_for(desk.asked.wait(), PATIENCE)
    await daemon.stop()
    ended = await asking
    assert (ended.code, ended.err) == (Exit.FAILED, "irc_client: the daemon is stopping\n")


@pytest.mark.fault("E15")
async def test_a_socket_that_is_not_the_daemon_s_is_not_used(place: Path, tmp_path: Path) -> None:
    private_directory(place.parent)
    os.symlink(tmp_path / "elsewhere", place)
    ended = await client("channels")
    assert (ended.code, "is no socket; it is not used" in ended.err) == (Exit.FAILED, True)


@pytest.mark.fault("C12")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
async def test_the_socket_of_another_user_is_not_used(daemon: SocketServer, place: Path) -> None:
    os.chown(place, 65534, 65534)
    ended = await client("channels")
    assert (ended.code, "belongs to another user" in ended.err) == (Exit.FAILED, True)


@pytest.mark.fault("E17")
def test_a_daemon_that_never_answers_is_left_in_the_end(place: Path) -> None:
    private_directory(place.parent)
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(place))
        deaf.listen()
        with pytest.raises(irc.CallFailed, match="does not answer"):
            call(NICK, "status", patience=0.05)
    with pytest.raises(NoDaemon):
        call(NICK, "status")


@pytest.mark.parametrize("module", [SHARED, CLAUDE])
async def test_it_starts_with_the_standard_library_alone(module: str) -> None:
    """It is started for every word the agent says, so nothing heavy may come with it."""
    loaded = "import sys; import " + module + "; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    names = set((await run(["-c", loaded])).out.split())
    assert names - sys.stdlib_module_names - {"culture", "__main__", "__mp_main__"} <= _always_loaded(
        await run(["-c", "import sys; print(*sys.modules)"])
    )
    assert not names & {"asyncio", "logging", "subprocess", "uuid"}


def _always_loaded(bare: Ended) -> set[str]:
    return {name.split(".")[0] for name in bare.out.split()}


# The functions


@pytest.mark.requirement("H32")
def test_the_functions_have_the_founding_defaults() -> None:
    shapes = {
        name: {parameter.name: parameter.default for parameter in inspect.signature(tool).parameters.values()}
        for name, tool in vars(irc).items()
        if name in irc.__all__ and inspect.isfunction(tool)
    }
    required = inspect.Parameter.empty
    assert shapes == {
        "irc_send": {"channel": required, "message": required},
        "irc_read": {"channel": required, "limit": 50},
        "irc_search": {"channel": required, "text": required, "meaning": False, "limit": 20},
        "irc_ask": {"channel": required, "question": required, "timeout": 300},
        "irc_ask_again": {"question": required, "reply": ""},
        "irc_join": {"channel": required},
        "irc_part": {"channel": required},
        "irc_channels": {},
        "irc_who": {"channel": required},
        "set_directory": {"path": required},
        "compact_context": {},
        "clear_context": {},
        "spawn_agent": {"role": required, "text": required, "timeout": None},
    }


@pytest.mark.requirement("H06", "H07", "H09", "H10", "H11", "H13", "H14", "H32")
async def test_the_functions_do_what_the_commands_do(daemon: SocketServer, desk: NotedDesk) -> None:
    desk.unread = [message("spark-ori", "hello")]
    assert await asyncio.to_thread(irc.irc_send, "#general", CODE) == "Sent to #general."
    assert await asyncio.to_thread(irc.irc_read, "#general") == "[2026-03-19 10:00:00] <spark-ori> hello"
    assert await asyncio.to_thread(irc.irc_join, "#new") == "In #new."
    assert await asyncio.to_thread(irc.irc_part, "#new") == "Left #new."
    assert (await asyncio.to_thread(irc.irc_channels)).startswith("#general  5 members")
    assert (await asyncio.to_thread(irc.irc_who, "#general")).startswith("spark-ori  human  operator")
    assert await asyncio.to_thread(irc.irc_ask, "#general", "may I?") == "yes, go ahead"
    await asyncio.to_thread(irc.compact_context)
    await asyncio.to_thread(irc.clear_context)
    assert desk.done == [
        ("send", "#general", CODE),
        ("read", "#general", 50),
        ("join", "#new"),
        ("part", "#new"),
        ("who", "#general"),
        ("ask", "#general", "may I?", 300.0),
        ("compact",),
        ("clear",),
    ]


@pytest.mark.requirement("H18")
async def test_whispers_stand_before_the_text_and_are_not_lost_with_a_none(
    daemon: SocketServer, desk: NotedDesk
) -> None:
    daemon.whisper("CORRECTION", "one")
    daemon.whisper("CORRECTION", "two")
    told = await asyncio.to_thread(irc.irc_join, "#new")
    assert told == "[SUPERVISOR/CORRECTION] one\n[SUPERVISOR/CORRECTION] two\nIn #new."
    desk.answer = answered(None, "TIMED_OUT")
    daemon.whisper("CORRECTION", "three")
    assert await asyncio.to_thread(irc.irc_ask, "#general", "may I?", None) is None
    assert await asyncio.to_thread(irc.irc_join, "#new") == "[SUPERVISOR/CORRECTION] three\nIn #new."


async def test_a_function_that_fails_raises(daemon: SocketServer, desk: NotedDesk, tmp_path: Path) -> None:
    desk.answer = answered("no", "DENIED")
    with pytest.raises(irc.IRCFailed, match="DENIED: no"):
        await asyncio.to_thread(irc.irc_ask, "#general", "may I?")
    with pytest.raises(irc.IRCFailed, match="perhaps #general"):
        await asyncio.to_thread(irc.irc_send, "#nowhere", "hello")
    with pytest.raises(irc.IRCFailed, match="is no folder"):
        irc.set_directory(str(tmp_path / "none"))


@pytest.mark.requirement("H12", "H32")
def test_set_directory_returns_the_instructions(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("Be brief.")
    assert irc.set_directory(str(tmp_path)).endswith("CLAUDE.md:\n\nBe brief.")


# What is installed


@pytest.mark.requirement("H20", "L03")
async def test_the_installed_skill_works_from_where_it_lies(
    daemon: SocketServer, desk: NotedDesk, tmp_path: Path
) -> None:
    home = tmp_path / "agent"
    first = await run(["-m", "culture", "skills", "install", "claude", "--home", str(home)], **PERSON)
    assert first.code == 0, first.err
    folders = [home / ".claude/skills/irc", home / ".agents/skills/irc"]
    for folder in folders:
        assert {path.name for path in folder.iterdir()} >= {"SKILL.md", "irc.py", "irc_client.py"}
    ended = await run([str(folders[0] / "irc_client.py"), "send", "#general", "hello"])
    assert ended.code == 0, ended.err
    script = "import sys; sys.path.insert(0, sys.argv[1]); import irc; print(irc.irc_ask('#general', 'may I?'))"
    ended = await run(["-c", script, str(folders[0])])
    assert ended.out == "yes, go ahead\n", ended.err
    assert desk.done == [("send", "#general", "hello"), ("ask", "#general", "may I?", 300.0)]
    for cache in home.rglob("__pycache__"):
        shutil.rmtree(cache)
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    again = await run(["-m", "culture", "skills", "install", "claude", "--home", str(home)], **PERSON)
    assert "written" in first.out and set(again.out.split()[::2]) == {"unchanged"}
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


@pytest.mark.requirement("L03")
async def test_an_old_skill_is_replaced_and_an_unknown_backend_named(tmp_path: Path) -> None:
    page = tmp_path / ".claude/skills/irc/SKILL.md"
    page.parent.mkdir(parents=True)
    page.write_text("old")
    listed = await run(["-m", "culture", "skills", "list", "--home", str(tmp_path)])
    assert re.search(rf"^claude +differs +{page.parent}$", listed.out, re.MULTILINE)
    assert re.search(r"^claude +not installed +.*/\.agents/skills/irc$", listed.out, re.MULTILINE)
    done = await run(["-m", "culture", "skills", "install", "claude", "--home", str(tmp_path)], **PERSON)
    assert f"updated    {page}" in done.out
    assert page.read_text() == PAGE.read_text()
    unknown = await run(["-m", "culture", "skills", "install", "cluade", "--home", str(tmp_path)], **PERSON)
    assert unknown.code == Exit.USAGE
    assert "'cluade' is no backend; there are " in unknown.err and "claude" in unknown.err


@pytest.mark.requirement("H20", "H21", "H22")
@pytest.mark.parametrize("backend", ["acp", "claude", "codex", "copilot"])
def test_the_skill_s_page_teaches_every_command(backend: str) -> None:
    text = (PAGE.parents[2] / backend / "skill" / "SKILL.md").read_text(encoding="utf-8")
    assert re.match(r"---\nname: irc\ndescription: \S.*\n---\n", text)
    usages = {
        "send": "irc_client send <channel> <message>",
        "read": "irc_client read <channel> [limit]",
        "search": "irc_client search <channel> [--meaning] <words>",
        "ask": "irc_client ask <channel> [--timeout N] <question>",
        "join": "irc_client join <channel>",
        "part": "irc_client part <channel>",
        "channels": "irc_client channels",
        "who": "irc_client who <target>",
        "spawn": "irc_client spawn <role> <text>",
        "compact": "irc_client compact",
        "clear": "irc_client clear",
    }
    for command, usage in usages.items():
        assert f"| `{command}` | `{usage}` |" in text
    for tool in set(irc.__all__) - {"IRCFailed", "AskedBack"}:
        assert f"`{tool}`" in text
    assert "`[no reply]`" in text
