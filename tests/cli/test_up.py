"""``culture up`` and the small commands."""

import asyncio
import os
import re
import signal
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import typer

from culture.cli.app import app
from culture.cli.local_servers import example_nick, how_to_connect, path_hint
from culture.cli.server import pid_file
from culture.cli.team import up as team_down
from culture.cli.team.select_team import TEAM
from culture.cli.up import foreground
from culture.cli.up.shutdown import Shutdown
from culture.config.model import Listen, ServerConfig, ServerLimits
from culture.lib.process.children import Interrupts
from culture.orchestrator.repository.locks import FILE
from culture.protocol.names import valid_local_nick
from culture.protocol.vocabulary import UserClass
from culture.server.auth.accounts import new_account
from tests.cli.shell import ROOT, Shell, said_port
from tests.support.client import registered


async def test_up_says_how_to_connect_and_it_works(shell: Shell) -> None:
    shell.environment["LOGNAME"] = "ori"
    up = await shell.spawn("up", "--name", "spark", "--port", "0", "--no-agent", "--no-web")
    said = await up.until("say hello")
    found = re.search(r"irssi -c (\S+) -p (\d+) -n (\S+)", said)
    assert found and found[1] == "127.0.0.1" and found[3] == "spark-ori"
    assert f"weechat 'irc://spark-ori@127.0.0.1:{found[2]}/#general'" in said
    async with registered(int(found[2]), found[3]) as ori:
        # The screen of `up` is on IRC as the same person, who may be in the room already.
        await ori.join("#general")
        there = await ori.ask("NAMES #general")
        assert any(line.verb == "353" and "spark-ori" in line.params[-1] for line in there)
        up.signal(signal.SIGINT)
        assert (await ori.ended())[-1].verb == "ERROR"
    assert await up.ended() == 0
    assert up.said.endswith("spark has stopped.\n") and "Traceback" not in up.said


async def test_status_names_no_log_for_what_prints_to_a_terminal(shell: Shell) -> None:
    await shell.serve("--name", "spark")
    status = await shell.run("server", "status", "--name", "spark")
    assert status.code == 0 and "spark.log" not in status.out


async def test_up_ends_with_its_terminal(shell: Shell) -> None:
    up = await shell.spawn("up", "--name", "spark", "--port", "0", "--no-agent", "--no-web")
    await up.until("say hello")
    up.signal(signal.SIGHUP)
    assert await up.ended() == 0


def test_up_is_interrupted_in_order_also_while_its_loop_is_being_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C right after what to type was said; half of a loop would end with a traceback."""
    make = asyncio.new_event_loop

    def interrupted() -> asyncio.AbstractEventLoop:
        signal.raise_signal(signal.SIGINT)
        return make()

    monkeypatch.setenv("CULTURE_HOME", str(tmp_path))
    note = pid_file.ServerNote(os.getpid(), 0.0, "", 1.0)
    monkeypatch.setattr(pid_file, "running", lambda name: note)
    monkeypatch.setattr(foreground, "plain_listener", lambda *given: None)
    monkeypatch.setattr("asyncio.events.new_event_loop", interrupted)
    try:
        with foreground.interruptible(Interrupts()):
            foreground.stay_in_terminal(ServerConfig(name="spark"), in_terminal=False)
    except KeyboardInterrupt:
        pytest.fail("the making of the loop was broken off")


def test_a_second_signal_does_not_break_off_how_up_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever presses Ctrl-C twice, or closes the terminal as well, leaves nothing running."""
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path))
    note = pid_file.ServerNote(os.getpid(), 0.0, "", 1.0)
    monkeypatch.setattr(pid_file, "running", lambda name: note)
    monkeypatch.setattr(foreground, "plain_listener", lambda *given: signal.raise_signal(signal.SIGINT))
    with foreground.interruptible(Interrupts()):
        foreground.stay_in_terminal(ServerConfig(name="spark"), in_terminal=False)
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
        assert all(callable(handler) and handler is not signal.default_int_handler for handler in handlers), handlers
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.raise_signal(number)


async def test_up_ends_with_a_terminal_that_tells_another_program_alone(shell: Shell) -> None:
    """A terminal that was opened for `make up` tells make, and make waits for us."""
    ours, its = os.openpty()
    up = await shell.spawn("up", "--name", "spark", "--port", "0", "--no-agent", "--no-web", given=its)
    os.close(its)
    await up.until("say hello")
    os.close(ours)
    assert await up.ended() == 0 and "Traceback" not in up.said


