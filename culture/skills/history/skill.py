"""The history skill: its parts, put together."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter

from culture.config import skills
from culture.protocol.names import fold
from culture.protocol.vocabulary import Cap
from culture.server.skill import Host, Skill
from culture.skills.history.access import Access
from culture.skills.history.archive import Archive
from culture.skills.history.chathistory import CAP, EVENTS_CAP, VERB, ChatHistory
from culture.skills.history.doors import Doors
from culture.skills.history.entry import Entry
from culture.skills.history.intake import Intake
from culture.skills.history.older import Older
from culture.skills.history.receipts import Receipts
from culture.skills.history.recorder import Recorder
from culture.skills.history.references import TYPES
from culture.skills.history.replaying import Replaying
from culture.skills.history.retention import Keeper
from culture.skills.history.semantic import Semantic
from culture.skills.history.store import Unavailable
from culture.skills.history.stores import store_of
from culture.skills.history.verb import HistoryVerb
from culture.skills.history.writer import Move, Writer

_OTHERS = 2.0  # seconds that links, which must not lack what is in the history, may take before operators hear of it
_OPENING = 5.0  # seconds to wait for the store before clients come; after that it is tried again and again

_VERB = Entry._fields.index("verb")
_AT = itemgetter(Entry._fields.index("at"))


class History(Skill):
    """Keeps what is said, and shows it to who may read it."""

    name = "history"
    Settings = skills.HistoryConfig

    def __init__(self, host: Host, settings: skills.HistoryConfig) -> None:
        super().__init__(host, settings)
        self._loop: asyncio.AbstractEventLoop | None = None
        store = self._store = store_of(settings, host.folder, host.name, host.now, runtime=host.runtime)
        self._writer = Writer(store, settings.pending, self._settle, self._tell, runtime=host.runtime)
        self._writer.failed = self._failed
        self._writer.wrote = self._wrote
        self._writer.before = self._await_links
        host.keeps(self._writer.mark)
        host.counter("history_written_total", "Messages on disk since the start.", lambda: self._writer.written)
        host.gauge("history_waiting", "Messages on their way there.", lambda: self._writer.waiting)
        host.counter("history_lost_total", "Messages that found no room.", lambda: self._writer.lost_in_all)
        self._intake = Intake(host, self._writer, settings.pending // 2)
        self._archive = Archive(store, self._intake, runtime=host.runtime)
        self._semantic = Semantic(store, host.folder, settings.semantic, runtime=host.runtime)
        self._keeper = Keeper(self._archive, settings, host.now, self._semantic.prune)
        access = Access(host)
        older = Older(self._archive, access)
        host.remember(older.find)
        host.offer_stored(older.stored)
        doors = Doors(host, self._archive)
        host.offer_closed(doors.find)
        self._places = (
            Recorder(host, self._intake),
            Receipts(host, self._intake),
            access,
            doors,
            HistoryVerb(self._archive, access, self._semantic, settings.rows, settings.search_timeout),
            ChatHistory(self._archive, access, settings.rows),
            Replaying(host, self._archive, access, settings.replay),
        )

    def places(self) -> Iterable[object]:
        """The objects whose hooks and verbs are the skill's."""
        return self._places

    def caps(self) -> Mapping[str, str | None]:
        """The capabilities it offers."""
        return {Cap.RECEIPTS.value: None, CAP: None, EVENTS_CAP: None}

    def isupport(self) -> Iterable[str]:
        """What 005 says about it."""
        return (f"{VERB}={self.settings.rows}", f"MSGREFTYPES={','.join(TYPES)}")

    async def start(self) -> None:
        """Open the store; one that is not to be had yet is tried again beside everything else."""
        self._loop = asyncio.get_running_loop()
        self._writer.start()
        await asyncio.to_thread(self._writer.opened.wait, _OPENING)
        self._semantic.start()
        self.host.start(self._keeper.run())

    async def stop(self) -> None:
        """Write what is left; that comes first, whatever else takes its time."""
        patience = self.host.config.limits.shutdown_timeout / 2
        await asyncio.to_thread(self._writer.stop, patience)
        self._archive.close()
        await asyncio.to_thread(self._semantic.stop)

    def _await_links(self) -> None:
        """In the writer's thread: what is stored is told to peers too, whatever happens next."""
        if not self.host.await_first(_OTHERS):
            raise Unavailable("what links carry is not on disk yet")

    def _settle(self) -> None:
        self._soon(self._intake.settle)

    def _wrote(self, items: Sequence[Entry | Move]) -> None:
        """In the writer's thread: what is found by meaning follows what is kept."""
        entries = [item for item in items if isinstance(item, Entry)]
        if entries:
            self._semantic.note(min(map(_AT, entries)))
        for item in items:
            if isinstance(item, Move):
                self._semantic.move(fold(item.old), fold(item.new))
            elif item[_VERB] == "REDACT" and (position := self._store.position(item.place, item.redacts)) is not None:
                self._semantic.forget(position)

    def _tell(self, text: str) -> None:
        self._soon(self.host.tell_operators, text)

    def _failed(self, error: BaseException) -> None:
        self._soon(self.host.failed, error)

    def _soon(self, act: Callable[..., None], *args: object) -> None:
        """Do it on the loop, from whichever thread."""
        if self._loop is not None and not self._loop.is_closed():
            with suppress(RuntimeError):  # it is, by now
                self._loop.call_soon_threadsafe(act, *args)
