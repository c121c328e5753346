"""The skill object: hands channel events to the writer thread, and commits the logs."""

import asyncio
from pathlib import Path

from culture.config import paths
from culture.config import skills as config
from culture.lib.files import private_directory
from culture.lib.git import Git, GitFailed, isolated
from culture.runtime import REAL, Runtime
from culture.server.events import (
    ChannelRenamed,
    Joined,
    Kicked,
    Left,
    ModeSet,
    Parted,
    Redacted,
    Renamed,
    Said,
    TopicSet,
)
from culture.server.skill import Host, Skill, hook
from culture.skills.logger.format import Logged, moment
from culture.skills.logger.writer import LogWriter, Noted

# No detached packing: a commit must leave no process behind.
_GIT_SETTINGS = {"commit.gpgSign": "false", "gc.autoDetach": "false", "init.defaultBranch": "main"}
_PAUSE = 0.2  # seconds in which events are collected, so that a file is not opened for each event
_MOST = 10_000  # events that may wait for the writer
_WRITE_PATIENCE, _COMMIT_PATIENCE, _LAST_COMMIT_PATIENCE = 3.0, 30.0, 5.0


class LogRepository:
    """The log folder as a git repository; calls block, and one commit runs at a time."""

    def __init__(self, folder: Path, server: str, runtime: Runtime = REAL) -> None:
        self._folder = folder
        self._settings = {**_GIT_SETTINGS, "user.name": "culture", "user.email": f"culture@{server}"}
        self._monotonic = runtime.monotonic
        self._lock = runtime.lock()

    def commit(self, message: str, patience: float, tidy: bool = True) -> bool:
        """Commit all changes within ``patience`` seconds; return False if there are none.

        ``GitFailed`` if git fails or is too slow. ``message``: the commit's text; ``tidy``: let git compact the
        repository, too.
        """
        until = self._monotonic() + patience
        if not self._lock.acquire(timeout=patience):
            raise GitFailed(("commit",), -1, "the previous commit is still running")
        try:
            return self._commit(message, until, tidy)
        except OSError as error:
            raise GitFailed(("commit",), -1, f"{error.filename or 'git'}: {error.strerror}") from error
        finally:
            self._lock.release()

    def _commit(self, message: str, until: float, tidy: bool) -> bool:
        private_directory(self._folder)
        if not (self._folder / ".git").exists():
            self._git(until, "init", "--quiet", "--template=")
        self._git(until, "add", "--all", "--", ".")
        if not self._git(until, "diff", "--cached", "--name-only"):
            return False
        packing = () if tidy else ("-c", "gc.auto=0")
        self._git(until, *packing, "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message", message)
        return True

    def _git(self, until: float, *arguments: str) -> bytes:
        """Run git in the log folder and return its output.

        ``until``: deadline by ``time.monotonic()``. Only culture's settings apply, not those of the user who runs the
        server.
        """
        environment = isolated(self._folder / ".git", GIT_WORK_TREE=str(self._folder))
        git = Git(self._folder, environment, self._settings, umask=0o077)
        return git.run(*arguments, patience=max(0.0, until - self._monotonic()))


