"""``culture up`` and ``culture down``: for whoever comes for the first time, and every day after."""

import asyncio
import errno
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

import pytest

from culture.cli.agents.select_agents import load
from culture.cli.options import Choices
from culture.cli.up import agents as up_agents
from culture.cli.up.agents import UpAgents
from culture.cli.up.command import UpRun
from culture.clients.shared.pidfile import DaemonNote
from culture.config.agents import ServerAddress
from culture.config.model import ServerConfig
from culture.lib.files import note_of_holder
from culture.lib.process import orphans
from culture.lib.process.children import ChildProcesses, Interrupts
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from tests.cli.agents.conftest import NICK, Machine, answer
from tests.cli.shell import ROOT, Process, Shell, said_port
from tests.cli.test_mesh import WITHOUT_SKILLS
from tests.realclients.weechat import weechat
from tests.support.client import Client, connected, registered
from tests.support.lockholder import locked
from tests.support.ports import reserved

GUIDE = "spark-guide"


def daemon(shell: Shell, nick: str = GUIDE) -> DaemonNote | None:
    text = note_of_holder(shell.home / "run" / f"{nick}.pid")
    return DaemonNote.parse(text) if text else None


def place(said: str) -> tuple[int, str]:
    """The port and the nick of the line for irssi."""
    found = re.search(r"irssi -c \S+ -p (\d+) -n (\S+)", said)
    assert found, said
    return int(found[1]), found[2]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()


def status_of(url: str) -> int:
    with urlopen(url) as page:
        return int(page.status)


async def stopped(up: Process, name: str = "spark") -> None:
    up.signal(signal.SIGINT)
    assert await up.ended() == 0, up.said
    assert up.said.endswith(f"{name} has stopped.\n") and "Traceback" not in up.said


@pytest.mark.fault("J7")
async def test_from_nothing_to_the_first_answer_and_back(at_home: Shell) -> None:
    """J7: no file at all, one command: page, welcome, question, loop guard; one command, and nothing runs."""
    up = await at_home.spawn("up", "--port", "0")
    port, nick = place(await up.until("say hello"))
    await up.until("/login/")
    said = await up.until("-guide hello` in #general")
    guide = f"{nick.removesuffix('-ori')}-guide"
    assert "has no model" in said and f"culture ask {guide} hello" in said
    assert "-parrot is here.\n" in said and "-parrot hello" not in said, "it is told once what to say, and to whom"
    link = re.search(r"http://\S+/login/\S+", said)
    assert link
    assert await asyncio.to_thread(status_of, link[0]) == 200
    assert f"Welcome, {nick}!" in await up.until(f"Welcome, {nick}!")

    async with registered(port, nick) as person:
        await person.join("#general")
        person.send(f"PRIVMSG #general :@{guide} hello")
        assert "a guide without a model" in await answer(person, nick=guide)
        person.send("PRIVMSG #general :@guide what can you do")
        assert "I have no model" in await answer(person, nick=guide)
        assert "show me a question" in await answer(person, nick=guide)
        person.send("PRIVMSG #general :@guide show me a question")
        assert "[QUESTION] May I write hello.txt" in await answer(person, nick=guide)
        await up.until(f"culture answer {guide} q1")
        person.send("PRIVMSG #general :@guide show me a question")
        assert (await answer(person, nick=guide)).endswith(f"Reply with: @{guide} yes/no")
        assert await answer(person, nick=guide) == "[ANSWER] I wait for one of these: yes/no."
        person.send("PRIVMSG #general :@guide yes")
        assert (await answer(person, nick=guide)).startswith("You said yes, so hello.txt is in")
        person.send("PRIVMSG #general :@guide show me the loop guard")
        assert "for ever, at your cost" in await answer(person, nick=guide)
        await person.expect("NOTICE", "#general", where=lambda line: "automatic replies in a row" in line.params[1])

    held = [note_of_holder(file) for file in (at_home.home / "run").iterdir() if file.suffix in (".pid", ".page")]
    pids = [json.loads(note)["pid"] for note in held if note]
    assert len(pids) == 4, "server, page, guide and parrot"
    down = await at_home.run("down")
    assert down.code == 0 and down.out.endswith("Nothing is left running.\n")
    assert await up.ended() == 0, up.said
    assert [pid for pid in pids if is_alive(pid)] == []
    again = await at_home.run("down")
    assert (again.code, again.out) == (0, "Nothing was running.\n")


