"""The thread that writes: whatever waits goes to disk in one transaction, again and again."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from culture.protocol.names import fold
from culture.runtime import REAL, Runtime
from culture.server.core.ids import MICROSECONDS
from culture.server.events import Said, nick_of
from culture.skills.history.entry import Entry, conversation, party, said_entry
from culture.skills.history.store import Damaged, Store, Unavailable

log = logging.getLogger(__name__)

_AT_ONCE = 4_000  # a batch takes some 50 ms, much of it waiting: with fewer, what is kept in a second would end there
_MANY = 32
# Seconds that the first of a batch waits for others: a transaction costs as much as twenty messages, so where there
# are many they are kept in fewer of them.
_GATHER = 0.002
_GATHER_MANY = 0.02
_PAUSES = (0.05, 0.1, 0.25, 0.5, 1.0)
_folded = lru_cache(4096)(fold)


class Move(NamedTuple):
    """A channel has another name."""

    old: str
    new: str


class Spoken(NamedTuple):
    """A message, the account of whom it was said to in private, and whether not everybody could have heard it.

    What is for a rank is so too: those who have the rank in a later channel of the name were not meant.
    """

    said: Said
    account: str | None
    closed: bool

    def entry(self) -> Entry:
        """What is kept of it."""
        said = self.said
        if said.target[0] == "#":
            return said_entry(said, _folded(said.target), self.closed)
        parties = party(said.account, nick_of(said.source)), party(self.account, said.target)
        return said_entry(said, conversation(*parties), False)


Item = Spoken | Entry | Move


class Writer:
    """Takes items from the loop's thread and writes them in its own.

    ``taken`` counts what was given to it and ``written`` what of that is on disk, in the same order. While the
    store is not to be written it keeps trying, and ``is_stuck`` says so.
    """

    def __init__(
        self,
        store: Store,
        most: int,
        settled: Callable[[], None],
        tell: Callable[[str], None],
        runtime: Runtime = REAL,
    ) -> None:
        self._store = store
        self._most = most
        self._settled = settled
        self._tell = tell
        self._now, self._monotonic, self._sleep = runtime.now, runtime.monotonic, runtime.sleep
        self._waiting: deque[Item] = deque()
        self._wake = runtime.event()
        self._is_idle = False
        self._until: float | None = None  # when to have ended
        self._thread = runtime.thread(self._run, "history-writer")
        self.opened = runtime.event()
        self.failed: Callable[[BaseException], None] = lambda error: None
        self.wrote: Callable[[Sequence[Entry | Move]], None] = lambda items: None
        """Called in this thread with what was just written; again where the store was Unavailable to it."""
        self.before: Callable[[], None] = lambda: None
        """Called in this thread before each batch is written; Unavailable where that has to wait."""
        self.is_awaited = False  # somebody wants to know when more is written
        self.is_stuck = False
        self.taken = self.written = 0
        self.unkept: set[int] = set()  # numbers of those that cannot be kept at all
        self._is_told_of_taken = False
        self._lost = 0
        self.lost_in_all = 0
        self._lost_since = 0.0

    @property
    def waiting(self) -> int:
        """How many wait to be written."""
        return self.taken - self.written

    def mark(self) -> Callable[[], bool]:
        """Note what was taken by now: called later, is all of it written?"""
        taken = self.taken
        return lambda: self.written >= taken

    def start(self) -> None:
        """Open the store and begin."""
        self._thread.start()

    def stop(self, patience: float) -> None:
        """Write what is left, within so many seconds."""
        self._until = self._monotonic() + patience
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(patience + 1)

    def put(self, item: Item) -> bool:
        """Have it written; False where so much waits that this one is lost to the history."""
        if self.taken - self.written >= self._most:
            self._lose()
            return False
        self._waiting.append(item)
        self.taken += 1
        if self._is_idle:
            self._is_idle = False
            self._wake.set()
        return True

    def _lose(self) -> None:
        self._lost += 1
        self.lost_in_all += 1
        if self._lost == 1:
            self._lost_since = self._now()
            self._tell(f"{self._most} messages wait to be kept; further ones are passed on but lost to the history")

    def _run(self) -> None:
        try:
            if self._until_done(self._store.open):
                self.opened.set()
                self._work()
            self._store.close()
        except BaseException as error:
            self.failed(error)
        finally:
            self.is_stuck = True  # for good: nobody is to wait for us
            self.opened.set()
            self._settled()

    def _work(self) -> None:
        batch: list[Item] = []
        while self._await_items():
            self._sleep(_GATHER if len(batch) < _MANY else _GATHER_MANY)
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), _AT_ONCE))]
            if not self._until_done(self.before) or not self._write(batch):
                log.error("%d messages could not be kept", self.waiting)
                return
            self._note_loss()

    def _await_items(self) -> bool:
        """Wait for something to do; False when there is nothing and never will be."""
        while not self._waiting:
            if self._until is not None:
                return False
            self._wake.clear()
            self._is_idle = True
            if not self._waiting and self._until is None:
                self._wake.wait()
            self._is_idle = False
        return True

    def _write(self, batch: Sequence[Item]) -> bool:
        """Write these, however long that takes; False when there is no time left."""
        entries: list[Entry] = []
        for item in batch:
            if isinstance(item, Move):
                move = item
                if not self._keep(entries) or not self._until_done(lambda: self._move(move)):  # noqa: B023
                    return False
                entries = []
                self._count([move])
            else:
                entries.append(item.entry() if isinstance(item, Spoken) else item)
        return self._keep(entries)

    def _move(self, move: Move) -> None:
        self._store.move(fold(move.old), fold(move.new), move.new)

    def _keep(self, entries: list[Entry]) -> bool:
        if not entries:
            return True
        taken: set[str] = set()
        try:
            done = self._until_done(lambda: taken.update(self._store.write(entries)))
        except Damaged:
            raise
        except Exception:
            log.exception("%d entries could not be written together", len(entries))
            return all(self._keep_one(entry) for entry in entries)
        if done:
            self._note_taken(entries, taken)
            self._count(entries)
        return done

    def _note_taken(self, entries: Sequence[Entry], taken: set[str]) -> None:
        """These ids are those of other messages, so that nothing is kept: an old file of ids was put back."""
        self.unkept.update(self.written + 1 + at for at, entry in enumerate(entries) if entry.msgid in taken)
        if taken and not self._is_told_of_taken:
            self._is_told_of_taken = True  # there may be many, and one thing to do
            self._tell(
                f"{min(taken)}, and maybe others, cannot be kept: another message has this id; was an old ids.json put"
                " back? Stop the server, delete ids.json in its data folder, start it"
            )

    def _keep_one(self, entry: Entry) -> bool:
        """Write one of a batch that has something in it which the store refuses."""
        taken: set[str] = set()
        try:
            done = self._until_done(lambda: taken.update(self._store.write([entry])))
        except Damaged:
            raise
        except Exception as error:
            self.unkept.add(self.written + 1)
            self._tell(f"{entry.msgid} cannot be kept: {type(error).__name__}: {error}")
            done = True
        if done:
            self._note_taken([entry], taken)
            self._count([entry])
        return done

    def _count(self, items: Sequence[Entry | Move]) -> None:
        self.written += len(items)
        if self.is_awaited:
            self._settled()
        self._until_done(lambda: self.wrote(items))

    def _until_done(self, act: Callable[[], None]) -> bool:
        """Try until the store lets us; False when the time for that is over."""
        tries = 0
        while True:
            try:
                act()
            except Unavailable as error:
                if not self.is_stuck:
                    self.is_stuck = True
                    self._settled()  # nobody waits for a disk that may never come back
                    self._tell(f"nothing can be kept at present: {error}; messages are passed on, and kept later")
                if not self._pause(_PAUSES[min(tries, len(_PAUSES) - 1)]):
                    return False
                tries += 1
            else:
                if self.is_stuck:
                    self.is_stuck = False
                    self._tell(f"messages are kept again; {self.waiting} waited")
                return True

    def _pause(self, seconds: float) -> bool:
        if self._until is None:
            self._wake.clear()
            self._wake.wait(seconds)
            return True
        left = self._until - self._monotonic()
        if left <= 0:
            return False
        self._sleep(min(seconds, left))
        return True

    def _note_loss(self) -> None:
        """When there is room again, remember and tell what is missing."""
        if self._lost and self.waiting < self._most:
            since, until = (int(at * MICROSECONDS) for at in (self._lost_since, self._now()))
            lost, self._lost = self._lost, 0
            self._until_done(lambda: self._store.note_gap(since, until, lost))
            self._tell(
                f"{lost} messages were lost to the history since {datetime.fromtimestamp(self._lost_since).ctime()}"
            )
