"""Not faster than a server takes it: a few lines at once, then one after the other."""

import asyncio

from culture.lib.ratelimit import FixedRate, TokenBucket

_FOREIGN = FixedRate(burst=5, rate=0.5)


class SendPace:
    """Lets lines through at the pace of a server that is not ours."""

    def __init__(self) -> None:
        self._bucket = TokenBucket(asyncio.get_running_loop().time())

    async def wait(self, lines: int) -> None:
        """Until so many lines may go."""
        pause = self._bucket.spend(lines, _FOREIGN, asyncio.get_running_loop().time())
        if pause:
            await asyncio.sleep(pause)
