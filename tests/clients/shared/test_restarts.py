"""A daemon that is killed or stopped loses nothing that was addressed to its agent."""

import asyncio
import os
from pathlib import Path

import pytest

from culture.clients.shared.notes import Notes
from culture.clients.shared.records import Records
from culture.config import paths
from culture.lib.process.orphans import carrying
from culture.protocol.vocabulary import Exit
from culture.server.ircd import IRCd
from tests.clients.shared.test_daemon import NICK, answered, held
from tests.support.agents import DaemonProcess, agents_yaml, kill_watchdog, playbook, process, prompts
from tests.support.client import registered
from tests.support.proxy import proxied
from tests.support.waiting import until


def token() -> str:
    records = Records(paths.inbox_file(NICK))
    try:
        return Notes(records).token or ""
    finally:
        records.close()


def is_alive(pid: int) -> bool:
    try:
        return b"State:\tZ" not in Path(f"/proc/{pid}/status").read_bytes()
    except FileNotFoundError:
        return False


def is_detached(pid: int) -> bool:
    """Whether it is a program that an agent has put into a session of its own."""
    try:
        return os.getsid(pid) == pid and Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep")
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.fault("E6", "E7")
@pytest.mark.requirement("F01", "L16", "L17")
async def test_killed_in_a_turn_it_answers_after_the_next_start_and_reaps_what_was_left(ircd: IRCd, home: Path) -> None:
    work = home / "work"
    rules = [
        {"when": "repeated", "steps": [{"say": "{count}: {text}"}]},
        {"when": "work", "steps": [{"run": "(setsid sleep 600 &) ; sleep 600"}]},
    ]
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori", "message-tags echo-message") as ori:
        await ori.join("#general")
        async with process(NICK, home) as daemon:
            await ori.expect("JOIN", "#general")
            ori.send(f"PRIVMSG #general :@{NICK} work")
            msgid = (await ori.expect("PRIVMSG", "#general")).tags["msgid"]
            # What is not yet in a session of its own ends with the agent.
            await until(lambda: any(map(is_detached, carrying(token()))))
            kill_watchdog(daemon.pid)
            await daemon.kill()
            left = carrying(token())
            assert left != []
            # Same program, same folder, but not ours.
            stranger = await asyncio.create_subprocess_exec("sleep", "600", cwd=work)
            await daemon.start()
            assert await answered(ori, "#general") == "2: work"
            assert stranger.returncode is None
            stranger.kill()
            await stranger.wait()
            assert not set(left) & set(carrying(token()))
            assert not any(map(is_alive, left))
            assert f"msgid: {msgid}" in prompts(work)[1]
            assert "repeated: it may have reached you before" in prompts(work)[1]
            assert await daemon.stop() == 0


@pytest.mark.fault("E1")
async def test_killed_between_saying_and_knowing_that_it_was_said_it_says_it_once(ircd: IRCd, home: Path) -> None:
    async with registered(ircd.port, "spark-ori") as ori, proxied(ircd.port) as line:
        await ori.join("#general")
        rules = [{"when": "work", "steps": held(home)}]
        agents_yaml(home, line.port, {"nick": NICK, "playbook": playbook(home, rules)})
        async with process(NICK, home) as daemon:
            await ori.expect("JOIN", "#general")
            ori.send(f"PRIVMSG #general :@{NICK} work")
            await until(lambda: prompts(home / "work") != [])
            # The server gets all that the daemon says, and the daemon learns nothing of that.
            line.drop("client")
            (home / "go").touch()
            assert await answered(ori, "#general") == "done"
            await daemon.kill()
            await ori.expect("QUIT")
            line.heal()
            await daemon.start()
            await ori.expect("JOIN", "#general")
            ori.send(f"PRIVMSG #general :@{NICK} next")
            assert await answered(ori, "#general") == "heard: next"
            assert await daemon.stop() == 0


@pytest.mark.fault("E3")
async def test_a_wrong_configuration_ends_it_for_good(ircd: IRCd, home: Path) -> None:
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": str(home / "nowhere.yaml")})
    daemon = DaemonProcess(NICK, home)
    await daemon.start()
    assert await daemon.ended() == Exit.WRONG_CONFIGURATION
    assert "nowhere.yaml" in daemon.log.read_text(encoding="utf-8")


@pytest.mark.fault("E3")
async def test_instructions_that_are_not_there_are_a_wrong_configuration(ircd: IRCd, home: Path) -> None:
    agents_yaml(home, ircd.port, {"nick": NICK, "instructions_file": str(home / "nowhere.md")})
    daemon = DaemonProcess(NICK, home)
    await daemon.start()
    assert await daemon.ended() == Exit.WRONG_CONFIGURATION
    assert f"instructions_file: {home / 'nowhere.md'} is not there" in daemon.log.read_text(encoding="utf-8")


@pytest.mark.fault("E3")
async def test_a_directory_that_is_not_there_is_a_wrong_configuration(ircd: IRCd, home: Path) -> None:
    agents_yaml(home, ircd.port, {"nick": NICK, "directory": str(home / "nowhere")})
    daemon = DaemonProcess(NICK, home)
    await daemon.start()
    assert await daemon.ended() == Exit.WRONG_CONFIGURATION
    assert "is not there; make it, or correct it" in daemon.log.read_text(encoding="utf-8")


@pytest.mark.requirement("F13")
async def test_the_same_agent_is_not_run_twice(ircd: IRCd, home: Path) -> None:
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        async with process(NICK, home) as daemon:
            await ori.expect("JOIN", "#general")
            second = DaemonProcess(NICK, home)
            await second.start()
            assert await second.ended() == Exit.FAILED
            assert f"{NICK} is running already" in daemon.log.read_text(encoding="utf-8")
            assert paths.pid_file(NICK).exists()
            assert await daemon.stop() == 0
            assert not paths.pid_file(NICK).exists()


@pytest.mark.fault("C12")
async def test_what_it_writes_is_for_its_owner_alone(ircd: IRCd, home: Path) -> None:
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        async with process(NICK, home):
            await ori.expect("JOIN", "#general")
            ori.send(f"PRIVMSG #general :@{NICK} hello")
            await answered(ori, "#general")
            for file in (paths.inbox_file(NICK), paths.agent_socket(NICK), paths.pid_file(NICK)):
                assert os.stat(file).st_mode & 0o777 == 0o600
            for folder in (paths.inbox_file(NICK).parent, paths.pid_file(NICK).parent):
                assert os.stat(folder).st_mode & 0o777 == 0o700
            for file in paths.inbox_file(NICK).parent.iterdir():
                assert os.stat(file).st_mode & 0o777 == 0o600, file


@pytest.mark.fault("E3")
async def test_a_token_that_no_account_has_is_a_wrong_configuration(ircd: IRCd, home: Path) -> None:
    """A server that refuses the login once refuses it for ever: nobody is served by trying again."""
    agents_yaml(home, ircd.port, {"nick": NICK})
    secret = paths.secret_file(NICK)
    secret.parent.mkdir(mode=0o700)
    secret.write_text("not-a-token-of-any-account\n", encoding="utf-8")
    daemon = DaemonProcess(NICK, home)
    await daemon.start()
    assert await daemon.ended() == Exit.WRONG_CONFIGURATION
    assert "not-a-token" not in daemon.log.read_text(encoding="utf-8")
