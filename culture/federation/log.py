"""The messages that peers may have missed: kept on disk with their ids, and how far each peer's own log was read."""

import asyncio
import logging
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from culture.federation.logfile import (
    Change,
    Cursor,
    Entry,
    Held,
    Kept,
    LogFile,
    LogReader,
    Lost,
    Read,
    Released,
    Settled,
    State,
    later,
    prune,
    taken_back,
)
from culture.federation.seen import Seen
from culture.runtime import REAL, Runtime
from culture.server.core.ids import EventId

log = logging.getLogger(__name__)

_AT_ONCE = 2_000
# Seconds that the first of a batch waits for others: where there are many, fewer transactions are cheaper.
_GATHER = 0.001
_GATHER_MANY = 0.02
_MANY = 32
_RETRY = 0.25
_OTHERS = 1.0  # seconds that others have at the end to keep what they were told
_PATIENCE = 2.0  # seconds without a write before operators hear of it
_SPARE = 2_000  # messages that are known without asking the disk, beside those that are not on it
_MOST = 200_000  # changes that may wait to be written
_MOST_BYTES = 64 << 20
T = TypeVar("T")
_make = tuple.__new__  # what a NamedTuple's own constructor does, without the call around it


class EventLog:
    """Appends from the loop's thread, writes in a thread of its own, reads in another.

    Changes are written in the order in which they were made, so that whatever is on disk is there with all that came
    before it: a cursor with the messages that it stands for. ``settled`` is called in the writer's thread after each
    transaction. Changes may be made before the file is open: they wait, and come behind what is in it.
    """

    def __init__(
        self, path: Path, settled: Callable[[], None], tell: Callable[[str], None], runtime: Runtime = REAL
    ) -> None:
        self._path = path
        self._runtime = runtime
        self._monotonic, self._sleep = runtime.monotonic, runtime.sleep
        self._settled = settled
        self._tell = tell
        self._last_batch = 0
        self._waiting: deque[Change] = deque()
        self._bytes = self._written_bytes = 0
        self._unkept: Lost | None = None
        self._wake = runtime.event()
        self._stopping = False
        self._is_idle = False
        self._stuck_since: float | None = None
        self._is_told = False
        self._has_failed = False
        self._is_over = False  # nothing more is written
        self._file: LogFile | None = None
        self._until = 0.0  # when to end though something is left
        self._thread = runtime.thread(self._run, "federation-log")
        self._readers = runtime.pool(1, "federation-reader")
        self._reader = LogReader(path, runtime=runtime)
        self.failed: Callable[[BaseException], None] = lambda error: None
        """Called in the writer's thread with what ends it."""
        self.is_kept: Callable[[], bool] = lambda: True
        """At the end, in the writer's thread: do all who keep messages have what they were told?"""
        self.seen = Seen()
        self.recent: deque[Entry] = deque()
        """The last messages, at least all that are not on disk yet."""
        self.forgotten = 0
        """The last position that is no longer among the recent ones."""
        self.cursors: dict[str, Cursor] = {}
        self.held: dict[str, dict[str, Held]] = {}
        """Private messages that wait, by the server that they are for and their ids."""
        self.held_size = 0
        self.durable: dict[str, Cursor] = {}
        """The cursors as far as they are on disk."""
        self.id = ""
        self.is_open = False
        """Is it known what the file says?"""
        self.settled = 0
        """Up to here all who keep messages had the time to, before the start."""
        self.position = self.committed = 0
        self.written = self.taken = 0
        """How many changes are on disk, and how many were made: the same ones, in the same order."""

    def open(self, epoch: str = "", caps: str = "") -> None:
        """Read what is known and write from now on; blocks."""
        self.take_up(*self.load(epoch, caps))
        self.begin()

    def load(self, epoch: str, caps: str) -> tuple[State, Seen]:
        """Open the file and read it; blocks, any thread may. It can be tried again where it raises an error.

        ``caps``: what this server can read of its peers' logs.
        """
        file, seen = LogFile(self._path, runtime=self._runtime), Seen()
        try:
            state = file.begin(epoch, caps)
            for origin, line, floor in state.floors:
                seen.begin(origin, line, floor)
            for id in state.known:
                seen.add(*id)
        except BaseException:
            file.close()
            raise
        self._file = file
        return state, seen

    def take_up(self, state: State, seen: Seen) -> None:
        """Go on behind what the file says, with the changes that were made before it was open."""
        by = state.position
        self._waiting = deque(later(change, by) for change in self._waiting)
        self.recent = deque(entry._replace(position=entry.position + by) for entry in self.recent)
        if self._unkept is not None:
            self._unkept = Lost(self._unkept.first + by, self._unkept.last + by)
        for change in self._waiting:
            if isinstance(change, Kept):
                seen.add(*change.stamp[:3])
        self.seen = seen
        self.id, self.settled = state.id, state.settled
        self.cursors, self.durable = state.cursors, dict(state.cursors)
        self.committed = self.forgotten = by
        self.position += by
        early = [held for waiting in self.held.values() for held in waiting.values()]
        self.held = {}
        for held in [*state.held, *early]:
            self.held.setdefault(held.server, {})[held.id] = held
        self.held_size += sum(len(held.data) for held in state.held)
        self.is_open = True

    def begin(self) -> None:
        """Write from now on."""
        self._thread.start()

    def give_up(self) -> None:
        """Nobody is to wait for a file that will not be opened any more."""
        if not self._thread.is_alive():
            self._has_failed = self._is_over = True

    def close(self, patience: float) -> None:
        """Write what is left, within so many seconds, half of which for a file that cannot be written; blocks."""
        self._until = self._monotonic() + patience / 2
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(patience)
        else:
            if self.waiting and not self._is_over:
                log.error("%d changes of the federation's log could not be written", self.waiting)
            self._end()
        self._readers.shutdown(wait=True, cancel_futures=True)
        self._reader.close()

    @property
    def waiting(self) -> int:
        """How many changes are not on disk yet."""
        return self.taken - self.written

    @property
    def is_stuck(self) -> bool:
        """Is there no writing at present?"""
        return self._stuck_since is not None

    @property
    def is_full(self) -> bool:
        """Is there no room for more until something was written?"""
        return self.taken - self.written >= _MOST or self._bytes - self._written_bytes >= _MOST_BYTES

    @property
    def has_room(self) -> bool:
        """Was there room for the last message that was appended? Nobody asks a log that has ended."""
        return self._unkept is None or self._is_over

    def append(self, stamp: EventId, channel: str, data: str) -> int:
        """Keep a message that is new; the position it has. One without a channel is for somebody here."""
        origin, epoch, seq, _ = stamp
        self.seen.add(origin, epoch, seq)
        self.position = position = self.position + 1
        if self.is_full:
            first = self._unkept.first if self._unkept is not None else position
            self._unkept = Lost(first, position)
            return position
        if self._unkept is not None:
            self.note_unkept()
        entry = _make(Entry, (position, channel, data))
        self._bytes += len(data)
        self._put(_make(Kept, (stamp, entry)))
        self.recent.append(entry)
        while len(self.recent) > _SPARE and self.recent[0].position <= self.committed:
            self.forgotten = self.recent.popleft().position
        return position

    def take_back(self, msgid: str, channel: str, at: float) -> None:
        """Leave nothing of a message but its id: whoever missed it is not told it.

        One that is not here yet is known from now on, so that it is not taken when it comes, after a start either.
        """
        taken = taken_back(msgid)
        if taken is None:
            return
        if not self.seen.knows(*taken) and self.seen.has_room(taken.origin, taken.epoch):
            self.append(_make(EventId, (*taken, at)), channel, "")
        self.blank(msgid)

    def blank(self, msgid: str) -> None:
        """The same for one that is here, if it is."""
        taken = taken_back(msgid)
        if taken is None:
            return
        mark = f"id={msgid};"
        for place, entry in enumerate(self.recent):
            if mark in entry.data.partition(" ")[0]:
                self.recent[place] = entry._replace(data="")
        self._put(taken)

    def note_unkept(self) -> None:
        """Once there is room again, remember what there was none for: peers hear of the gap."""
        if self._unkept is not None and not self.is_full:
            self._put(self._unkept)
            self._unkept = None

    def read_up_to(self, peer: str, cursor: Cursor) -> None:
        """Everything of a peer's log is here up to this; durable with what came before it."""
        self.cursors[peer] = cursor
        self._put(Read(peer, cursor))

    def hold(self, held: Held) -> None:
        """Keep a private message until the next server on its way has it."""
        self.held.setdefault(held.server, {})[held.id] = held
        self.held_size += len(held.data)
        self._bytes += len(held.data)
        self._put(held)

    def is_held(self, id: str, server: str) -> bool:
        """Does this message wait for this server?"""
        return id in self.held.get(server, ())

    def release(self, held: Held) -> None:
        """The next server has it, or it is given up."""
        if self.held.get(held.server, {}).pop(held.id, None) is not None:
            if not self.held[held.server]:
                del self.held[held.server]
            self.held_size -= len(held.data)
            self._put(Released(held.id))

    def settle(self, position: int) -> None:
        """What is up to here need not be told again after a crash: all who keep it have had the time."""
        self._put(Settled(position))

    def unwritten(self, beyond: int) -> Iterable[Entry] | None:
        """The messages behind a position, where they are all still in memory."""
        if beyond < self.forgotten:
            return None
        return [entry for entry in self.recent if entry.position > beyond and entry.channel and entry.data]

    async def after(self, position: int, limit: int) -> list[Entry]:
        """Up to so many entries behind a position, as far as they are on disk."""
        return await self._ask(lambda: self._reader.after(position, limit))

    async def since(self, position: int, limit: int) -> list[Entry]:
        """The same with private messages that are for somebody here: never for peers."""
        return await self._ask(lambda: self._reader.since(position, limit))

    async def missing(self, position: int) -> int:
        """How many entries behind a position are no longer kept."""
        return await self._ask(lambda: self._reader.missing(position))

    async def prune(self, before: float) -> int:
        """Let go of what is older; how many that were."""
        assert self._file is not None
        self._file.check()  # else a new one would be made in its place
        return await asyncio.to_thread(prune, self._path, before, self._runtime)

    async def _ask(self, question: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, question)

    def await_written(self, patience: float) -> bool:
        """Wait until all changes up to now are on disk; blocks, any thread may.

        False where that takes longer than so many seconds, or the log has ended without them: then nobody may keep any
        of it either. Nobody waits for a log that has failed, with which the links are gone.
        """
        wanted, until = self.taken, self._monotonic() + patience
        while self.written < wanted and not self._is_over:
            if self._monotonic() >= until:
                return False
            self._sleep(_GATHER)
        return self.written >= wanted or self._has_failed

    def _put(self, change: Change) -> None:
        self._waiting.append(change)
        self.taken += 1
        if self._is_idle:
            self._is_idle = False
            self._wake.set()

    def _run(self) -> None:
        try:
            while self._await_changes():
                self._sleep(_GATHER if self._last_batch < _MANY else _GATHER_MANY)
                while not self.write_some():
                    if self._stopping and self._monotonic() >= self._until:
                        log.error("%d changes of the federation's log could not be written", self.waiting)
                        return
                    self._sleep(_RETRY)
            self._settle_all()
        except BaseException as error:
            log.exception("the federation's log cannot go on")
            self._stuck_since = self._monotonic()  # for good: nobody is to wait for us
            self._has_failed = True
            self.failed(error)
        finally:
            self._end()

    def _end(self) -> None:
        self._is_over = True
        if self._file is not None:
            self._file.close()

    def _settle_all(self) -> None:
        """Nothing need be told again, where all who keep messages have them; they end at the same time as we do."""
        until = self._monotonic() + _OTHERS
        while not self.is_kept() and self._monotonic() < until:
            self._sleep(_GATHER)
        if self.is_kept() and self._file is not None:
            with suppress(sqlite3.Error, OSError):
                self._file.write([Settled(self.position)])

    def _await_changes(self) -> bool:
        while not self._waiting:
            if self._stopping:
                return False
            self._wake.clear()
            self._is_idle = True
            if not self._waiting and not self._stopping:
                self._wake.wait()
            self._is_idle = False
        return True

    def write_some(self) -> bool:
        """Write what waits, up to a limit, in one transaction; False where that cannot be."""
        # One after the other: what is added to meanwhile, by another thread, cannot be gone through.
        changes = [self._waiting.popleft() for _ in range(min(len(self._waiting), _AT_ONCE))]
        self._last_batch = len(changes)
        assert self._file is not None
        try:
            self._file.write(changes)
        except (sqlite3.Error, OSError) as error:
            self._waiting.extendleft(reversed(changes))
            self._note_trouble(error)
            return False
        for change in changes:
            if isinstance(change, Kept):
                self.committed = change.entry.position
                self._written_bytes += len(change.entry.data)
            elif isinstance(change, Read):
                self.durable[change.peer] = change.cursor
            elif isinstance(change, Held):
                self._written_bytes += len(change.data)
        self.written += len(changes)
        self._note_success()
        self._settled()
        return True

    def _note_trouble(self, error: Exception) -> None:
        now = self._monotonic()
        if self._stuck_since is None:
            self._stuck_since = now
        if not self._is_told and now - self._stuck_since >= _PATIENCE:
            self._is_told = True
            self._tell(f"what links carry cannot be kept at present, so peers will send it again: {error}")

    def _note_success(self) -> None:
        self._stuck_since = None
        if self._is_told:
            self._is_told = False
            self._tell("what links carry is kept again")
