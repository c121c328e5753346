"""How fast to work beside a server that others wait for."""

from culture.runtime import REAL, Runtime

_MOST = 0.5
_LEAST = 0.05


class Pace:
    """Shares of time: half where the server is idle, a twentieth where it is busy.

    The thread is not niced: while it holds the interpreter's lock the server would wait for it, however long
    other programs keep it from running.
    """

    def __init__(self, runtime: Runtime = REAL) -> None:
        self._runtime = runtime
        self._wall, self._process, self._own = self._clocks()

    def rest(self) -> float:
        """How long to pause after what was done since the last pause."""
        wall, process, own = self._clocks()
        passed, worked = wall - self._wall, own - self._own
        busy = (process - self._process - worked) / max(passed, 1e-6)
        self._wall, self._process, self._own = wall, process, own
        share = max(_LEAST, _MOST * (1 - busy))
        return worked / share - worked

    def _clocks(self) -> tuple[float, float, float]:
        return self._runtime.monotonic(), self._runtime.process_time(), self._runtime.thread_time()
