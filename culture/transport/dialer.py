"""Making a connection: plain, or TLS with a certificate that is known."""

import asyncio
import hashlib
import ipaddress
import socket
import ssl

from culture.config.peer_uid import PortHeld, check_peer
from culture.transport.types import Address, ClientIdentity, Hopeless, WrongServer

_AT_ONCE = 1 << 18


async def dial(address: Address, identity: ClientIdentity) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which nothing was said yet; ``WrongServer`` for another certificate, OSError, ``PortHeld``."""
    if not (address.tls or address.fingerprint):
        return await _dial_plain(address)
    context = _context(address, identity)
    try:
        reader, writer = await asyncio.open_connection(address.host, address.port, ssl=context, limit=_AT_ONCE)
    except ssl.SSLCertVerificationError as error:
        raise WrongServer(f"{address.host} is not trusted: {error.verify_message}") from error
    if address.fingerprint:
        try:
            _check(writer, address)
        except Hopeless:
            writer.transport.abort()
            raise
    return reader, writer


async def _dial_plain(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the first address of the host that is held by nobody else; ``localhost`` may be two."""
    loop = asyncio.get_running_loop()
    held: OSError | None = None
    failure = OSError(f"{address.host} has no address")
    for family, kind, number, _, place in await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, number)
        try:
            sock.setblocking(False)
            await loop.sock_connect(sock, place)
            check_peer(sock, address.user)
            return await asyncio.open_connection(sock=sock, limit=_AT_ONCE)
        except PortHeld as error:
            sock.close()
            held = held or error
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
    raise held or failure


def is_private(writer: asyncio.StreamWriter) -> bool:
    """Whether nobody else can read what is said on it: TLS, or it does not leave the machine."""
    if writer.get_extra_info("ssl_object") is not None:
        return True
    peer = writer.get_extra_info("peername")
    try:
        return bool(peer) and ipaddress.ip_address(peer[0].partition("%")[0]).is_loopback
    except ValueError:
        return False


def normal_fingerprint(text: str) -> str:
    """A fingerprint as it compares: lower case, without colons."""
    return text.replace(":", "").replace(" ", "").lower()


def _context(address: Address, identity: ClientIdentity) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if address.fingerprint:
        # The pin says more than any authority could.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if identity.certificate is not None:
        try:
            context.load_cert_chain(identity.certificate, identity.key)
        except (OSError, ssl.SSLError) as error:
            raise Hopeless(f"{identity.certificate} cannot be used as a certificate: {error}") from error
    return context


def _check(writer: asyncio.StreamWriter, address: Address) -> None:
    tls = writer.get_extra_info("ssl_object")
    shown = hashlib.sha256(tls.getpeercert(binary_form=True)).hexdigest()
    if shown != normal_fingerprint(address.fingerprint or ""):
        raise WrongServer(f"{address.host} shows another certificate than expected; its fingerprint is {shown}")
