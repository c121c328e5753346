"""``agents[].user``: an agent that runs as another user of the machine."""

import asyncio
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from culture.cli.agents import sudo
from culture.cli.agents.lifecycle import start_all
from culture.cli.agents.select_agents import configured_agents, load
from culture.cli.agents.sudo import WrongUser, environment, other_user, report_as_owner, run_as_owner
from culture.config.agents import AgentConfig
from tests.cli.agents.conftest import Machine
from tests.support.client import registered

NICK = "spark-other"
ROOT = Path(__file__).resolve().parents[3]
INTERPRETERS = (sys.executable, "/usr/bin/python3")


def agent(user: str) -> AgentConfig:
    return AgentConfig(nick=NICK, directory=Path("/"), channels=("#general",), agent="scripted", user=user)


def packages() -> str:
    """Where another interpreter finds what this one has."""
    return os.pathsep.join([str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))])


def interpreter() -> str | None:
    """One that every user may run, of our version."""
    for candidate in INTERPRETERS:
        try:
            done = subprocess.run(
                [candidate, "-c", "import culture.clients.shared.main"],
                user="nobody",
                cwd="/",
                env={"PYTHONPATH": packages()},
                capture_output=True,
                check=False,
            )
        except (OSError, PermissionError):
            continue
        if done.returncode == 0:
            return candidate
    return None


def variables_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user nobody, with a home folder."""
    found = interpreter() if os.geteuid() == 0 else None
    if found is None:
        pytest.skip("needs root, and an interpreter that every user may run")
    home = Path(tempfile.mkdtemp(prefix="nobody-"))
    entry = pwd.getpwnam("nobody")
    os.chown(home, entry.pw_uid, entry.pw_gid)
    with_home = pwd.struct_passwd((*entry[:5], str(home), entry[6]))
    monkeypatch.setattr(sudo.pwd, "getpwnam", lambda name: with_home)
    monkeypatch.setattr(sys, "executable", found)
    monkeypatch.setenv("PYTHONPATH", packages())
    yield home
    shutil.rmtree(home)


async def test_an_agent_runs_as_another_user_and_is_looked_after_from_here(
    machine: Machine, nobody: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its token, its mail and its socket are that user's; the files of whoever started it stay closed to it."""
    machine.agents({"nick": NICK, "user": "nobody", "directory": str(nobody)})
    monkeypatch.setenv("CULTURE_HOME", str(machine.home))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a key of ours")
    configured_agents.cache_clear()
    settings = load()
    try:
        assert await asyncio.to_thread(start_all, settings, settings.agents) == 0, capfd.readouterr()
        facts = await asyncio.to_thread(report_as_owner, settings.agents[0])
        assert facts is not None and facts["state"] == "idle" and facts["connected"]
        uid = pwd.getpwuid(os.stat(nobody).st_uid).pw_uid
        assert os.stat(f"/proc/{facts['pid']}").st_uid == uid
        assert b"a key of ours" not in variables_of(facts["pid"])
        secret = os.stat(nobody / ".culture" / "secrets" / NICK)
        assert (secret.st_uid, secret.st_mode & 0o777) == (uid, 0o600)
        async with registered(machine.port, "spark-ori") as ori:
            said = await ori.ask(f"WHOIS {NICK}")
            assert any(line.verb == "330" and line.params[2] == NICK for line in said)
    finally:
        assert await asyncio.to_thread(run_as_owner, NICK, "stop") == 0
        configured_agents.cache_clear()
    assert f"{NICK} has stopped." in capfd.readouterr().out


def test_only_root_may_run_an_agent_as_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(WrongUser, match="only root can do: use sudo"):
        other_user(agent("nobody"))


def test_a_user_that_is_not_there_is_named() -> None:
    with pytest.raises(WrongUser, match="there is no user nosuchuser here"):
        other_user(agent("nosuchuser"))


def test_as_oneself_nothing_is_different() -> None:
    assert other_user(agent(pwd.getpwuid(os.geteuid()).pw_name)) is None


def test_nothing_of_ours_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a key")
    monkeypatch.setenv("CULTURE_TOKEN", "a token")
    found = environment(pwd.getpwnam("nobody"))
    assert found["USER"] == "nobody" and not {"ANTHROPIC_API_KEY", "CULTURE_TOKEN"} & found.keys()


async def test_the_command_says_what_is_wrong_with_the_user(machine: Machine) -> None:
    machine.agents({"nick": NICK, "user": "nosuchuser"}, {"nick": "spark-bee"})
    started = await machine.run("start", "--all")
    assert started.code == 78 and "there is no user nosuchuser" in started.err
    assert "spark-bee is running" in started.out