class Logger(Skill):
    """Writes one log file per channel and day; private messages are never logged."""

    name = "logger"
    Settings = config.LoggerConfig
    settings: config.LoggerConfig

    def __init__(self, host: Host, settings: config.LoggerConfig) -> None:
        super().__init__(host, settings)
        self.folder: Path = settings.folder or paths.home() / "log" / host.name
        self._pending: list[Noted] = []
        self._dropped = 0
        self._writer: LogWriter | None = None
        self._writer_idle = asyncio.Event()
        self._writer_idle.set()
        self._repository = LogRepository(self.folder, host.name, runtime=host.runtime) if settings.git else None
        self._commit_works = True

    async def start(self) -> None:
        """Start the writer thread, and regular commits if the setting ``git`` is on."""
        host = self.host
        self._writer = LogWriter(
            self.folder, self.settings.channels, host.tell_operators, self._on_writer_failure, runtime=host.runtime
        )
        if self._repository is not None:
            self.host.start(self._commit_regularly(self._repository))

    async def stop(self) -> None:
        """Write the pending log lines within three seconds, and commit the logs if they are in git."""
        if self._writer is None:
            return
        try:
            async with asyncio.timeout(_WRITE_PATIENCE):
                await self.flush()
                await self._writer.stop()
        except TimeoutError:
            self.host.tell_operators("the disk does not respond; the last log lines are lost")
        else:
            files = self._writer.files
            if files.waiting or files.lost:
                self.host.tell_operators(f"{files.waiting + files.lost} lines could not be written and are lost")
        if self._repository is not None:
            await self._commit(self._repository, last=True)

    def _on_writer_failure(self, error: BaseException) -> None:
        self._writer = None
        self._writer_idle.set()
        self.host.failed(error)

    async def flush(self) -> None:
        """Wait until all events so far have been written, or writing them has failed."""
        await self._writer_idle.wait()
        self._hand_over()
        await self._writer_idle.wait()

    @hook(Said)
    def on_said(self, said: Said) -> None:
        """Log a message to a channel; one to its operators or voiced users only is not logged."""
        if said.target[0] == "#" and not said.status and said.verb != "TAGMSG":
            self._collect(said)

    @hook(Redacted)
    def on_redacted(self, event: Redacted) -> None:
        """Log the redaction of a message in a channel."""
        if event.target[0] == "#":
            self._collect(event)

    @hook(Left, Renamed)
    def on_user(self, event: Left | Renamed) -> None:
        """Log that a user quit or changed nick, in the logs of all channels of that user."""
        if self.host.concerned:
            self._collect(event, self.host.concerned)

    @hook(Joined, Parted, Kicked, TopicSet, ModeSet, ChannelRenamed)
    def on_channel(self, event: Joined | Parted | Kicked | TopicSet | ModeSet | ChannelRenamed) -> None:
        """Log an event of one channel: join, part, kick, topic, mode or new name."""
        self._collect(event)

    def _collect(self, event: Logged, concerned: tuple[str, ...] = ()) -> None:
        pending = self._pending
        if not pending:
            asyncio.get_running_loop().call_later(_PAUSE, self._hand_over)
        if len(pending) < _MOST:
            pending.append((event, concerned))
        else:
            self._drop()

    def _drop(self) -> None:
        self._dropped += 1
        if self._dropped == 1:
            self.host.tell_operators("the disk is too slow for the log; lines are lost until it has caught up")

    def _hand_over(self) -> None:
        """Pass the pending events to the writer thread.

        While the thread is busy nothing is passed; ``_written`` does that when it is done.
        """
        if self._pending and self._writer is not None and self._writer_idle.is_set():
            batch, self._pending = self._pending, []
            self._writer_idle.clear()
            self._writer.write(batch, self._written)

    def _written(self) -> None:
        self._writer_idle.set()
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self.host.tell_operators(f"the disk has caught up; {dropped} lines were lost")
        if self._pending:
            asyncio.get_running_loop().call_later(_PAUSE, self._hand_over)

    async def _commit_regularly(self, repository: LogRepository) -> None:
        while True:
            await self._commit(repository)
            await asyncio.sleep(self.settings.commit_every)

    async def _commit(self, repository: LogRepository, last: bool = False) -> None:
        if not last:
            await self.flush()
        message = f"Channel logs until {moment(self.host.now())} UTC"
        patience = _LAST_COMMIT_PATIENCE if last else _COMMIT_PATIENCE
        try:
            await asyncio.to_thread(repository.commit, message, patience, not last)
        except GitFailed as failed:
            if self._commit_works:
                self.host.tell_operators(f"cannot commit the logs: {failed.reason}; lines are still written")
            self._commit_works = False
        else:
            if not self._commit_works:
                self.host.tell_operators("logs are committed again")
            self._commit_works = True
