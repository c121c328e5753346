"""The search by meaning, as the rest of the history sees it."""

from importlib.util import find_spec
from pathlib import Path

from culture.config.skills import Embeddings
from culture.runtime import REAL, Runtime
from culture.skills.history.semantic.news import News
from culture.skills.history.semantic.worker import Worker
from culture.skills.history.store import Kept, Store, Unavailable, View

FILE = "vectors.db"
NO_EXTRA = "install the extra `semantic`: `culture help install` on the server's machine says how"
SWITCHED_OFF = "it is switched off here (history.semantic.enabled)"


class Semantic:
    """Finds messages by meaning; a thread of its own makes the vectors, and no method but ``search`` takes long."""

    def __init__(self, store: Store, folder: Path, settings: Embeddings, runtime: Runtime = REAL) -> None:
        self._why_not = _why_not(settings)
        self._monotonic = runtime.monotonic
        self._news = News(runtime=runtime)
        self._worker = Worker(store, folder / FILE, settings, self._news, runtime=runtime)

    @property
    def why_not(self) -> str | None:
        """What keeps it from working here at all; None when it works."""
        return self._why_not or self._worker.broken

    def start(self) -> None:
        """Begin to catch up with the history."""
        if self._why_not is None:
            self._worker.start()

    def stop(self) -> None:
        """End the thread; what is not done is found again at the next start."""
        self._worker.stop()

    def caught_up(self, seconds: float) -> bool:
        """Wait until everything that was noted can be found; False where that takes longer."""
        return self._news.settled.wait(seconds)

    def note(self, at: int | None = None) -> None:
        """Something was written, nothing of it older than ``at`` (microseconds); unsaid, it is of the last minutes."""
        self._news.note(at)

    def forget(self, position: int) -> None:
        """A message was taken back, or is no longer kept."""
        self._news.order(lambda engine: engine.forget(position))

    def move(self, old: str, new: str) -> None:
        """A channel has another name (both as the store knows them)."""
        self._news.order(lambda engine: engine.move(old, new))

    def prune(self, place: str, before: int) -> None:
        """What is older than this time (microseconds) in a channel is no longer kept."""
        self._news.order(lambda engine: engine.prune(place, before))

    def search(self, view: View, text: str, limit: int, seconds: float) -> list[Kept]:
        """What is nearest in meaning, best first, as far as the reader may see it."""
        end = self._monotonic() + seconds
        if self._why_not is not None:
            raise Unavailable(self._why_not)
        engine = self._worker.engine(seconds)
        return engine.search(view, text, limit, max(end - self._monotonic(), 0.0))


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
