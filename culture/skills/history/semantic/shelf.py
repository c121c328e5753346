"""The vectors that are asked about, in memory: by channel, those last asked for, up to so many bytes."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from culture.runtime import REAL, Runtime
from culture.skills.history.semantic.codes import Codes, unit
from culture.skills.history.semantic.embedder import Floats

Positions = NDArray[np.int64]
Number = TypeVar("Number", bound=np.generic)
Load = Callable[[str, int], tuple[Positions, Codes]]
"""The newest of a place, up to so many."""

MOST_BYTES = 256 << 20
MOST_ROWS = 200_000
_CHUNK = 2_048  # rows at a time: they fit into the processor's cache
_BESIDE = 12  # bytes of a row beside its code


class Rows:
    """The vectors of one channel.

    Whoever reads takes a ``Snapshot``; rows are added behind it, and those that go are only marked.
    """

    def __init__(self, positions: Positions, codes: Codes) -> None:
        self._count = len(positions)
        self._positions = positions
        self._codes = codes
        self._lengths = _lengths(codes)

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return int(self._positions.nbytes + self._codes.nbytes + self._lengths.nbytes)

    def __len__(self) -> int:
        return self._count

    def add(self, positions: Positions, codes: Codes) -> None:
        """Further ones; one that is here already is shown once all the same."""
        end = self._count + len(positions)
        if end > len(self._positions):
            self._grow(end + end // 4)
        self._positions[self._count : end] = positions
        self._codes[self._count : end] = codes
        self._lengths[self._count : end] = _lengths(codes)
        self._count = end

    def _grow(self, rows: int) -> None:
        self._positions = _larger(self._positions, rows)
        self._codes = _larger(self._codes, rows)
        self._lengths = _larger(self._lengths, rows)

    def remove(self, gone: Iterable[int]) -> None:
        """Show these no more."""
        self._positions[: self._count][np.isin(self._positions[: self._count], list(gone))] = -1

    def snapshot(self) -> "Snapshot":
        """What there is at this moment."""
        count = self._count
        return Snapshot(self._positions[:count], self._codes[:count], self._lengths[:count])


class Snapshot:
    """What a question is compared with."""

    def __init__(self, positions: Positions, codes: Codes, lengths: Floats) -> None:
        self._positions = positions
        self._codes = codes
        self._lengths = lengths

    def ranked(self, question: Floats, since: int, first: int) -> Iterator[list[int]]:
        """Positions from one on, best first, newest first among equals: so many, then all others."""
        scores = self._scores(question)
        scores[self._positions < max(since, 0)] = -1
        hits = np.flatnonzero(scores > 0)
        if len(hits) > first:
            bar = np.partition(scores[hits], -first)[-first]
            yield self._sorted(hits[scores[hits] >= bar], scores)
            hits = hits[scores[hits] < bar]
        yield self._sorted(hits, scores)

    def _sorted(self, hits: NDArray[np.intp], scores: Floats) -> list[int]:
        order = np.lexsort((-self._positions[hits], -scores[hits]))
        return list(dict.fromkeys(self._positions[hits[order]].tolist()))

    def _scores(self, question: Floats) -> Floats:
        """The cosine of the angle between the question and each row."""
        scores = np.empty(len(self._codes), np.float32)
        direction, chunk = unit(question), np.empty((_CHUNK, self._codes.shape[1]), np.float32)
        for start in range(0, len(scores), _CHUNK):
            codes = self._codes[start : start + _CHUNK]
            some = chunk[: len(codes)]
            np.copyto(some, codes)
            # Not a product of matrices: that would be shared out to threads, which takes twenty times as long
            # where the cores have something else to do.
            np.einsum("ij,j->i", some, direction, out=scores[start : start + _CHUNK])
        scores /= self._lengths
        return scores


class Shelf:
    """Channels by when they were last asked about; used from any thread."""

    def __init__(
        self,
        load: Load,
        dimension: int,
        most_bytes: int = MOST_BYTES,
        most_rows: int = MOST_ROWS,
        runtime: Runtime = REAL,
    ) -> None:
        self._load = load
        self._most_bytes = most_bytes
        self._most_rows = max(1, min(most_rows, most_bytes // (dimension + _BESIDE)))
        self._places: OrderedDict[str, Rows] = OrderedDict()
        self._turn = runtime.lock()

    def __contains__(self, place: str) -> bool:
        return place in self._places

    def get(self, place: str) -> Snapshot:
        """What there is of a channel, read from the file where it is not here."""
        with self._turn:
            rows = self._places.get(place)
            if rows is None:
                rows = self._places[place] = Rows(*self._load(place, self._most_rows))
            self._places.move_to_end(place)
            self._make_room()
            return rows.snapshot()

    def add(self, place: str, positions: Positions, codes: Codes) -> None:
        """These are in the file as well."""
        with self._turn:
            rows = self._places.get(place)
            if rows is None:
                return
            rows.add(positions, codes)
            if len(rows) > self._most_rows + self._most_rows // 4:
                del self._places[place]  # the newest are read again when somebody asks
            self._make_room()

    def remove(self, gone: Iterable[int]) -> None:
        """These are in the file no more."""
        positions = list(gone)
        if positions:
            with self._turn:
                for rows in self._places.values():
                    rows.remove(positions)

    def drop(self, *places: str) -> None:
        """Read these again when somebody asks."""
        with self._turn:
            for place in places:
                self._places.pop(place, None)

    def _make_room(self) -> None:
        while len(self._places) > 1 and sum(rows.nbytes for rows in self._places.values()) > self._most_bytes:
            self._places.popitem(last=False)


def _larger(array: NDArray[Number], rows: int) -> NDArray[Number]:
    larger = np.empty((rows, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def _lengths(codes: Codes) -> Floats:
    lengths = np.empty(len(codes), np.float32)
    for start in range(0, len(codes), _CHUNK):
        chunk = codes[start : start + _CHUNK].astype(np.float32)
        np.maximum(np.linalg.norm(chunk, axis=1), 1, out=lengths[start : start + _CHUNK])
    return lengths
