"""``culture start``, ``culture stop`` and ``culture restart``."""

import os
import re
import signal
import threading
from pathlib import Path

import pytest

from culture.cli.agents import lifecycle as starting
from culture.cli.agents.select_agents import resolve_nick
from culture.clients.shared import ending
from culture.lib.process.orphans import carrying
from tests.cli.agents.conftest import NICK, Machine, answer
from tests.support.agents import kill_watchdog, playbook
from tests.support.client import registered
from tests.support.waiting import PATIENCE, until


@pytest.mark.requirement("L01", "F13")
async def test_one_agent_is_started_answers_and_is_stopped(machine: Machine) -> None:
    """L01, F13: the command returns when the agent is there; the file names its process."""
    machine.agents({"nick": NICK})
    async with registered(machine.port, "spark-ori") as ori:
        await ori.join("#general")
        started = await machine.run("start", NICK)
        assert started.code == 0, started.err
        note = machine.daemon()
        assert note is not None and note.ready and f"{NICK} is running (pid {note.pid})" in started.out
        assert os.getsid(note.pid) == note.pid
        assert f"{NICK} is ready" in (machine.home / "log" / f"{NICK}.log").read_text()
        ori.send(f"PRIVMSG #general :@{NICK} ping")
        assert await answer(ori) == "pong"
        again = await machine.run("start", NICK)
        assert again.code == 0 and f"{NICK} is running already (pid {note.pid})" in again.out
        stopped = await machine.run("stop", NICK)
        assert stopped.code == 0 and stopped.out == f"{NICK} has stopped.\n"
        assert machine.daemon() is None and machine.token() is None
        assert "is not running" in (await machine.run("stop", NICK)).out


@pytest.mark.requirement("L02")
async def test_all_are_started_and_one_that_cannot_leaves_the_others(machine: Machine) -> None:
    """L02: each a process of its own; the command ends; a crash of one is nothing to the others."""
    nicks = [f"spark-a{number}" for number in range(6)]
    machine.agents(*({"nick": nick} for nick in nicks), {"nick": "spark-bad", "directory": "/nowhere"})
    started = await machine.run("start", "--all")
    assert started.code == 78
    assert "spark-bad did not start (exit code 78)" in started.err and "is not there; make it" in started.err
    notes = [machine.daemon(nick) for nick in nicks]
    pids = {note.pid for note in notes if note is not None and note.ready}
    assert len(pids) == len(nicks)
    victim = next(iter(pids))
    os.kill(victim, signal.SIGKILL)
    await until(lambda: len([nick for nick in nicks if machine.daemon(nick)]) == len(nicks) - 1)
    stopped = await machine.run("stop", "--all")
    assert stopped.code == 0 and stopped.out.count("has stopped.") == len(nicks) - 1
    assert not any(machine.daemon(nick) for nick in nicks)


@pytest.mark.fault("E25")
def test_only_a_few_start_at_the_same_time() -> None:
    """E25: thirty do not stand on each other's feet."""
    lock, now, most = threading.Lock(), 0, 0
    full = threading.Barrier(starting.AT_ONCE, timeout=PATIENCE)

    def begin(nick: str) -> int:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        full.wait()
        with lock:
            now -= 1
        return 0

    nicks = [f"spark-a{number}" for number in range(starting.AT_ONCE * 5)]
    assert starting.run_parallel(begin, nicks) == [0] * len(nicks)
    assert most <= starting.AT_ONCE


@pytest.mark.fault("E3")
async def test_a_wrong_configuration_says_what_is_wrong_and_stays_ended(machine: Machine) -> None:
    """E3: exit 78 passes through, so that nobody starts it again and again."""
    machine.agents({"nick": NICK, "playbook": "/nowhere.yaml"})
    started = await machine.run("start", NICK)
    assert started.code == 78 and "nowhere.yaml" in started.err
    assert machine.daemon() is None
    assert (await machine.run("start", "--foreground", NICK)).code == 78
    machine.agents({"nick": NICK, "model": 5})
    wrong = await machine.run("start", NICK)
    assert wrong.code == 78 and re.search(r"agents\.yaml:\d+: agents\[0\]\.model", wrong.err)


