"""Opens connections to a server: plain, or TLS with a pinned or trusted certificate."""

import asyncio
import hashlib
import ipaddress
import socket
import ssl

from culture.config.peer_uid import PortHeld, check_peer
from culture.runtime import REAL, Runtime
from culture.transport.types import Address, ClientIdentity, Hopeless, WrongServer

_READ_LIMIT = 1 << 18


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
