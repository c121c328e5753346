"""Which messages are known: one bit for each number of each line of ids."""

_MOST = 1 << 26  # numbers that one line's bits may span (8 MiB); older ones count as known
_BEFORE = 1 << 20  # room for what comes later with a smaller number than the first that came


class Marks:
    """The numbers of one line (an origin and its epoch) that are known; all below ``floor`` are."""

    __slots__ = ("_bits", "floor")

    def __init__(self, floor: int) -> None:
        self.floor = floor
        self._bits = bytearray()

    def __contains__(self, seq: int) -> bool:
        """Is it known?"""
        at = seq - self.floor
        if at < 0:
            return True
        byte = at >> 3
        return byte < len(self._bits) and bool(self._bits[byte] >> (at & 7) & 1)

    def add(self, seq: int) -> None:
        """It is from now on."""
        at = seq - self.floor
        if at < 0:
            return
        if at >= _MOST:
            self._forget(seq)
            at = seq - self.floor
        byte = at >> 3
        if byte >= len(self._bits):
            self._bits.extend(bytes(byte + 1 - len(self._bits) + 1024))
        self._bits[byte] |= 1 << (at & 7)

    def _forget(self, seq: int) -> None:
        """Let go of the smallest numbers, so that this one has room."""
        shift = min((seq - self.floor - _MOST // 2) >> 3, len(self._bits))
        del self._bits[:shift]
        self.floor = (seq - _MOST // 2) & ~7 if not self._bits else self.floor + (shift << 3)


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
            marks = self._lines[origin, epoch] = Marks(max(0, seq - _BEFORE) & ~7)
        marks.add(seq)

    def begin(self, origin: str, epoch: str, floor: int) -> None:
        """Everything below the floor is known, or too old to be asked for."""
        self._lines[origin, epoch] = Marks(floor & ~7)
