"""TCP and TLS connections: opens one, checks the certificate, reads and writes lines, sends PING."""

import asyncio
import contextlib
import hashlib
import ipaddress
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from itertools import count

from culture.config.peer_uid import PortHeld, check_peer
from culture.protocol.message import Message, ProtocolError
from culture.protocol.stream import LineBuffer
from culture.runtime import REAL, Runtime
from culture.transport.types import Address, ClientIdentity, Hopeless, WrongServer

_READ_LIMIT = 1 << 18
log = logging.getLogger(__name__)

_READ_BYTES = 1 << 16
_MAX_LINE_BYTES = 1 << 17
_WRITE_BUFFER_BYTES = 1 << 18
_FREE_LINES = 30
"""Lines that every server processes without delay."""
_MAX_BACKLOG = 300.0
_SECRET_VERBS = ("PASS", "AUTHENTICATE", "OPER", "REGISTER")
_PING_TOKEN = "alive"
_SLOWEST = 2.0
"""Commands per second that a server processes at least, once it throttles us."""


async def dial(
    address: Address, identity: ClientIdentity, *, runtime: Runtime = REAL
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection to the server and check its certificate; send nothing on it.

    Raises ``WrongServer`` for an unexpected certificate, ``PortHeld`` if another user of this machine listens on
    the port, ``Hopeless`` if the client certificate cannot be loaded, OSError if nobody listens.
    """
    if not (address.tls or address.fingerprint):
        return await _dial_plain(address, runtime=runtime)
    context = _context(address, identity)
    try:
        reader, writer = await asyncio.open_connection(address.host, address.port, ssl=context, limit=_READ_LIMIT)
    except ssl.SSLCertVerificationError as error:
        raise WrongServer(f"{address.host} is not trusted: {error.verify_message}") from error
    if address.fingerprint:
        try:
            _check_pin(writer, address)
        except Hopeless:
            writer.transport.abort()
            raise
    return reader, writer


async def _dial_plain(address: Address, *, runtime: Runtime) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect without TLS to the first address of the host that accepts.

    Skips a local address if a process of another user of this machine listens on the port. If no address is left,
    raises ``PortHeld`` if one was skipped for this reason, else OSError.
    """
    loop = asyncio.get_running_loop()
    port_held: OSError | None = None
    failure = OSError(f"{address.host} has no address")
    for family, kind, number, _, endpoint in await loop.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM
    ):
        sock = runtime.new_socket(family, kind, number)
        try:
            sock.setblocking(False)
            await loop.sock_connect(sock, endpoint)
            check_peer(sock, address.user, runtime=runtime)
            return await asyncio.open_connection(sock=sock, limit=_READ_LIMIT)
        except PortHeld as error:
            sock.close()
            port_held = port_held or error
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
    raise port_held or failure


def is_private(writer: asyncio.StreamWriter) -> bool:
    """Whether nobody else can read what is sent: the connection uses TLS or a loopback address."""
    if writer.get_extra_info("ssl_object") is not None:
        return True
    peer = writer.get_extra_info("peername")
    try:
        return bool(peer) and ipaddress.ip_address(peer[0].partition("%")[0]).is_loopback
    except ValueError:
        return False


def normalize_fingerprint(text: str) -> str:
    """Return a certificate fingerprint in lower case, without colons and spaces, for comparison."""
    return text.replace(":", "").replace(" ", "").lower()


def _context(address: Address, identity: ClientIdentity) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if address.fingerprint:
        # The pinned fingerprint identifies the certificate; its issuer does not matter.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if identity.certificate is not None:
        try:
            context.load_cert_chain(identity.certificate, identity.key)
        except (OSError, ssl.SSLError) as error:
            raise Hopeless(f"{identity.certificate} cannot be used as a certificate: {error}") from error
    return context


def _check_pin(writer: asyncio.StreamWriter, address: Address) -> None:
    tls = writer.get_extra_info("ssl_object")
    actual = hashlib.sha256(tls.getpeercert(binary_form=True)).hexdigest()
    if actual != normalize_fingerprint(address.fingerprint or ""):
        raise WrongServer(f"{address.host} shows another certificate than expected; its fingerprint is {actual}")


class IrcConnection:
    """One socket to a server; iterating over ``lines()`` ends when the connection ends."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silence: float) -> None:
        self._reader = reader
        self._writer = writer
        writer.transport.set_write_buffer_limits(_WRITE_BUFFER_BYTES)
        self._silence = silence
        self._last_data_at = asyncio.get_running_loop().time()
        self._tokens = count(1)
        self._debt = 0.0
        self._debt_at = self._last_data_at
        self.end = "the server closed the connection"
        """Why the connection ended."""

    async def lines(self) -> AsyncIterator[Message]:
        """Iterate over the server's lines until the connection ends; invalid lines are skipped."""
        buffer = LineBuffer(_MAX_LINE_BYTES)
        while data := await self._read():
            self._last_data_at = asyncio.get_running_loop().time()
            for raw in buffer.feed(data):
                try:
                    message = Message.parse(raw.decode(errors="replace"))
                except ProtocolError:
                    continue
                yield message

    async def _read(self) -> bytes:
        try:
            return await self._reader.read(_READ_BYTES)
        except OSError as error:
            self.end = error.strerror or str(error)
            return b""

    def write(self, *messages: Message) -> None:
        """Send lines without waiting; ValueError if one contains a line break and would become two."""
        data = b"".join(map(bytes, messages))
        if log.isEnabledFor(logging.DEBUG):
            for message in messages:
                log.debug("→ %s", _without_secrets(message))
        if not self._writer.is_closing():
            self._add_debt(len(messages))
            self._writer.write(data)

    def _add_debt(self, lines: int) -> None:
        now = asyncio.get_running_loop().time()
        self._debt = max(0.0, self._debt - (now - self._debt_at) * _SLOWEST) + lines
        self._debt_at = now

    @property
    def backlog(self) -> float:
        """Seconds that a server which throttles fast senders may still need for the lines sent."""
        since = asyncio.get_running_loop().time() - self._debt_at
        return min(_MAX_BACKLOG, max(0.0, (self._debt - _FREE_LINES) / _SLOWEST - since))

    async def drain(self) -> None:
        """Wait until the write buffer has room again."""
        with contextlib.suppress(OSError):
            await self._writer.drain()

    async def keep_alive(self) -> None:
        """Send PING after a third of ``silence`` seconds in which the server sent nothing.

        Returns once the connection is aborted: after ``silence`` seconds, plus ``backlog``, without data.
        """
        loop = asyncio.get_running_loop()
        while (quiet := loop.time() - self._last_data_at) < self._silence + self.backlog:
            step = self._silence / 3
            if quiet >= step:
                self._add_debt(-1)  # the PING itself adds nothing to the backlog
                self.write(Message("PING", (f"{_PING_TOKEN}{next(self._tokens)}",)))
            await asyncio.sleep(step - quiet if quiet < step else step)
        self.abort(f"nothing came from the server for {self._silence:g} s")

    def abort(self, reason: str) -> None:
        """Close the connection at once; ``reason`` is stored in ``end``."""
        self.end = reason
        self._writer.transport.abort()

    async def close(self) -> None:
        """Close the connection after the written data is sent; abort it if that takes more than 1 s."""
        self._writer.close()
        try:
            async with asyncio.timeout(1.0):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()


def _without_secrets(message: Message) -> Message | str:
    """Return a line for the log without passwords and channel keys, or only its verb."""
    if message.verb in _SECRET_VERBS:
        return message.verb
    return message._replace(params=message.params[:1]) if message.verb == "JOIN" else message
