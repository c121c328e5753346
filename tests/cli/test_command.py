"""``culture server``: in the background, found again, stopped, and never mistaken for another."""

import asyncio
import os
import signal
import socket
import stat
import sys

import pytest

from tests.cli.shell import Shell
from tests.support.client import connected, registered
from tests.support.ports import reserved
from tests.support.waiting import PATIENCE, until


@pytest.fixture
def shell(shell: Shell) -> Shell:
    """A terminal on a machine with everything that a server can load."""
    shell.has_model = True
    return shell


async def killed(shell: Shell) -> None:
    """kill -9 of the server; a process that waits for its disk is gone only after that."""
    note = shell.note()
    assert note is not None
    os.kill(note.pid, signal.SIGKILL)
    await until(lambda: shell.note() is None)


async def test_start_returns_when_clients_can_connect(shell: Shell) -> None:
    started = await shell.run("server", "start", "--name", "spark", "--port", "0")
    assert (started.code, started.err) == (0, "")
    async with registered(started.port, "spark-ori") as ori:
        assert await ori.join("#general")
    log = shell.home / "log" / "spark.log"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


@pytest.mark.requirement("A12")
async def test_the_name_in_the_file_is_the_server_s(shell: Shell) -> None:
    """A12"""
    shell.write("name: thor.local\nlisten: [{port: 0}]\n")
    started = await shell.run("server", "start")
    async with connected(started.port) as client:
        client.send("NICK spark-ori")
        refusal = await client.expect("432")
        assert refusal.source == "thor.local"
        await client.register("thor-ori")


async def test_status_and_stop_find_the_server(shell: Shell) -> None:
    before = await shell.run("server", "status", "--name", "spark")
    assert (before.code, before.out.split(".")[0]) == (1, "spark is not running")
    started = await shell.run("server", "start", "--name", "spark", "--port", "0")
    note = shell.note()
    assert note is not None
    during = await shell.run("server", "status", "--name", "spark")
    assert during.code == 0
    assert f"spark is running (pid {note.pid}) since" in during.out and f"127.0.0.1:{started.port}\n" in during.out
    assert f"log         {shell.home / 'log' / 'spark.log'}\n" in during.out
    stopped = await shell.run("server", "stop", "--name", "spark")
    assert (stopped.code, stopped.out) == (0, "spark has stopped.\n")
    assert not shell.pid_file().exists()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", started.port)
    again = await shell.run("server", "stop", "--name", "spark")
    assert (again.code, again.out) == (0, "spark is not running.\n")


async def test_who_asks_for_a_server_that_does_not_run_hears_of_others(shell: Shell) -> None:
    await shell.serve("--name", "spark")
    for words in (("server", "status", "--name", "thor"), ("server", "stop", "--name", "thor")):
        said = await shell.run(*words)
        assert "thor is not running." in said.out and "spark (`--name spark`)" in said.out
    assert "`culture server start --name thor`" in (await shell.run("server", "status", "--name", "thor")).out


async def test_status_does_not_believe_the_file_of_a_dead_server(shell: Shell) -> None:
    await shell.run("server", "start", "--name", "spark", "--port", "0")
    await killed(shell)
    gone = await shell.run("server", "status", "--name", "spark")
    assert shell.pid_file().exists() and gone.code == 1 and "spark is not running" in gone.out


async def test_restart_keeps_the_options(shell: Shell) -> None:
    with reserved() as port:
        await shell.run("server", "start", "--name", "spark", "--port", str(port))
        first = shell.note()
        restarted = await shell.run("server", "restart", "--name", "spark")
        second = shell.note()
    assert first is not None and second is not None
    assert (restarted.code, restarted.port) == (0, port)
    assert second.pid != first.pid and second.options == first.options


async def test_restart_leaves_the_server_alone_when_the_configuration_is_wrong(shell: Shell) -> None:
    file = shell.write("name: spark\nlisten: [{port: 0}]\n")
    await shell.run("server", "start")
    before = shell.note()
    file.write_text("name: spark\nlimits: {nick_lenght: 3}\n")
    refused = await shell.run("server", "restart")
    assert refused.code == 78 and "did you mean nick_length?" in refused.err
    assert before is not None and shell.note() == before


async def test_restart_starts_what_does_not_run(shell: Shell) -> None:
    assert (await shell.run("server", "restart", "--name", "spark", "--port", "0")).code == 0
    assert shell.note() is not None


async def test_a_server_of_that_name_is_not_started_twice(shell: Shell) -> None:
    await shell.run("server", "start", "--name", "spark", "--port", "0")
    first = shell.note()
    assert first is not None
    for how in ([], ["--foreground"]):
        second = await shell.run("server", "start", "--name", "spark", "--port", "0", *how)
        assert second.code == 1
        assert f"spark is running already (pid {first.pid})" in second.err
    assert shell.note() == first


