"""``culture up`` and the small commands."""

import re
import signal
import stat
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from culture.cli.app import app
from culture.cli.connect import example_nick, how_to_connect
from culture.config.model import Limits, Listen, ServerConfig
from culture.protocol.names import valid_local_nick
from tests.cli.shell import Shell, said_port
from tests.support.client import registered


async def test_up_says_how_to_connect_and_it_works(shell: Shell) -> None:
    shell.environment["LOGNAME"] = "ori"
    up = await shell.spawn("up", "--name", "spark", "--port", "0")
    said = await up.until("say hello")
    found = re.search(r"irssi -c (\S+) -p (\d+) -n (\S+)", said)
    assert found and found[1] == "127.0.0.1" and found[3] == "spark-ori"
    assert f"weechat 'irc://spark-ori@127.0.0.1:{found[2]}/#general'" in said
    async with registered(int(found[2]), found[3]) as ori:
        assert await ori.join("#general")
        up.signal(signal.SIGINT)
        assert (await ori.ended())[-1].verb == "ERROR"
    assert await up.ended() == 0
    assert up.said.endswith("spark has stopped.\n") and "Traceback" not in up.said


async def test_status_names_no_log_for_what_prints_to_a_terminal(shell: Shell) -> None:
    up = await shell.spawn("up", "--name", "spark", "--port", "0")
    await up.until("say hello")
    status = await shell.run("server", "status", "--name", "spark")
    assert status.code == 0 and "spark.log" not in status.out
    up.signal(signal.SIGINT)
    assert await up.ended() == 0


async def test_up_ends_with_its_terminal(shell: Shell) -> None:
    up = await shell.spawn("up", "--name", "spark", "--port", "0")
    await up.until("say hello")
    up.signal(signal.SIGHUP)
    assert await up.ended() == 0


@pytest.mark.requirement("A12")
async def test_up_writes_the_name_down_once(shell: Shell) -> None:
    """A12: what was derived from the host is the name from then on."""
    file = shell.home / "culture.yaml"
    for _ in range(2):
        up = await shell.spawn("up", "--port", "0")
        await up.until("say hello")
        up.signal(signal.SIGINT)
        await up.ended()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        name = re.findall(r"^name: (.*)$", file.read_text(), re.MULTILINE)
        assert len(name) == 1 and f"{name[0]} is up" in up.said
        file.write_text("name: renamed\n")
    assert "renamed is up" in up.said


async def test_up_beside_a_running_server_only_says_how_to_connect(shell: Shell) -> None:
    started = await shell.run("server", "start", "--name", "spark", "--port", "0")
    up = await shell.run("up", "--name", "spark")
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
        limits=Limits(),
    )
    said = how_to_connect(settings, ())
    assert "weechat 'irc6://ori@[::1]:7000/#tea'" in said and "-n ori\n" in said
    assert "it asks for a password" in said and "s3cret" not in said


async def test_check_reads_both_files(shell: Shell) -> None:
    assert (await shell.run("config", "check")).code == 0
    shell.write("name: spark\n")
    shell.write("agents:\n  - nick: spark-culture\n", "agents.yaml")
    checked = await shell.run("config", "check")
    assert checked.code == 78
    assert "culture.yaml: fine" in checked.out
    assert "agents.yaml:2: agents[0].directory: is missing" in checked.err


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
