"""The skill: notes what happens in channels, hands it to the writer, and has the logs committed."""

import asyncio
from pathlib import Path

from culture.config import paths
from culture.config import skills as config
from culture.lib.git import GitFailed
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
from culture.skills.logger.repository import LogRepository
from culture.skills.logger.writer import LogWriter, Noted

_PAUSE = 0.2  # seconds in which events gather, so that a busy channel's file is not opened for each
_MOST = 10_000  # events that wait for the writer
_WRITE_PATIENCE, _COMMIT_PATIENCE, _LAST_COMMIT_PATIENCE = 3.0, 30.0, 5.0


class Logger(Skill):
    """One file per channel and day; what is private is never in them."""

    name = "logger"
    Settings = config.LoggerConfig
    settings: config.LoggerConfig

    def __init__(self, host: Host, settings: config.LoggerConfig) -> None:
        super().__init__(host, settings)
        self.folder: Path = settings.folder or paths.home() / "log" / host.name
        self._fresh: list[Noted] = []
        self._missed = 0
        self._writer: LogWriter | None = None
        self._at_rest = asyncio.Event()
        self._at_rest.set()
        self._repository = LogRepository(self.folder, host.name) if settings.git else None
        self._commits = True

    async def start(self) -> None:
        """Begin to write, and to commit where that is wanted."""
        self._writer = LogWriter(self.folder, self.settings.channels, self.host.tell_operators, self._broke)
        if self._repository is not None:
            self.host.start(self._commit_regularly(self._repository))

    async def stop(self) -> None:
        """Write what is left, as far as the disk lets us, and commit it."""
        if self._writer is None:
            return
        try:
            async with asyncio.timeout(_WRITE_PATIENCE):
                await self.flush()
                await self._writer.stop()
        except TimeoutError:
            self.host.tell_operators("the disk does not answer; the last lines are lost")
        else:
            files = self._writer.files
            if files.waiting or files.lost:
                self.host.tell_operators(f"{files.waiting + files.lost} lines could not be written and are lost")
        if self._repository is not None:
            await self._commit(self._repository, last=True)

    def _broke(self, error: BaseException) -> None:
        self._writer = None
        self._at_rest.set()
        self.host.failed(error)

    async def flush(self) -> None:
        """Wait until all that happened so far was written, or at least tried."""
        await self._at_rest.wait()
        self._hand_over()
        await self._at_rest.wait()

    @hook(Said)
    def on_said(self, said: Said) -> None:
        """Note a message that is for everybody in a channel."""
        if said.target[0] == "#" and not said.status and said.verb != "TAGMSG":
            self._note(said)

    @hook(Redacted)
    def on_redacted(self, event: Redacted) -> None:
        """Note that a message to a channel was taken back."""
        if event.target[0] == "#":
            self._note(event)

    @hook(Left, Renamed)
    def on_user(self, event: Left | Renamed) -> None:
        """Note what concerns every channel of somebody."""
        if self.host.concerned:
            self._note(event, self.host.concerned)

    @hook(Joined, Parted, Kicked, TopicSet, ModeSet, ChannelRenamed)
    def on_channel(self, event: Joined | Parted | Kicked | TopicSet | ModeSet | ChannelRenamed) -> None:
        """Note what concerns one channel."""
        self._note(event)

    def _note(self, event: Logged, concerned: tuple[str, ...] = ()) -> None:
        fresh = self._fresh
        if not fresh:
            asyncio.get_running_loop().call_later(_PAUSE, self._hand_over)
        if len(fresh) < _MOST:
            fresh.append((event, concerned))
        else:
            self._miss()

    def _miss(self) -> None:
        self._missed += 1
        if self._missed == 1:
            self.host.tell_operators("the disk is slower than the talk; lines are lost until it has caught up")

    def _hand_over(self) -> None:
        """Give the writer what has gathered, unless it is still at work: ``_written`` sees to the rest."""
        if self._fresh and self._writer is not None and self._at_rest.is_set():
            batch, self._fresh = self._fresh, []
            self._at_rest.clear()
            self._writer.write(batch, self._written)

    def _written(self) -> None:
        self._at_rest.set()
        if self._missed:
            missed, self._missed = self._missed, 0
            self.host.tell_operators(f"the disk has caught up; {missed} lines were lost")
        if self._fresh:
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
            if self._commits:
                self.host.tell_operators(f"cannot commit the logs: {failed.reason}; they are written all the same")
            self._commits = False
        else:
            if not self._commits:
                self.host.tell_operators("logs are committed again")
            self._commits = True
