"""Registered channels (+P) outlive their members and the process: what was answered is on disk."""

import asyncio
import logging
from pathlib import Path

from culture.protocol.channel_names import fault_in
from culture.protocol.names import fold
from culture.server import disk
from culture.server.errors import StartError
from culture.server.events import ChannelRenamed, MetadataSet, ModeSet, TopicSet
from culture.server.kept import dump, dump_channel, parse
from culture.server.network import Network
from culture.server.poller import Flushable
from culture.server.router import Router
from culture.server.shapes import Unreadable
from culture.server.tasks import Tasks

log = logging.getLogger(__name__)

_TRY_AGAIN = 1.0


class Registered:
    """Keeps the file of registered channels up to date.

    It is one of those that are flushed at the end of a turn, and always the first: whatever a turn changed is
    written once, and before any client is told.
    """

    def __init__(self, path: Path, network: Network, router: Router, tasks: Tasks, dirty: list[Flushable]) -> None:
        self._path = path
        self._network = network
        self._tasks = tasks
        self._dirty = dirty
        self._lines: dict[str, str] = {}
        self._pending = False
        self._is_trying = False
        router.subscribe(self._changed, ModeSet, TopicSet, MetadataSet, ChannelRenamed)

    def restore(self) -> None:
        """Make the channels that were there, without members."""
        try:
            found = disk.read(self._path)
            channels = parse(found[0]) if found is not None else []
        except (Unreadable, OSError) as error:
            raise StartError(
                f"cannot read the registered channels in {self._path}: {error}\n"
                "Put a good copy of the file in its place, or move it away to start without registered channels."
            ) from error
        for channel in channels:
            if (fault := fault_in(channel.name)) is not None:
                log.warning("the registered channel %s has a name that no new one may have. %s", channel.name, fault)
            self._network.restore(channel)
            self._lines[fold(channel.name)] = dump_channel(channel)

    def flush(self) -> None:
        """Write what changed, before anybody is told of it."""
        if not self._pending:
            return
        try:
            disk.replace(self._path, dump(self._lines.values()))
        except OSError as error:
            log.error("cannot write %s (%s); trying again until it works", self._path, error.strerror)
            if not self._is_trying:
                self._is_trying = True
                self._tasks.start(self._try_again())
        else:
            self._pending = False

    async def _try_again(self) -> None:
        while self._pending:
            await asyncio.sleep(_TRY_AGAIN)
            self.flush()
        self._is_trying = False
        log.info("%s is written again", self._path)

    def _changed(self, event: ModeSet | TopicSet | MetadataSet | ChannelRenamed) -> None:
        match event:
            case ChannelRenamed():
                self._note(event.channel)
                self._note(event.new)
            case MetadataSet():
                self._note(event.target)
            case _:
                self._note(event.channel)

    def _note(self, name: str) -> None:
        channel, folded = self._network.channel(name), fold(name)
        line = dump_channel(channel) if channel is not None and channel.is_registered else None
        if self._lines.get(folded) == line:
            return
        if line is None:
            del self._lines[folded]
        else:
            self._lines[folded] = line
        if not self._pending:
            self._pending = True
            self._dirty.insert(0, self)