def newcomer_at(folder: Path, sockets: str, port: int) -> Shell:
    """Somebody's machine on which nothing was typed yet, with a server of the folder's name on this port."""
    folder.mkdir()
    shell = Shell(folder, {"XDG_RUNTIME_DIR": sockets, "LOGNAME": "ori"})
    shell.write(f"name: {folder.name}\nlisten: [{{port: {port}}}]\n{WITHOUT_SKILLS}")
    return shell


async def heard(person: Client, text: str) -> tuple[str, str]:
    """Who said the next message in the room that has this text, and all of it."""
    line = await person.expect("PRIVMSG", "#general", where=lambda line: text in line.params[1])
    return line.source.partition("!")[0], line.params[1]


async def follow_the_words(person: Client, guide: str, welcome: str) -> None:
    """Say what the guide says is to be said, and see that it alone answers, once."""
    words = re.findall("`(.*?)`", welcome)
    assert words == [f"@{guide} what can you do"]
    person.send(f"PRIVMSG #general :{words[0]}")
    assert (await heard(person, ""))[1].startswith(f"I am {guide}. I have no model")
    who, listed = await heard(person, "")
    assert who == guide and "show me the loop guard" in listed
    for each in ("spark-guide", "thor-guide"):
        person.send(f"PRIVMSG #general :@{each} ping")
        assert await heard(person, "") == (each, "pong"), "nobody else had anything to say"


async def test_the_guides_of_linked_servers_are_told_apart(tmp_path: Path) -> None:
    """Each says what to say to it, in words that mean it alone, and shows the loop guard with its own parrot."""
    # A socket's path may have some hundred bytes, and pytest's folder has many of them.
    with TemporaryDirectory() as sockets, reserved() as port, reserved() as other:
        spark, thor = (newcomer_at(tmp_path / name, sockets, at) for name, at in (("spark", port), ("thor", other)))
        try:
            for each in await asyncio.gather(*(shell.run("up", "--no-web", "-d") for shell in (spark, thor))):
                assert each.code == 0, each.err
            code = (await spark.run("mesh", "invite", "--trust", "full")).out.split()[-1]
            joined = await thor.run("mesh", "join", code, "--trust", "full")
            assert joined.code == 0, joined.err
            async with registered(port, "spark-ori") as person:
                person.send("JOIN #general")
                welcomes = dict([await heard(person, "Welcome, spark-ori!") for _ in range(2)])
                for guide in ("spark-guide", "thor-guide"):
                    await follow_the_words(person, guide, welcomes[guide])
                for place in ("thor", "spark"):
                    await see_the_loop_guard(person, place)
            for shell in (spark, thor):
                assert (await shell.run("down")).code == 0
        finally:
            for shell in (spark, thor):
                await shell.close()


async def see_the_loop_guard(person: Client, place: str) -> None:
    """The guide and the parrot of one server talk until they are held, and nobody of another one with them."""
    person.send(f"PRIVMSG #general :@{place}-guide show me the loop guard")
    await heard(person, "for ever, at your cost")
    begun = len(person.seen)
    await person.expect("NOTICE", "#general", where=lambda line: "automatic replies in a row" in line.params[1])
    talk = [line.source.partition("!")[0] for line in person.seen[begun:] if line.verb == "PRIVMSG"]
    assert set(talk) == {f"{place}-guide", f"{place}-parrot"}


