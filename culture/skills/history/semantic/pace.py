"""How fast to work beside a server that others wait for."""

import time

_MOST = 0.5
_LEAST = 0.05


class Pace:
    """Shares of time: half where the server is idle, a twentieth where it is busy.

    The thread is not niced: while it holds the interpreter's lock the server would wait for it, however long
    other programs keep it from running.
    """

    def __init__(self) -> None:
        self._wall, self._process, self._own = _clocks()

    def rest(self) -> float:
        """How long to pause after what was done since the last pause."""
        wall, process, own = _clocks()
        passed, worked = wall - self._wall, own - self._own
        busy = (process - self._process - worked) / max(passed, 1e-6)
        self._wall, self._process, self._own = wall, process, own
        share = max(_LEAST, _MOST * (1 - busy))
        return worked / share - worked


def _clocks() -> tuple[float, float, float]:
    return time.monotonic(), time.process_time(), time.thread_time()
