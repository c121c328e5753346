"""Not faster than a server takes it: a few lines at once, then one after the other."""

import asyncio

BURST = 5
INTERVAL = 2.0


class TokenBucket:
    """Tokens that come back with time. Without I/O: it is told what time it is."""

    def __init__(self, now: float, burst: int = BURST, interval: float = INTERVAL) -> None:
        self._tokens = float(burst)
        self._at = now
        self._burst = burst
        self._interval = interval

    def take(self, count: int, now: float) -> float:
        """Take so many; the seconds to wait before they may be used."""
        self._tokens = min(self._burst, self._tokens + max(0.0, now - self._at) / self._interval)
        self._at = now
        self._tokens -= count
        return max(0.0, -self._tokens * self._interval)


class SendPace:
    """Lets lines through at the pace of a server that is not ours."""

    def __init__(self) -> None:
        self._bucket = TokenBucket(asyncio.get_running_loop().time())

    async def wait(self, lines: int) -> None:
        """Until so many lines may go."""
        pause = self._bucket.take(lines, asyncio.get_running_loop().time())
        if pause:
            await asyncio.sleep(pause)
