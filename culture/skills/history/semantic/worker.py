"""The thread that makes vectors: as fast as it may, again and again where something is in the way."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from culture.config.skills import Embeddings
from culture.runtime import REAL, Runtime
from culture.skills.history.semantic.news import News
from culture.skills.history.semantic.pace import Pace
from culture.skills.history.store import Store, Unavailable

if TYPE_CHECKING:
    from culture.skills.history.semantic.engine import Engine

log = logging.getLogger(__name__)

_LOADING = "the model is being loaded, ask again in a moment"
_GATHER = 0.2  # seconds between what is written and a look for it
_AGAIN = 24 * 3600.0  # seconds between two walks through everything
_PATIENCE = 5.0
_PAUSES = (1.0, 2.0, 5.0, 15.0, 60.0)


class Worker:
    """Loads the model, catches up with the history, then follows the news."""

    def __init__(self, store: Store, path: Path, settings: Embeddings, news: News, runtime: Runtime = REAL) -> None:
        self._store = store
        self._path = path
        self._settings = settings
        self._news = news
        self._runtime = runtime
        self._monotonic = runtime.monotonic
        self._engine: Engine | None = None
        self._is_tried = runtime.event()
        self._trouble = _LOADING
        self._failures = 0
        self._stopping = runtime.event()
        self._close: Callable[[], None] = lambda: None
        self._thread = runtime.thread(self._run, "history-semantic")
        self.broken: str | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End within seconds."""
        self._stopping.set()
        self._news.wake.set()
        self._close()
        if self._thread.is_alive():
            self._thread.join(_PATIENCE)

    def engine(self, seconds: float) -> "Engine":
        """What answers, waited for while it is being loaded; Unavailable where there is none."""
        self._is_tried.wait(seconds)
        if self._engine is None:
            raise Unavailable(self.broken or self._trouble)
        return self._engine

    def _run(self) -> None:
        try:
            self._engine = self._opened()
            self._is_tried.set()
            if self._engine is not None:
                self._work(self._engine)
        except ImportError as error:
            log.error("the search by meaning cannot be loaded: %s", error)
            self.broken = f"it cannot be loaded: {error}"
        except Exception:
            log.exception("the search by meaning has failed")
            self.broken = "it has failed, and the server's log says why"
        finally:
            self._is_tried.set()
            if self._engine is not None:
                self._engine.close()

    def _opened(self) -> "Engine | None":
        """The model and the file of vectors, as soon as both can be had; None where we are to stop before."""
        # Both need the extra, and take their time.
        from culture.skills.history.semantic.engine import Engine, make_embedder

        embedder = make_embedder(self._settings, runtime=self._runtime)
        self._close = embedder.close
        while not self._stopping.is_set():
            try:
                engine = Engine(self._store, self._path, embedder, runtime=self._runtime)
            except Unavailable as error:
                self._trouble = str(error)
                self._is_tried.set()
                self._pause(error)
            else:
                self._recover()
                return engine
        return None

    def _work(self, engine: "Engine") -> None:
        pace = Pace(runtime=self._runtime)
        walk_at = self._monotonic()
        while not self._stopping.is_set():
            if self._monotonic() >= walk_at:
                engine.whole.begin(-1)
                walk_at = self._monotonic() + _AGAIN
            try:
                self._news.apply(engine)
                is_more = engine.step()
            except Unavailable as error:
                self._pause(error)
                continue
            self._recover()
            if is_more:
                self._stopping.wait(pace.rest())
                continue
            self._news.settle()
            self._news.wake.wait(max(walk_at - self._monotonic(), 0.0))
            self._stopping.wait(_GATHER)

    def _pause(self, error: Unavailable) -> None:
        if not self._failures and not self._stopping.is_set():
            log.warning("messages cannot be made ready for the search by meaning: %s", error)
        self._stopping.wait(_PAUSES[min(self._failures, len(_PAUSES) - 1)])
        self._failures += 1

    def _recover(self) -> None:
        if self._failures:
            log.info("messages are made ready for the search by meaning again")
        self._failures = 0
