"""The search by meaning, as the rest of the history sees it."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from culture.config.skills import Embeddings
from culture.skills.history.semantic.pace import Pace
from culture.skills.history.store import Kept, Store, Unavailable, View, position_at

if TYPE_CHECKING:
    from culture.skills.history.semantic.engine import Engine

log = logging.getLogger(__name__)

FILE = "vectors.db"
NO_EXTRA = 'install the extra: pip install "culture[semantic]"'
SWITCHED_OFF = "it is switched off here (history.semantic.enabled)"
_LOADING = "the model is being loaded: ask again in a moment"
_GATHER = 0.2  # seconds between what is written and a look for it
_RECENT = position_at(300_000_000)  # before the last message known, where a new one may be
_AGAIN = 24 * 3600.0  # seconds between two sweeps through everything
_PATIENCE = 5.0
_PAUSES = (1.0, 2.0, 5.0, 15.0, 60.0)


class Semantic:
    """Finds messages by meaning; a thread of its own makes the vectors, and no method but ``search`` takes long."""

    def __init__(self, store: Store, folder: Path, settings: Embeddings) -> None:
        self._store = store
        self._path = folder / FILE
        self._settings = settings
        self._why_not = _why_not(settings)
        self._trouble = _LOADING
        self._engine: Engine | None = None
        self._ready = threading.Event()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._turn = threading.Lock()
        self._noted: int | None = None  # where something new may be, from this position on
        self._is_noted = False
        self._orders: deque[Callable[[Engine], None]] = deque()
        self._failures = 0
        self._swept = time.monotonic()
        self._close: Callable[[], None] = lambda: None
        self._thread: threading.Thread | None = None

    @property
    def why_not(self) -> str | None:
        """What keeps it from working here at all; None when it works."""
        return self._why_not

    def start(self) -> None:
        """Begin to catch up with the history."""
        if self._why_not is None:
            self._thread = threading.Thread(target=self._run, name="history-semantic", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread; what is not done is found again at the next start."""
        self._stopping.set()
        self._wake.set()
        self._close()
        if self._thread is not None:
            self._thread.join(_PATIENCE)

    def note(self, at: int | None = None) -> None:
        """Something was written, nothing of it older than ``at`` (microseconds); unsaid, it is of the last minutes."""
        with self._turn:
            self._is_noted = True
            if at is not None:
                after = position_at(at) - 1
                self._noted = after if self._noted is None else min(self._noted, after)
        self._wake.set()

    def forget(self, position: int) -> None:
        """A message was taken back, or is no longer kept."""
        self._order(lambda engine: engine.forget(position))

    def move(self, old: str, new: str) -> None:
        """A channel has another name (both as the store knows them)."""
        self._order(lambda engine: engine.move(old, new))

    def prune(self, place: str, before: int) -> None:
        """What is older than this time (microseconds) in a channel is no longer kept."""
        self._order(lambda engine: engine.prune(place, before))

    def search(self, view: View, text: str, limit: int, seconds: float) -> list[Kept]:
        """What is nearest in meaning, best first, as far as the reader may see it."""
        end = time.monotonic() + seconds
        if self._why_not is not None:
            raise Unavailable(self._why_not)
        if self._trouble is _LOADING:
            self._ready.wait(seconds)
        if self._engine is None:
            raise Unavailable(self._why_not or self._trouble)
        return self._engine.search(view, text, limit, max(end - time.monotonic(), 0.0))

    def _order(self, order: Callable[["Engine"], None]) -> None:
        if self._why_not is None:
            self._orders.append(order)
            self._wake.set()

    def _run(self) -> None:
        try:
            self._engine = self._opened()
            self._ready.set()
            if self._engine is not None:
                self._work(self._engine)
        except ImportError as error:
            self._break(f"{error}; {NO_EXTRA}")
        except Exception:
            log.exception("the search by meaning has failed")
            self._break("it has failed, and the server's log says why")
        finally:
            self._ready.set()
            if self._engine is not None:
                self._engine.close()

    def _break(self, why: str) -> None:
        self._why_not = why
        self._orders.clear()

    def _opened(self) -> "Engine | None":
        """The model and the file of vectors, as soon as both can be had; None where we are to stop before."""
        # Both need the extra, and take their time.
        from culture.skills.history.semantic.engine import Engine, make_embedder

        embedder = make_embedder(self._settings)
        self._close = embedder.close
        while not self._stopping.is_set():
            try:
                engine = Engine(self._store, self._path, embedder)
            except Unavailable as error:
                self._trouble = str(error)
                self._pause(error)
            else:
                self._is_well()
                engine.whole.begin(-1)
                return engine
        return None

    def _work(self, engine: "Engine") -> None:
        pace = Pace()
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                is_more = self._advance(engine)
            except Unavailable as error:
                self._pause(error)
                continue
            self._is_well()
            if is_more:
                self._stopping.wait(pace.rest())
            elif self._wake.wait(max(self._swept + _AGAIN - time.monotonic(), 0.0)):
                self._stopping.wait(_GATHER)
            else:
                self._swept = time.monotonic()
                engine.whole.begin(-1)

    def _advance(self, engine: "Engine") -> bool:
        while self._orders:
            self._orders[0](engine)
            self._orders.popleft()
        with self._turn:
            is_noted, after = self._is_noted, self._noted
            self._is_noted, self._noted = False, None
        if is_noted:
            engine.news.begin(max(engine.tip() - _RECENT, -1) if after is None else after)
        return engine.step()

    def _pause(self, error: Unavailable) -> None:
        if not self._failures:
            log.warning("messages cannot be made ready for the search by meaning: %s", error)
        self._stopping.wait(_PAUSES[min(self._failures, len(_PAUSES) - 1)])
        self._failures += 1

    def _is_well(self) -> None:
        if self._failures:
            log.info("messages are made ready for the search by meaning again")
        self._failures = 0


def _why_not(settings: Embeddings) -> str | None:
    if not settings.enabled:
        return SWITCHED_OFF
    needed = ("numpy",) if settings.url is not None else ("numpy", "wordllama")
    return None if all(map(_is_installed, needed)) else NO_EXTRA


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False