@pytest.mark.fault("B14")
async def test_a_second_server_on_the_same_data_is_refused(shell: Shell) -> None:
    """B14: it names the first, which goes on."""
    started = await shell.run("server", "start", "--name", "spark", "--port", "0")
    first = shell.note()
    assert first is not None
    second = await shell.run("server", "start", "--name", "thor", "--port", "0", "--data-dir", first.data_dir)
    assert second.code == 1
    assert f"{first.data_dir} is in use by another server (pid {first.pid})" in second.err
    assert "--data-dir" in second.err and "culture server stop --name" in second.err
    assert shell.note("thor") is None
    async with registered(started.port, "spark-ori") as ori:
        assert await ori.sync() == []


@pytest.mark.fault("B15")
async def test_a_pid_file_that_a_crash_left_is_recovered(shell: Shell) -> None:
    """B15: kill -9, then a start as if nothing had been."""
    await shell.run("server", "start", "--name", "spark", "--port", "0")
    first = shell.note()
    assert first is not None
    await killed(shell)
    started = await shell.run("server", "start", "--name", "spark", "--port", "0")
    second = shell.note()
    assert started.code == 0 and second is not None and second.pid != first.pid
    async with registered(started.port, "spark-ori") as ori:
        assert await ori.sync() == []


@pytest.mark.fault("B15")
async def test_a_recycled_pid_is_never_signalled(shell: Shell) -> None:
    """B15: the file says the pid of a process that is none of ours."""
    bystander = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE)
    try:
        note = {"pid": bystander.pid, "since": 1.0, "data_dir": "/srv", "shutdown_timeout": 1.0}
        pid_file = shell.pid_file()
        pid_file.parent.mkdir(parents=True)
        pid_file.write_text(str(note | {"options": [], "addresses": []}).replace("'", '"'))
        assert (await shell.run("server", "status", "--name", "spark")).code == 1
        stopped = await shell.run("server", "stop", "--name", "spark")
        assert stopped.out == "spark is not running.\n"
        assert (await shell.run("server", "start", "--name", "spark", "--port", "0")).code == 0
        assert (await shell.run("server", "stop", "--name", "spark")).out == "spark has stopped.\n"
        assert bystander.returncode is None
    finally:
        await bystander.communicate(b"\n")
    assert bystander.returncode == 0, "it ended by itself, not by a signal"


@pytest.mark.fault("B15")
async def test_the_file_of_a_living_server_is_never_removed(shell: Shell) -> None:
    """B15: neither by a second start nor by one that fails."""
    await shell.run("server", "start", "--name", "spark", "--port", "0")
    before = shell.pid_file().read_text()
    await shell.run("server", "start", "--name", "spark", "--port", "0", "--foreground")
    await shell.run("server", "status", "--name", "spark")
    assert shell.pid_file().read_text() == before


@pytest.mark.fault("B16")
@pytest.mark.parametrize("how", [[], ["--foreground"]])
async def test_a_taken_port_is_told_with_its_owner_and_the_next_step(shell: Shell, how: list[str]) -> None:
    """B16"""
    with socket.create_server(("127.0.0.1", 0)) as ours:
        port = ours.getsockname()[1]
        refused = await shell.run("server", "start", "--name", "spark", "--port", str(port), *how)
    assert refused.code == 1
    assert f"127.0.0.1 port {port} is taken by" in refused.err and f"(pid {os.getpid()})" in refused.err
    assert "--port" in refused.err and "culture server status" in refused.err
    assert "Traceback" not in refused.err
    assert shell.note() is None


async def test_an_address_of_another_machine_is_refused(shell: Shell) -> None:
    shell.write("trusted_network: true\n")
    refused = await shell.run("server", "start", "--name", "spark", "--host", "192.0.2.1", "--port", "0")
    assert refused.code == 1 and "this machine has no such address" in refused.err


@pytest.mark.parametrize("how", [[], ["--foreground"]])
async def test_a_wrong_configuration_ends_with_78(shell: Shell, how: list[str]) -> None:
    file = shell.write("name: spark\nchannels:\n  - #general\n")
    refused = await shell.run("server", "start", *how)
    assert refused.code == 78
    assert refused.err.startswith(f"{file}:3: channels[0]: ") and 'write "#general" with the quotes' in refused.err


async def test_a_wrong_option_is_a_usage_error(shell: Shell) -> None:
    refused = await shell.run("server", "start", "--port", "70000")
    assert refused.code == 2 and "--port" in refused.err


async def test_config_shows_values_and_their_sources(shell: Shell) -> None:
    file = shell.write("name: spark\npassword: s3cret\n")
    shown = await shell.run("server", "config", "--port", "7000")
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in shown.out.splitlines()}
    assert rows["name"] == ["spark", f"{file}:1"]
    assert rows["password"] == ["******", f"{file}:2"]
    assert rows["listen[0].port"] == ["7000", "option --port"]
    assert rows["limits.nick_length"] == ["32", "default"]
    assert rows["data_dir"] == [str(shell.home / "data" / "spark"), "environment CULTURE_HOME"]


async def test_a_start_that_is_interrupted_leaves_nothing_locked(shell: Shell) -> None:
    """The lock is the kernel's: a killed start is followed by one that works."""
    process = await shell.spawn("server", "start", "--foreground", "--name", "spark", "--port", "0")
    await process.kill()
    process, port = await shell.serve("--name", "spark")
    async with asyncio.timeout(PATIENCE), registered(port, "spark-ori") as ori:
        assert await ori.sync() == []
