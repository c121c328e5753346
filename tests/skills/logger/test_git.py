"""The logs under git: committed on a schedule and at the end, by a git that knows no settings but ours."""

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from culture.lib.git import GitFailed
from culture.skills.logger.skill import LogRepository
from tests.skills.logger.conftest import Logging
from tests.skills.logger.test_trouble import OPERATORS, operator, told
from tests.support.client import registered
from tests.support.clock import Clock
from tests.support.waiting import PATIENCE

DAY = "2027-01-15"


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout


def commits(folder: Path) -> list[str]:
    return git(folder, "log", "--format=%an <%ae> %s").splitlines()


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "day.log").write_text("one\n")
    return folder


@pytest.mark.requirement("D11")
async def test_what_is_new_is_committed_at_the_end(logging: Logging) -> None:
    async with logging(Clock(), git=True) as (ircd, skill), registered(ircd.port, "spark-ori") as ori:
        await ori.join("#a")
        await ori.ask("PRIVMSG #a :hello")
    assert commits(skill.folder) == [f"culture <culture@spark> Channel logs until {DAY} 08:00:00 UTC"]
    assert "\thello\n" in git(skill.folder, "show", f"HEAD:a/{DAY}.log")
    assert git(skill.folder, "status", "--porcelain") == ""


async def test_a_second_run_goes_on_in_the_same_repository_and_never_commits_nothing(logging: Logging) -> None:
    for text in ("first", "", "second"):
        async with logging(Clock(), git=True) as (ircd, skill), registered(ircd.port, "spark-ori") as ori:
            if text:
                await ori.join("#a")
                await ori.ask(f"PRIVMSG #a :{text}")
    assert len(commits(skill.folder)) == 2


class Attempts:
    """Every commit that is tried, as it is over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Queue[bool] = asyncio.Queue()
        self._commit = LogRepository.commit
        attempts = self

        def commit(self: LogRepository, *arguments: Any) -> bool:
            return attempts._try(self, *arguments)

        monkeypatch.setattr(LogRepository, "commit", commit)

    def _try(self, repository: LogRepository, *arguments: Any) -> bool:
        made = False
        try:
            made = self._commit(repository, *arguments)
        finally:
            self._loop.call_soon_threadsafe(self._over.put_nowait, made)
        return made

    async def next(self) -> bool:
        """Did the next one commit anything?"""
        async with asyncio.timeout(PATIENCE):
            return await self._over.get()

    async def made(self) -> None:
        """Wait for one that did."""
        while not await self.next():
            pass


async def test_the_schedule(logging: Logging, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts(monkeypatch)
    settings = {"git": True, "commit_every": 0.05}
    async with logging(Clock(), **settings) as (ircd, skill), registered(ircd.port, "spark-ori") as ori:
        assert await attempts.next() is False
        await ori.join("#a")
        await attempts.made()
        await ori.ask("PRIVMSG #a :late")
        await attempts.made()
        assert "\tlate\n" in git(skill.folder, "show", f"HEAD:a/{DAY}.log")
        assert len(commits(skill.folder)) == 2


def test_the_repository_is_for_its_owner_alone(logs: Path) -> None:
    assert LogRepository(logs, "spark").commit("now", PATIENCE)
    assert [path for path in (logs / ".git").rglob("*") if path.stat().st_mode & 0o077] == []


def test_settings_hooks_and_variables_of_the_user_do_not_count(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".config" / "git" / "ignore").write_text("*.log\n")
    hook = home / "hooks" / "pre-commit"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o700)
    (home / ".gitconfig").write_text(
        f"[user]\nname = Somebody\n[commit]\ngpgSign = true\n[core]\nhooksPath = {hook.parent}\n"
    )
    for name, value in {"HOME": home, "GIT_DIR": tmp_path / "elsewhere", "GIT_AUTHOR_NAME": "Somebody"}.items():
        monkeypatch.setenv(name, str(value))
    repository = LogRepository(logs, "spark")
    assert repository.commit("first", PATIENCE)
    own = logs / ".git" / "hooks" / "pre-commit"
    own.parent.mkdir()
    own.write_text(hook.read_text())
    own.chmod(0o700)
    (logs / "a" / "day.log").write_text("one\ntwo\n")
    assert repository.commit("second", PATIENCE)
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("HOME")
    assert commits(logs) == ["culture <culture@spark> second", "culture <culture@spark> first"]


def test_a_repository_around_the_folder_is_left_alone(logs: Path) -> None:
    git(logs.parent, "init", "--quiet")
    assert LogRepository(logs, "spark").commit("now", PATIENCE)
    assert (logs / ".git").is_dir()
    assert git(logs.parent, "status", "--porcelain") == "?? logs/\n"


def test_nothing_new_is_no_commit(logs: Path) -> None:
    repository = LogRepository(logs, "spark")
    assert [repository.commit("now", PATIENCE) for _ in range(2)] == [True, False]
    assert len(commits(logs)) == 1


def test_no_logs_are_no_commit(tmp_path: Path) -> None:
    assert LogRepository(tmp_path / "new", "spark").commit("now", PATIENCE) is False


def test_deleted_and_rotated_files_are_committed_too(logs: Path) -> None:
    repository = LogRepository(logs, "spark")
    repository.commit("first", PATIENCE)
    (logs / "a" / "day.log").rename(logs / "a" / "day.log.1")
    assert repository.commit("second", PATIENCE)
    assert git(logs, "ls-files").split() == ["a/day.log.1"]


def test_a_git_that_hangs_is_ended_with_all_it_started(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, alive = tmp_path / "bin" / "git", tmp_path / "alive"
    slow.parent.mkdir()
    os.mkfifo(alive)
    slow.write_text(f"#!/bin/sh\nexec 9> {alive}\nsleep 60 &\necho up >&9\nwait\n")
    slow.chmod(0o700)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    with os.fdopen(os.open(alive, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        with pytest.raises(GitFailed, match="takes too long"):
            LogRepository(logs, "spark").commit("now", 1.0)
        # The pipe ends with the last process that holds it.
        os.set_blocking(reader.fileno(), True)
        assert reader.read() == b"up\n"


async def test_without_git_the_logs_are_written_all_the_same(
    logging: Logging, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path))
    async with logging(Clock(), git=True, commit_every=0.05, **OPERATORS) as (ircd, skill), operator(ircd) as op:
        await op.join("#a")
        await skill.flush()
        assert "has joined" in (skill.folder / "a" / f"{DAY}.log").read_text()
        monkeypatch.setenv("PATH", path)
        await told(op, "committed again")
    assert len(commits(skill.folder)) >= 1


async def test_a_failing_git_is_told_once(
    logging: Logging, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    attempts = Attempts(monkeypatch)
    (tmp_path / "logs" / ".git").mkdir(parents=True)
    (tmp_path / "logs" / ".git" / "HEAD").write_text("nonsense")
    settings = {"git": True, "commit_every": 0.01}
    async with logging(Clock(), **settings) as (ircd, skill), registered(ircd.port, "spark-ori") as ori:
        await ori.join("#a")
        for _ in range(3):
            assert await attempts.next() is False
        await skill.flush()
    assert caplog.text.count("cannot commit the logs") == 1
    assert "has joined" in (skill.folder / "a" / f"{DAY}.log").read_text()
    assert ircd.parts.skills.off == {}
