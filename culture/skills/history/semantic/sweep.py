"""Walking through the history, to see which messages have no vector yet and which vectors no message any more."""

from collections.abc import Sequence

import numpy as np

from culture.skills.history.semantic.codes import Codes, coded
from culture.skills.history.semantic.embedder import Embedder, Indigestible
from culture.skills.history.semantic.shelf import Shelf
from culture.skills.history.semantic.vectors import Row, Vectors, packed
from culture.skills.history.store import Kept, Store, Unavailable
from culture.skills.history.words import plain

PROBE = "a question about the weather"
"""What every model takes."""
_WALK = 256  # messages compared at a time
_LONGEST = 8_000  # characters of a text that count
_LAST = (1 << 63) - 1


class Model:
    """The embedder, as it is known to the file of vectors."""

    def __init__(self, embedder: Embedder, vectors: Vectors) -> None:
        self._embedder = embedder
        self.batch = embedder.batch
        try:
            self.dimension = embedder.embed([PROBE]).shape[1]
        except Indigestible as error:
            raise Unavailable(str(error)) from error
        self.number = vectors.model(embedder.name, self.dimension)

    def codes(self, texts: Sequence[str], seconds: float | None = None) -> Codes:
        """One row per text, of zeros where there is nothing to say about it."""
        codes = np.zeros((len(texts), self.dimension), np.int8)
        prepared = [plain(text).strip()[:_LONGEST] for text in texts]
        worth = [number for number, text in enumerate(prepared) if text]
        if worth:
            codes[worth] = self._codes([prepared[number] for number in worth], seconds)
        return codes

    def _codes(self, texts: list[str], seconds: float | None) -> Codes:
        try:
            rows = self._embedder.embed(texts, seconds)
        except Indigestible as error:
            return self._without(texts, seconds, error)
        if rows.shape[1] != self.dimension:
            raise Unavailable(f"the model gives vectors of {rows.shape[1]} numbers where it gave {self.dimension}")
        return coded(rows)

    def _without(self, texts: list[str], seconds: float | None, error: Indigestible) -> Codes:
        """As many as can be had: half by half, down to the text that is refused."""
        if len(texts) > 1:
            half = len(texts) // 2
            return np.concatenate((self._codes(texts[:half], seconds), self._codes(texts[half:], seconds)))
        try:
            self._embedder.embed([PROBE], seconds)
        except Indigestible:
            raise Unavailable(str(error)) from error  # it refuses everything
        return np.zeros((1, self.dimension), np.int8)


class Sweep:
    """From a position to the end of the history, a few messages at a time."""

    def __init__(self, store: Store, vectors: Vectors, shelf: Shelf, model: Model) -> None:
        self._store = store
        self._vectors = vectors
        self._shelf = shelf
        self._model = model
        self._after = _LAST
        self._walk = _WALK

    def begin(self, after: int) -> None:
        """Start behind this position, or earlier where it has not come so far yet."""
        self._after = min(self._after, after)

    @property
    def is_done(self) -> bool:
        """Is there nothing left?"""
        return self._after == _LAST

    def step(self) -> None:
        """Go on a little; after an error the same messages come again."""
        after = self._after
        found = self._store.messages(after, self._walk)
        is_end = len(found) < self._walk
        known = self._vectors.between(after, _LAST if is_end else found[-1].position)
        missing = [each for each in found if known.get(each.position, ("", 0))[1] != self._model.number]
        if len(missing) > self._model.batch:
            missing = missing[: self._model.batch]
            last, is_end = missing[-1].position, False
            found = [each for each in found if each.position <= last]
            known = {position: where for position, where in known.items() if position <= last}
        self._mend(found, known)
        self._embed(missing)
        self._after = _LAST if is_end else found[-1].position
        self._walk = self._model.batch if missing else _WALK

    def _mend(self, found: Sequence[Kept], known: dict[int, tuple[str, int]]) -> None:
        """Take out what is no longer there, and follow what is elsewhere now."""
        gone = known.keys() - {each.position for each in found}
        moved = [
            (each.entry.place, each.position)
            for each in found
            if each.position in known and known[each.position][0] != each.entry.place
        ]
        if gone or moved:
            self._vectors.change(self._model.number, (), gone, moved)
            self._shelf.remove(gone)
            self._shelf.drop(*{place for place, _ in moved}, *{known[position][0] for _, position in moved})

    def _embed(self, missing: Sequence[Kept]) -> None:
        if not missing:
            return
        codes = self._model.codes([each.entry.text for each in missing])
        rows = [Row(each.position, each.entry.place, code) for each, code in zip(missing, packed(codes), strict=True)]
        self._vectors.change(self._model.number, rows, (), ())
        for place in {row.place for row in rows}:
            if place in self._shelf:
                here = [number for number, row in enumerate(rows) if row.place == place and row.vector]
                self._shelf.add(place, np.array([rows[number].position for number in here], np.int64), codes[here])