async def test_the_person_at_the_keyboard_has_an_account(at_home: Shell) -> None:
    at_home.write("name: spark\n")
    up = await at_home.spawn("up", "--port", "0", "--no-web", "--no-agent")
    port, nick = place(await up.until("say hello"))
    [account] = AccountStore(at_home.home / "accounts.json", "spark").all()
    assert (account.name, account.kind, account.verifier) == ("ori", UserClass.HUMAN, None)
    async with registered(port, nick) as person:
        lines = await person.ask(f"WHOIS {nick}")
        assert any(line.verb == "330" and line.params[2] == "ori" for line in lines)
    said = await at_home.run("say", "#general", "from a shell")
    assert said.code == 0, said.err
    await up.until("<spark-ori> from a shell")
    await stopped(up)


async def test_accounts_that_are_there_are_left_alone(at_home: Shell) -> None:
    """Whoever has made accounts of people has said who is one."""
    at_home.write("name: spark\n")
    await at_home.run("account", "add", "mia", "--no-password")
    up = await at_home.run("up", "--port", "0", "--no-web", "--no-agent", "-d")
    assert up.code == 0, up.err
    assert [each.name for each in AccountStore(at_home.home / "accounts.json", "spark").all()] == ["mia"]
    assert (await at_home.run("down")).code == 0


async def test_a_second_folder_adds_an_agent_to_what_runs(at_home: Shell, tmp_path: Path) -> None:
    """With an agent program that is installed and logged in, it works where `culture up` was typed."""
    pytest.importorskip("acp")
    at_home.write("name: spark\n")
    bin_folder, shop = tmp_path / "bin", tmp_path / "shop"
    bin_folder.mkdir()
    shop.mkdir()
    program = bin_folder / "opencode"
    tells = 'test "$1" = --version && echo 1.18.0 && exit'
    program.write_text(f"#!/bin/sh\n{tells}\nexec {shlex.quote(sys.executable)} -m tests.clients.acp.little '{{}}'\n")
    program.chmod(0o755)
    first = await at_home.run("up", "--port", "0", "--no-web", "-d")
    assert first.code == 0 and f"@{GUIDE} hello" in first.out, first.err
    at_home.environment |= {"PATH": f"{bin_folder}:{os.defpath}", "OPENCODE_API_KEY": "dummy"}
    at_home.cwd = shop
    second = await at_home.run("up", "--no-web", "--budget", "0.5")
    assert second.code == 0, second.err
    assert "spark is up already" in second.out and f"{GUIDE} is running already" in second.out
    assert f"spark-acp is opencode, and works in {shop}. It may spend 0.5 dollars" in second.out
    assert "spark-acp is here" in second.out
    third = await at_home.run("up", "--no-web")
    assert third.code == 0 and "Wrote" not in third.out and "spark-acp is running already" in third.out
    down = await at_home.run("down")
    assert down.code == 0 and "spark-acp has stopped." in down.out


def test_what_outlives_its_leader_is_found_by_the_session_and_ended() -> None:
    """A process that ignores SIGTERM, whose parent is gone: the session's number is all that is left of that one."""
    # A child is the shell itself until it has become the other program.
    script = "trap '' TERM; sleep 600 & until grep -q sleep /proc/$!/comm; do :; done; echo $!; exit"
    leader = subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert leader.stdout is not None
    orphan = int(leader.stdout.readline())
    leader.wait()
    leader.stdout.close()
    assert [each.pid for each in orphans.of_sessions({leader.pid})] == [orphan]
    found, still = orphans.end_sessions({leader.pid})
    assert ([each.command for each in found], still) == (["sleep 600"], [])
    assert not is_alive(orphan)


async def test_agents_neither_begin_nor_end_everything(at_home: Shell) -> None:
    at_home.environment["CULTURE_NICK"] = "spark-bee"
    for command in ("up", "down"):
        refused = await at_home.run(command)
        assert refused.code == 4 and "this command is for people" in refused.err


async def test_a_port_that_is_taken_is_told_with_what_to_type(at_home: Shell) -> None:
    _, port = await at_home.serve("--name", "other")
    at_home.write(f"name: spark\nlisten: [{{host: 127.0.0.1, port: {port}}}]\n")
    up = await at_home.run("up", "--no-web", "--no-agent")
    assert up.code == 1 and re.search(rf"port {port} .* Type `culture up --port \d+`", up.err)


