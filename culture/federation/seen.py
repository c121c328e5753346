"""Which messages are known: one bit for each number of each line of ids."""

from culture.federation.codec.fields import Garbled

MOST_LINES = 20_000
"""So many there may be: what a peer makes up must not fill the memory."""
_PAGE = 12  # bits of a number that are its place in a page


class Marks:
    """The numbers of one line (an origin and its epoch) that are known; all below ``floor`` are.

    Copies come by several ways, late and out of order, so nothing is concluded from the highest number.
    """

    __slots__ = ("_pages", "floor")

    def __init__(self, floor: int = 0) -> None:
        self.floor = floor
        self._pages: dict[int, bytearray] = {}

    def __contains__(self, seq: int) -> bool:
        """Is it known?"""
        if seq < self.floor:
            return True
        page = self._pages.get(seq >> _PAGE)
        return page is not None and bool(page[(seq >> 3) & 511] >> (seq & 7) & 1)

    def add(self, seq: int) -> None:
        """It is from now on."""
        page = self._pages.get(seq >> _PAGE)
        if page is None:
            page = self._pages[seq >> _PAGE] = bytearray(512)
        page[(seq >> 3) & 511] |= 1 << (seq & 7)


class Seen:
    """The marks of every line."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], Marks] = {}

    def knows(self, origin: str, epoch: str, seq: int) -> bool:
        """Is this message known?"""
        marks = self._lines.get((origin, epoch))
        return marks is not None and seq in marks

    def add(self, origin: str, epoch: str, seq: int) -> None:
        """It is from now on."""
        marks = self._lines.get((origin, epoch))
        if marks is None:
            marks = self._lines[origin, epoch] = Marks()
        marks.add(seq)

    def check_room(self, origin: str, epoch: str) -> None:
        """Is there room for a message of this line, that a peer tells of? Raises Garbled."""
        if not self.has_room(origin, epoch):
            raise Garbled("more lines of ids than a mesh has")

    def has_room(self, origin: str, epoch: str) -> bool:
        """The same, to be asked."""
        return len(self._lines) < MOST_LINES or (origin, epoch) in self._lines

    def begin(self, origin: str, epoch: str, floor: int) -> None:
        """Everything below the floor is known, or too old to be asked for."""
        self._lines[origin, epoch] = Marks(floor)