@pytest.mark.requirement("A12")
async def test_up_writes_the_name_down_once(shell: Shell) -> None:
    """A12: what was derived from the host is the name from then on."""
    file = shell.home / "culture.yaml"
    for _ in range(2):
        up = await shell.spawn("up", "--port", "0", "--no-agent", "--no-web")
        await up.until("say hello")
        up.signal(signal.SIGINT)
        await up.ended()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        name = re.findall(r"^name: (.*)$", file.read_text(), re.MULTILINE)
        assert len(name) == 1 and f"{name[0]} is up" in up.said
        file.write_text("name: renamed\n")
    assert "renamed is up" in up.said


def test_a_command_that_the_shell_does_not_find_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = Path(sys.executable).parent
    assert f'export PATH="{folder}:$PATH"' in path_hint()
    monkeypatch.setenv("PATH", str(folder))
    assert path_hint() == ""


async def test_the_name_and_the_port_of_the_first_time_stay(shell: Shell) -> None:
    _, port = await shell.serve("--name", "other")
    first = await shell.run("up", "--name", "thor", "--port", str(port), "--no-agent", "--no-web")
    assert first.code == 1 and "this server is called thor" in first.out
    again = await shell.run("up", "--no-agent", "--no-web")
    assert again.code == 1 and f"port {port} of 127.0.0.1 is used" in again.err
    status = await shell.run("server", "status")
    assert "thor" in status.out + status.err


async def test_a_wrong_choice_is_not_written_down(shell: Shell) -> None:
    up = await shell.run("up", "--name", "not a name", "--no-agent", "--no-web")
    assert up.code == 78 and not (shell.home / "culture.yaml").exists()


async def test_agents_of_another_server_are_told(shell: Shell) -> None:
    agent = "{nick: thor-x, agent: scripted, directory: /, channels: ['#a']}"
    shell.write(f"agents: [{agent}]\n", "agents.yaml")
    up = await shell.run("up", "--name", "spark", "--port", "0", "--no-web", "-d")
    assert "belong to thor" in up.out and "CULTURE_HOME=~/spark culture up --name spark" in up.out, up.err
    assert (await shell.run("down")).code == 0


async def test_up_beside_a_running_server_only_says_how_to_connect(shell: Shell) -> None:
    started = await shell.run("server", "start", "--name", "spark", "--port", "0")
    up = await shell.run("up", "--name", "spark", "--no-agent", "--no-web")
    assert up.code == 0 and "spark is up already" in up.out
    assert said_port(up.out) == started.port


@pytest.mark.parametrize("login", ["ori", "Ori.Nachum", "o r i", "_ori", "server", "", "é", "x" * 99])
def test_the_example_nick_is_one_the_server_accepts(login: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: login)
    settings = ServerConfig(name="spark.local")
    assert valid_local_nick(example_nick(settings), "spark", settings.limits.nick_length)