async def test_a_port_that_is_chosen_later_is_written_down_everywhere(at_home: Shell) -> None:
    """What the command says is to be typed leaves a machine on which every other command works."""
    with reserved() as old, reserved() as new, socket.socket() as stranger:
        culture = at_home.write(f"# Mine.\nname: spark\nlisten:\n  - {{host: 127.0.0.1, port: {old}}}  # usual\n")
        assert (await at_home.run("up", "--no-web", "-d")).code == 0
        assert (await at_home.run("down")).code == 0
        agents = at_home.home / "agents.yaml"
        before = culture.read_text(), agents.read_text()
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", old))
        stranger.listen()
        refused = await at_home.run("up", "--no-web", "-d")
        assert refused.code == 1 and re.search(r"Type `culture up --port \d+`, or end that program", refused.err)
        assert (culture.read_text(), agents.read_text()) == before

        moved = await at_home.run("up", "--no-web", "-d", "--port", str(new))
        assert moved.code == 0, moved.err
        for file, text in zip((culture, agents), before, strict=True):
            assert f"Wrote {file}: the port is {new} from here on." in moved.out
            assert file.read_text() == text.replace(f"port: {old}", f"port: {new}")
        restarted = await at_home.run("restart", GUIDE)
        assert restarted.code == 0, restarted.err
        assert "the agents look for the server" not in (await at_home.run("doctor")).out
        assert (await at_home.run("down")).code == 0

        later = await at_home.run("up", "--no-web", "-d")
        assert later.code == 0 and place(later.out)[0] == new
        same = await at_home.run("up", "--no-web", "--port", str(new))
        assert same.code == 0 and "Wrote" not in same.out
        other = await at_home.run("up", "--no-web", "--port", str(old))
        assert other.code == 1 and f"spark is up already, at port {new}." in other.err
        assert f"`culture down`, then `culture up --port {old}`" in other.err
        assert (await at_home.run("server", "stop")).code == 0
        stranger.close()
        back = await at_home.run("up", "--no-web", "-d", "--port", str(old))
        assert f"still use the old port: `culture restart {GUIDE} spark-parrot`" in back.out
        again = await at_home.run("restart", GUIDE, "spark-parrot")
        assert again.code == 0, again.err
        assert (await at_home.run("down")).code == 0


async def test_a_port_for_one_of_several_addresses_is_left_to_the_file(at_home: Shell) -> None:
    with reserved() as first, reserved() as second, reserved() as third, socket.socket() as stranger:
        text = f"name: spark\nlisten: [{{port: {first}}}, {{port: {second}}}]\n"
        file = at_home.write(text)
        refused = await at_home.run("up", "--no-web", "--no-agent", "-d", "--port", str(third))
        assert refused.code == 2 and "names several addresses" in refused.err and "under `listen:`" in refused.err
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", second))
        stranger.listen()
        taken = await at_home.run("up", "--no-web", "--no-agent", "-d")
        assert taken.code == 1 and "--port" not in taken.err and f"under `listen:` in {file}" in taken.err
        assert file.read_text() == text


async def test_agents_of_another_place_keep_their_port(at_home: Shell) -> None:
    """The port that is chosen is this server's; whom the agents look for elsewhere is not moved by it."""
    with reserved() as port:
        at_home.write("name: spark\n")
        text = "server: {name: thor, host: 127.0.0.1, port: 6999}\nagents: []\n"
        agents = at_home.write(text, "agents.yaml")
        up = await at_home.run("up", "--no-web", "--no-agent", "-d", "--port", str(port))
        assert up.code == 0 and "agents.yaml" not in up.out, up.err
        assert agents.read_text() == text
        assert f"port: {port}" in (at_home.home / "culture.yaml").read_text()
        assert (await at_home.run("down")).code == 0


async def test_a_wrong_agents_file_does_not_keep_the_server_down(at_home: Shell) -> None:
    at_home.write("agents: [{nick: spark-x}]\n", "agents.yaml")
    up = await at_home.spawn("up", "--name", "spark", "--port", "0", "--no-web")
    said = await up.until("No agent is started")
    async with registered(said_port(re.findall(r"irssi.*", said)[0].replace("-p ", "port ")), "spark-ori"):
        pass
    await stopped(up)
    assert "agents.yaml:1" in up.said


