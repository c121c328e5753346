"""The parts of the search by meaning that need the extra: the model, the vectors, what is in memory of them."""

from functools import partial
from pathlib import Path

import numpy as np

from culture.config.skills import Embeddings
from culture.runtime import REAL, Runtime
from culture.skills.history.semantic.embedder import Embedder
from culture.skills.history.semantic.shelf import Shelf
from culture.skills.history.semantic.sweep import Model, Sweep
from culture.skills.history.semantic.vectors import Vectors
from culture.skills.history.store import Kept, Store, TooSlow, View, position_at

_LOOKED_AT = 4  # times as many as are wanted, for those that the reader may not see
_AT_ONCE = 500  # messages asked from the store
_MOST = 20_000  # messages looked at for one question


class Engine:
    """Answers questions, and works through the history in two sweeps: what is new, and everything."""

    def __init__(self, store: Store, path: Path, embedder: Embedder, runtime: Runtime = REAL) -> None:
        self._store = store
        self._monotonic = runtime.monotonic
        self.embedder = embedder
        self._vectors = Vectors(path, runtime=runtime)
        try:
            self._model = Model(embedder, self._vectors)
        except BaseException:
            self._vectors.close()
            raise
        model = self._model
        load = partial(self._vectors.load, model.number, model.dimension)
        self._shelf = Shelf(load, model.dimension, runtime=runtime)
        self.news = Sweep(store, self._vectors, self._shelf, model)
        self.whole = Sweep(store, self._vectors, self._shelf, model)

    def close(self) -> None:
        """Let go of the file and of the model."""
        self.embedder.close()
        self._vectors.close()

    def tip(self) -> int:
        """The last position that has a vector."""
        return self._vectors.tip()

    def step(self) -> bool:
        """Work a little, on what is new first; False when nothing is left to do."""
        sweep = self.whole if self.news.is_done else self.news
        if sweep.is_done:
            return False
        sweep.step()
        return True

    def forget(self, position: int) -> None:
        """A message is no longer there."""
        self._vectors.change(self._model.number, (), (position,), ())
        self._shelf.remove((position,))

    def move(self, old: str, new: str) -> None:
        """A channel has another name."""
        self._vectors.move(old, new)
        self._shelf.drop(old, new)

    def prune(self, place: str, before: int) -> None:
        """What is older than this time (microseconds) in a channel is no longer there."""
        self._vectors.prune(place, position_at(before))
        self._shelf.drop(place)

    def search(self, view: View, text: str, limit: int, seconds: float) -> list[Kept]:
        """What the reader may see, best first."""
        end = self._monotonic() + seconds
        question = self._model.codes([text], seconds)[0].astype(np.float32)
        found: list[Kept] = []
        looked_at = 0
        if not question.any():
            return found
        for positions in self._shelf.get(view.place).ranked(question, position_at(view.since), limit * _LOOKED_AT):
            for start in range(0, len(positions), _AT_ONCE):
                # The best are shown in any case: whoever asked first has waited for the vectors to be read.
                if looked_at and self._monotonic() > end:
                    raise TooSlow
                found += self._store.get(view, positions[start : start + _AT_ONCE])
                looked_at += _AT_ONCE
                if len(found) >= limit or looked_at >= _MOST:
                    return found[:limit]
        return found


def make_embedder(settings: Embeddings, runtime: Runtime = REAL) -> Embedder:
    """The embedder that is configured; what only one of them needs is imported with it."""
    if settings.url is not None:
        from culture.skills.history.semantic.endpoint import Endpoint

        return Endpoint(settings, runtime=runtime)
    from culture.skills.history.semantic.offline import WordLlama

    return WordLlama()