def test_without_a_login_name_there_is_still_a_nick(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise OSError("no such user")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert example_nick(ServerConfig(name="spark")) == "spark-me"


def test_what_to_type_follows_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ori")
    settings = ServerConfig(
        name="My.Server",
        nick_prefix="off",
        listen=(Listen(host="::", port=7000),),
        trusted_network=True,
        channels=("#tea",),
        password="s3cret",
        limits=ServerLimits(),
    )
    said = how_to_connect(settings, ())
    assert "weechat 'irc6://ori@[::1]:7000/#tea'" in said and "-n ori\n" in said
    assert "it asks for a password" in said and "s3cret" not in said


def test_the_lines_to_type_have_the_nick_of_the_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any other nick is nobody's: agents would not listen to it."""
    monkeypatch.setattr("getpass.getuser", lambda: "root")
    settings = ServerConfig(name="spark")
    mia = new_account("mia", UserClass.HUMAN, user="0")
    said = how_to_connect(settings, (), mia)
    assert "irc://spark-mia@" in said and "-n spark-mia\n" in said and "NICK spark-mia\\r" in said
    assert "root" not in said and said.endswith("/join #general first).")
    by_password = how_to_connect(settings, (), new_account("mia", UserClass.HUMAN))
    assert by_password.endswith("Log in as mia: by SASL, or with mia:<your password> as the server's password.")
    unknown = how_to_connect(settings, ())
    assert "spark-root is a person" in unknown and "`culture account add root --user root`" in unknown


async def test_check_reads_both_files(shell: Shell) -> None:
    assert (await shell.run("config", "check")).code == 0
    shell.write("name: spark\n")
    shell.write("agents:\n  - nick: spark-culture\n", "agents.yaml")
    checked = await shell.run("config", "check")
    assert checked.code == 78
    assert "culture.yaml: no errors" in checked.out
    assert "agents.yaml:2: agents[0].directory: is missing" in checked.err


async def test_check_says_who_may_read_secrets(shell: Shell) -> None:
    shell.write("name: spark\n").chmod(0o644)
    assert not (await shell.run("config", "check")).err
    file = shell.write("name: spark\nlinks:\n  - {name: thor, secret: correct-horse-battery}\n")
    checked = await shell.run("config", "check")
    assert checked.code == 0 and f"chmod 600 {file}" in checked.err and "correct-horse" not in checked.err
    file.chmod(0o600)
    assert not (await shell.run("config", "check")).err


async def test_version_and_help(shell: Shell) -> None:
    assert re.fullmatch(r"culture \d+\.\d+\.\d+\n", (await shell.run("--version")).out)
    assert "culture up" in (await shell.run("--help")).out
    assert (await shell.run("server", "start", "-h")).out == (await shell.run("server", "start", "--help")).out
    assert (await shell.run("nonsense")).code == 2


def all_commands(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    yield words, command
    for name, nested in getattr(command, "commands", {}).items():
        yield from all_commands(nested, f"{words} {name}")


def test_every_command_and_option_has_a_friendly_word() -> None:
    for words, command in all_commands(typer.main.get_command(app), "culture"):
        assert command.help and command.help.split("\n")[0].endswith("."), words
        for parameter in command.params:
            assert parameter.help, f"{words} {parameter.name}"


async def test_a_home_folder_that_cannot_be_made_is_told(shell: Shell) -> None:
    shell.environment["CULTURE_HOME"] = "/proc/nowhere"
    done = await shell.run("up", "--name", "spark", "--no-agent", "--no-web", "-d")
    assert done.code == 1 and "Traceback" not in done.err
    assert "/proc/nowhere: No such file" in done.err and "set CULTURE_HOME to use another folder" in done.err


@pytest.mark.parametrize("module", ["dataclasses", "typer"])
async def test_ctrl_c_while_it_is_loaded_ends_it_quietly(shell: Shell, module: str) -> None:
    """The signal comes from within an import."""
    hooks = shell.folder / "hooks"
    hooks.mkdir()
    (hooks / f"{module}.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
    shell.environment["PYTHONPATH"] = os.pathsep.join((str(hooks), str(ROOT)))
    done = await shell.run("--version")
    assert (done.code, done.err) == (-signal.SIGINT, "")


HOLDS = """
import json, os, pathlib, signal, sys
from culture.lib.files import FileLock
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
FileLock(pathlib.Path(sys.argv[1])).acquire(json.dumps({"pid": os.getpid(), "team": "demo"}))
print("held", flush=True)
sys.stdin.read()
"""


@asynccontextmanager
async def silent_team(home: Path, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The orchestrator of a team that answers nobody."""
    folder = home / "team" / "demo"
    folder.mkdir(parents=True)
    (folder / TEAM).write_text("")
    silent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOLDS, str(folder / FILE), *words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert silent.stdout and await silent.stdout.readline() == b"held\n"
        yield silent
    finally:
        with suppress(ProcessLookupError):
            silent.kill()
        await silent.wait()


async def test_a_team_that_does_not_answer_is_ended_by_a_signal(shell: Shell) -> None:
    assert (await shell.run("server", "start", "--name", "spark", "--port", "0")).code == 0
    async with silent_team(shell.home):
        down = await shell.run("down")
    assert "The team demo has stopped." in down.out and "spark has stopped." in down.out and down.code == 0


async def test_a_team_that_stays_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path))
    monkeypatch.setattr(team_down, "GRACE", 0.1)
    async with silent_team(tmp_path, "deaf") as silent:
        end = Shutdown()
        await asyncio.to_thread(end.teams)
        await asyncio.to_thread(end.look)
        assert f"the orchestrator (pid {silent.pid}) does not stop" in capsys.readouterr().err
        assert any(f"the team demo (pid {silent.pid})" in line for line in end.left)