async def test_an_agent_that_cannot_start_is_explained(at_home: Shell) -> None:
    at_home.write("agents: [{nick: spark-x, agent: scripted, directory: /nowhere, channels: ['#a']}]\n", "agents.yaml")
    up = await at_home.spawn("up", "--name", "spark", "--port", "0", "--no-web")
    assert "spark-x did not start (exit code 78)" in await up.until("then `culture start spark-x`")
    await stopped(up)


def test_claude_is_taken_where_it_is_installed_and_logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("claude_agent_sdk")
    for name in [each for each in os.environ if "API_KEY" in each or "TOKEN" in each or each.startswith("CLAUDE")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert up_agents.ready_backend() is None
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a key")
    assert up_agents.ready_backend() == up_agents.Choice("claude", "Claude Code")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv("IS_SANDBOX", raising=False)
    assert up_agents.ready_backend() is None


def test_the_agent_of_a_folder_is_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its command, its budget, and a name after the folder where the first one is taken."""
    pytest.importorskip("acp")
    for name in [each for each in os.environ if "API_KEY" in each or "TOKEN" in each]:
        monkeypatch.delenv(name)
    program = tmp_path / "bin" / "gemini"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 0.61.0\n")
    program.chmod(0o755)
    for name, value in {"CULTURE_HOME": "c", "HOME": "h", "PATH": "bin"}.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.setenv("GEMINI_API_KEY", "dummy")
    beside = UpAgents(ServerConfig(name="spark"), ServerAddress(name="spark", host="127.0.0.1", port=6667))
    folders = [tmp_path / name for name in ("Web Shop", "blog")]
    for folder in folders:
        folder.mkdir()
    assert [beside.add_for(folder, 2.0) for folder in folders] == ["spark-acp", "spark-acp-blog"]
    assert beside.add_for(folders[0], 2.0) is None
    assert beside.add_for(Path("/"), 2.0) is None
    agent = load().agents[0]
    assert agent.directory == folders[0] and agent.budget.usd_per_day == 2.0 and agent.budget.turns_per_day == 200
    assert agent.backend_options["acp_command"] == ("gemini", "--acp")


@pytest.mark.skipif(shutil.which("weechat-headless") is None, reason="weechat-headless is not installed")
async def test_a_newcomer_with_weechat_is_answered(at_home: Shell, tmp_path: Path) -> None:
    """The line that is printed for weechat, and what is said to be typed."""
    at_home.write("name: spark\n")
    up = await at_home.spawn("up", "--port", "0", "--no-web")
    said = await up.until(f"Say `@{GUIDE} hello` in #general")
    found = re.search(r"weechat '(irc://\S+)'", said)
    assert found
    async with weechat(tmp_path / "weechat", found[1]) as newcomer:
        await newcomer.shows("Channel #general: 3 nicks", "#general")
        newcomer.type(f"@{GUIDE} hello", "#general")
        await newcomer.shows(f"Hello spark-ori! I am {GUIDE}", "#general")
    await stopped(up)


async def test_what_ran_before_goes_on(machine: Machine) -> None:
    """An agent whose server was away, for which `culture up` starts one again."""
    machine.agents({"nick": NICK}, {"nick": "spark-ant"})
    assert (await machine.run("start", NICK)).code == 0
    machine.server.signal(signal.SIGTERM)
    await machine.server.ended()
    before = machine.daemon()
    up = await machine.shell.spawn("up", "--port", str(machine.port), "--no-web")
    await up.until("spark-ant is here")
    await stopped(up)
    now = machine.daemon()
    assert before and now and now.pid == before.pid and is_alive(now.pid), up.said
    assert f"{NICK} was running before, and keeps running" in up.said and "spark-ant has stopped." in up.said


def test_what_was_begun_is_ended_where_nobody_can_be_told_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The terminal is closed after the server was launched and before anything is shown."""
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path))
    noted = ChildProcesses(Interrupts().held)
    run = UpRun(ServerConfig(name="spark"), None, False, noted)
    sleeper = ["sleep", "600"]

    def start(choices: Choices) -> None:
        noted.launch("spark", lambda: subprocess.Popen(sleeper, start_new_session=True))

    def greet(how: str) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(run, "_start_server", start)
    monkeypatch.setattr(run, "greet", greet)
    with pytest.raises(OSError, match="Input/output"):
        run.whole(Choices(None, None, None, None, None), web=False, agent=False, budget=None)
    [server] = noted.all().values()
    ended = server.poll()
    server.kill()
    assert ended == -signal.SIGTERM


