"""One connection: lines in, lines out, and the certainty that it still lives."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from itertools import count

from culture.protocol.message import Message, ProtocolError
from culture.protocol.stream import LineBuffer

log = logging.getLogger(__name__)

_AT_ONCE = 1 << 16
_LINE = 1 << 17
_UNSENT = 1 << 18
_AT_LEAST = 30
"""Lines that no server takes long for."""
_LONGEST_BACKLOG = 300.0
_SECRET = ("PASS", "AUTHENTICATE", "OPER", "REGISTER")
_ASKED = "alive"
_SLOWEST = 2.0
"""Commands per second that a server takes at least, once it slows us down."""


class IrcConnection:
    """Owns the socket; whoever reads it ends with it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silence: float) -> None:
        self._reader = reader
        self._writer = writer
        writer.transport.set_write_buffer_limits(_UNSENT)
        self._silence = silence
        self._heard = asyncio.get_running_loop().time()
        self._tokens = count(1)
        self._debt = 0.0
        self._debt_at = self._heard
        self.end = "the server closed the connection"
        """Why it ended."""

    async def lines(self) -> AsyncIterator[Message]:
        """What the server says, until the connection ends; what is no line of IRC is passed over."""
        buffer = LineBuffer(_LINE)
        while data := await self._read():
            self._heard = asyncio.get_running_loop().time()
            for raw in buffer.feed(data):
                try:
                    message = Message.parse(raw.decode(errors="replace"))
                except ProtocolError:
                    continue
                yield message

    async def _read(self) -> bytes:
        try:
            return await self._reader.read(_AT_ONCE)
        except OSError as error:
            self.end = error.strerror or str(error)
            return b""

    def write(self, *messages: Message) -> None:
        """Send lines; none of them can become two."""
        data = b"".join(map(bytes, messages))
        if log.isEnabledFor(logging.DEBUG):
            for message in messages:
                log.debug("→ %s", _shown(message))
        if not self._writer.is_closing():
            self._owe(len(messages))
            self._writer.write(data)

    def _owe(self, lines: int) -> None:
        now = asyncio.get_running_loop().time()
        self._debt = max(0.0, self._debt - (now - self._debt_at) * _SLOWEST) + lines
        self._debt_at = now

    @property
    def backlog(self) -> float:
        """How many seconds the server may take for what was sent: it slows down whoever says much."""
        since = asyncio.get_running_loop().time() - self._debt_at
        return min(_LONGEST_BACKLOG, max(0.0, (self._debt - _AT_LEAST) / _SLOWEST - since))

    async def drain(self) -> None:
        """Wait while the server reads slower than we write."""
        with contextlib.suppress(OSError):
            await self._writer.drain()

    async def keep_alive(self) -> None:
        """Ask when nothing has come for a while, and end the connection when nothing comes at all."""
        loop = asyncio.get_running_loop()
        while (quiet := loop.time() - self._heard) < self._silence + self.backlog:
            step = self._silence / 3
            if quiet >= step:
                self._owe(-1)  # it is answered or not, and nothing is behind it
                self.write(Message("PING", (f"{_ASKED}{next(self._tokens)}",)))
            await asyncio.sleep(step - quiet if quiet < step else step)
        self.abort(f"nothing came from the server for {self._silence:g} s")

    def abort(self, reason: str) -> None:
        """End it at once."""
        self.end = reason
        self._writer.transport.abort()

    async def close(self) -> None:
        """End it in order, as far as the other side lets us."""
        self._writer.close()
        try:
            async with asyncio.timeout(1.0):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()


def _shown(message: Message) -> Message | str:
    """A line as the log may have it; a channel's key is a secret too."""
    if message.verb in _SECRET:
        return message.verb
    return message._replace(params=message.params[:1]) if message.verb == "JOIN" else message