async def test_what_is_unknown_is_said_with_the_nearest(machine: Machine) -> None:
    machine.agents({"nick": NICK})
    for words in (("start", "spark-be"), ("stop", "spark-be"), ("status", "spark-be"), ("pause", "spark-be")):
        unknown = await machine.run(*words)
        assert unknown.code == 2 and f"did you mean {NICK}?" in unknown.err, words
    assert (await machine.run("start")).code == 2


async def test_an_agent_is_called_by_its_name_alone_where_one_has_it(machine: Machine) -> None:
    """As `@bee` calls it in a room; of two servers' agents of one name it is not clear which is meant."""
    machine.agents({"nick": NICK})
    for words in (("status", "bee"), ("status", "BEE")):
        told = await machine.run(*words)
        assert NICK in told.out and told.code == 1, "it does not run"
    for words in (("ask", "bee", "hello"), ("answer", "bee", "q1", "yes")):
        assert f"`culture start {NICK}`" in (await machine.run(*words)).err, words
    assert resolve_nick("bee", [NICK, "thor-bee"]) == "bee" and resolve_nick("bee", ["bee", NICK]) == "bee"


async def test_without_a_server_nobody_waits(machine: Machine) -> None:
    machine.agents({"nick": NICK}, port=1)
    failed = await machine.run("start", NICK)
    assert failed.code == 1 and "no server answers at 127.0.0.1 port 1" in failed.err


async def test_without_agents_the_next_step_is_said(machine: Machine) -> None:
    assert "culture agents add" in (await machine.run("start", "--all")).err
    assert "culture agents add" in (await machine.run("status")).out


async def test_restart_makes_another_process(machine: Machine) -> None:
    machine.agents({"nick": NICK})
    await machine.run("start", NICK)
    before = machine.daemon()
    restarted = await machine.run("restart", NICK)
    after = machine.daemon()
    assert restarted.code == 0 and before is not None and after is not None and before.pid != after.pid
    machine.agents({"nick": NICK, "model": 5})
    assert (await machine.run("restart", NICK)).code == 78
    machine.agents({"nick": NICK, "directory": str(machine.home / "nowhere")})
    wrong = await machine.run("restart", NICK)
    assert wrong.code == 78 and "nowhere is not there; make it" in wrong.err
    assert machine.daemon() == after


@pytest.mark.fault("E6")
async def test_stop_ends_what_a_killed_daemon_left(machine: Machine, tmp_path: Path) -> None:
    """E6: no process of the agent survives a stop, whatever became of its daemon."""
    away = tmp_path / "away"
    rules = [{"when": "work", "steps": [{"run": f"setsid sh -c 'touch {away}; exec sleep 600' & sleep 600"}]}]
    machine.agents({"nick": NICK, "playbook": playbook(tmp_path, rules)})
    async with registered(machine.port, "spark-ori") as ori:
        await ori.join("#general")
        await machine.run("start", NICK)
        ori.send(f"PRIVMSG #general :@{NICK} work")
        token = machine.token()
        assert token is not None
        await until(away.exists)
        note = machine.daemon()
        assert note is not None
        kill_watchdog(note.pid)
        os.kill(note.pid, signal.SIGKILL)
        await until(lambda: machine.daemon() is None)
        stopped = await machine.run("stop", NICK)
        assert "is not running" in stopped.out and "left behind" in stopped.out
        assert carrying(token) == []


@pytest.mark.fault("E6")
async def test_a_daemon_that_hangs_is_killed_and_its_agent_with_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.agents({"nick": NICK})
    await machine.run("start", NICK)
    note, token = machine.daemon(), machine.token()
    assert note is not None and token is not None
    os.kill(note.pid, signal.SIGSTOP)
    for name in ("CULTURE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, machine.shell.environment.get(name, str(machine.home)))
    how, _ = await ending.end(NICK, grace=0.05, told=0.05, asked=0.05)
    assert how is ending.Ended.KILLED
    assert carrying(token) == [] and machine.daemon() is None


async def test_a_daemon_inherits_no_token_of_whoever_starts_it(machine: Machine) -> None:
    machine.agents({"nick": NICK})
    machine.shell.environment["CULTURE_TOKEN"] = "its-token"
    assert (await machine.run("start", NICK)).code == 0
    note = machine.daemon()
    assert note is not None
    assert not carrying("its-token")