LAUNCHER = """
import os, signal, subprocess, sys

HELD, MOMENT, NUMBER = {held!r}, {moment!r}, {number}


class Popen(subprocess.Popen):
    count = 0

    # What is held gets no farther than being launched: it never holds its file.
    def __init__(self, command, **how):
        is_held = HELD in command
        super().__init__(["sleep", "600"] if is_held else command, **how)
        if how.get("start_new_session"):
            Popen.count += 1
            print(f"launched {{Popen.count}}: {{self.pid}}", flush=True)
        if is_held and MOMENT == "launched":
            os.kill(os.getpid(), NUMBER)
        for again in range(2 if is_held and MOMENT == "twice" else 0):
            os.kill(os.getpid(), NUMBER)


subprocess.Popen = Popen
del sys.argv[1:3]
from culture.cli import main
main()
"""


def launcher(shell: Shell, held: str, moment: str, number: signal.Signals) -> None:
    """Have `culture` run with a hook in what launches processes."""
    script, program = shell.folder / "launcher.py", shell.folder / "python"
    script.write_text(LAUNCHER.format(held=held, moment=moment, number=int(number)))
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {script} "$@"\n')
    program.chmod(0o755)
    shell.python = str(program)


def launched(said: str) -> list[int]:
    return [int(pid) for pid in re.findall(r"^launched \d+: (\d+)$", said, re.MULTILINE)]


