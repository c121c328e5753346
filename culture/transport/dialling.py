"""Making a connection: plain, or TLS with a certificate that is known."""

import asyncio
import hashlib
import ipaddress
import os
import pwd
import ssl

from culture.config.peer_uid import uid_of
from culture.transport.base import Address, Hopeless, Identity

_AT_ONCE = 1 << 18


async def dial(address: Address, identity: Identity) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which nothing was said yet; ``Hopeless`` when it leads to somebody else."""
    context = _context(address, identity) if address.tls or address.fingerprint else None
    try:
        reader, writer = await asyncio.open_connection(address.host, address.port, ssl=context, limit=_AT_ONCE)
    except ssl.SSLCertVerificationError as error:
        raise Hopeless(f"{address.host} is not trusted: {error.verify_message}") from error
    if address.fingerprint:
        try:
            _check(writer, address)
        except Hopeless:
            writer.transport.abort()
            raise
    return reader, writer


def is_private(writer: asyncio.StreamWriter) -> bool:
    """Whether nobody else can read what is said on it: TLS, or it does not leave the machine."""
    if writer.get_extra_info("ssl_object") is not None:
        return True
    peer = writer.get_extra_info("peername")
    try:
        return bool(peer) and ipaddress.ip_address(peer[0].partition("%")[0]).is_loopback
    except ValueError:
        return False


def stranger(writer: asyncio.StreamWriter, address: Address) -> str | None:
    """The user of this machine who has taken the server's place, and is none we trust; None when there is none.

    While the server is down anybody here may listen on its port, and would be told passwords. Known only once the
    other side has said something.
    """
    if writer.get_extra_info("ssl_object") is not None or not is_private(writer):
        return None
    uid = uid_of(writer.get_extra_info("peername")[:2], writer.get_extra_info("sockname")[:2])
    if uid is None or uid in (0, os.geteuid()):
        return None
    name = _user_name(uid)
    return None if name == address.user else name


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def normal_fingerprint(text: str) -> str:
    """A fingerprint as it compares: lower case, without colons."""
    return text.replace(":", "").replace(" ", "").lower()


def _context(address: Address, identity: Identity) -> ssl.SSLContext:
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
        raise Hopeless(f"{address.host} shows another certificate than expected; its fingerprint is {shown}")