SERVER, PAGE, AGENT = "--foreground", "web", "culture.clients.shared"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(("held", "moment"), [(AGENT, "launched"), (AGENT, "twice"), (SERVER, "launched")])
async def test_what_is_being_launched_when_a_signal_comes_is_ended(
    at_home: Shell, held: str, moment: str, number: signal.Signals
) -> None:
    """The process is there, and neither does the command know it yet nor does it hold its file."""
    at_home.write("name: spark\n")
    launcher(at_home, held, moment, number)
    up = await at_home.spawn("up", "--port", "0", "--no-web")
    code = await up.ended()
    pids = launched(up.said)
    left = [pid for pid in pids if is_alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert pids and not left, up.said
    assert code == 0 and up.said.endswith("spark has stopped.\n") and "Traceback" not in up.said
    assert held != AGENT or f"{GUIDE} has stopped.\n" in up.said


@pytest.mark.parametrize(("held", "options", "awaited"), [(AGENT, "--no-web", 3), (PAGE, "--no-agent", 2)])
async def test_what_does_not_show_itself_is_not_waited_for(
    at_home: Shell, held: str, options: str, awaited: int
) -> None:
    """Ctrl-C while agents or the page take long to come: they end at once, and nothing is said of why they failed."""
    at_home.write("name: spark\n")
    launcher(at_home, held, "", signal.SIGINT)
    up = await at_home.spawn("up", "--port", "0", options)
    await up.until(f"launched {awaited}: ")
    up.signal(signal.SIGINT)
    code = await up.ended()
    left = [pid for pid in launched(up.said) if is_alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left and code == 0, up.said
    assert up.said.endswith("spark has stopped.\n") and "Traceback" not in up.said and "not start" not in up.said


async def test_an_agent_whose_program_crashes_is_not_announced_as_here(at_home: Shell) -> None:
    """Its daemon runs and starts it again; whoever typed `culture up` is told what it said, and the exit code is 1."""
    at_home.write("name: spark\n")
    work = at_home.folder / "work"
    work.mkdir()
    agent = {"nick": "spark-ant", "directory": str(work), "channels": ["#general"], "agent": "acp"}
    settings = {"agents": [{**agent, "acp_command": ["/bin/false"], "supervisor": {"agent": "none"}}]}
    at_home.write(json.dumps(settings), "agents.yaml")
    up = await at_home.run("up", "--port", "0", "--no-web", "-d")
    assert up.code == 1 and "is here" not in up.out, up.out
    assert "spark-ant: its daemon runs, its program has crashed:" in up.err and "did not start" in up.err


async def test_a_server_that_dies_is_restarted_and_else_said_why(at_home: Shell) -> None:
    at_home.write("name: spark\n")
    up = await at_home.spawn("up", "--port", "0", "--no-web", "--no-agent")
    port, nick = place(await up.until("say hello"))
    note = json.loads(note_of_holder(at_home.home / "run" / "spark.pid") or "{}")
    os.kill(note["pid"], signal.SIGKILL)
    said = await up.until("spark is up again")
    assert "spark died (killed by SIGKILL)" in said
    async with registered(port, f"{nick}2") as person:
        await person.join("#general")
    again = json.loads(note_of_holder(at_home.home / "run" / "spark.pid") or "{}")
    assert again["pid"] != note["pid"]
    at_home.write("name: spark\nlimits: wrong\n")
    os.kill(again["pid"], signal.SIGKILL)
    assert await up.ended() == 1
    assert "spark cannot be restarted" in up.said and "`culture doctor`" in up.said and "Traceback" not in up.said


async def test_a_server_that_was_told_to_stop_is_not_restarted_however_it_ends(at_home: Shell) -> None:
    """`culture down` waits for a server that cannot write, and somebody ends it by force: that is no crash."""
    at_home.write("name: spark\n")
    up = await at_home.spawn("up", "--port", "0", "--no-web", "--no-agent")
    port, nick = place(await up.until("say hello"))
    note = json.loads(note_of_holder(at_home.home / "run" / "spark.pid") or "{}")
    database = Path(note["data_dir"]) / "history" / "history.db"
    async with locked(database), registered(port, f"{nick}2") as person:
        await person.join("#general")
        person.send("PRIVMSG #general :this waits for the disk")
        await person.sync()
        os.kill(note["pid"], signal.SIGTERM)
        await person.expect("ERROR")
        os.kill(note["pid"], signal.SIGTERM)  # the second one ends it at once
        assert await up.ended() == 0
    assert "spark has stopped.\n" in up.said and "died" not in up.said and "up again" not in up.said


async def test_what_the_readme_has_a_newcomer_type_is_answered(at_home: Shell) -> None:
    """The lines for a client without a client, then those to the agent, as they stand there; and all have one nick."""
    page = (ROOT / "README.md").read_text(encoding="utf-8").partition("## The first five minutes")[2]
    by_hand = re.search(r"^\$ nc 127\.0\.0\.1 6667\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    to_say = re.search(r"^```\n(@spark-guide .*?)^```", page, re.MULTILINE | re.DOTALL)
    assert by_hand and to_say
    up = await at_home.run("up", "--name", "spark", "--port", "0", "--no-web", "-d")
    assert up.code == 0, up.err
    port, nick = place(up.out)
    assert (
        f"weechat 'irc://{nick}@127.0.0.1:6667/#general'" in page and f"irssi -c 127.0.0.1 -p 6667 -n {nick}\n" in page
    )
    try:
        async with connected(port) as person:
            person.send_raw(by_hand[1].encode())
            assert (await person.expect("900")).params[2] == "ori", "the kernel says whose program it is"
            assert (await heard(person, "Hello spark-ori! I am spark-guide"))[0] == GUIDE
            for line in to_say[1].splitlines()[1:]:
                person.send(f"PRIVMSG #general :{line}")
            await heard(person, "[QUESTION] May I write hello.txt")
            assert "`@spark-guide yes` in the room" in page
            person.send("PRIVMSG #general :@spark-guide yes")
            assert (await heard(person, "You said yes, so hello.txt is in"))[0] == GUIDE
    finally:
        assert (await at_home.run("down")).code == 0
