"""Probes an address: whether it speaks IRC, which certificate it shows, what time it has."""

import hashlib
import socket
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from culture.config.peer_uid import PortHeld, check_peer
from culture.protocol.message import Message, ProtocolError
from culture.protocol.numerics import Numeric

PATIENCE = 2.0


_LONGEST = 1 << 16


_ASKED = bytes(Message("TIME")) + bytes(Message("QUIT"))


_SPEAKS_TIME = (Numeric.RPL_TIME.code, Numeric.ERR_NOTREGISTERED.code, "ERROR")


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What was found out."""

    failure: str = ""
    """Why there is no connection, or no TLS."""
    reached: bool = False
    """Whether there was a connection, with TLS where that was wanted."""
    speaks: bool = False
    """Whether it speaks IRC."""
    fingerprint: str | None = None
    """The SHA-256 of the certificate that it showed."""
    held: str = ""
    """That another user of this machine has the port, and what to do; nothing was said to them."""
    ahead: float | None = None
    """By how many seconds its clock is before ours; None where it does not tell the time."""


def probe(host: str, port: int, tls: bool, patience: float = PATIENCE, *, user: str | None = None) -> ProbeResult:
    """Connect, ask for the time, and leave without having registered; ``user`` may run the server beside us."""
    deadline = time.monotonic() + patience
    try:
        with socket.create_connection((host, port), timeout=patience) as plain:
            if not tls:
                check_peer(plain, user)
            wire = _context().wrap_socket(plain) if tls else plain
            shown = wire.getpeercert(binary_form=True) if isinstance(wire, ssl.SSLSocket) else None
            mark = hashlib.sha256(shown).hexdigest() if shown else None
            with wire:
                begun = time.time()
                with suppress(OSError):
                    wire.sendall(_ASKED)
                text = _heard(wire, deadline)
            return _read(text, (begun + time.time()) / 2, mark)
    except ssl.SSLError as error:
        return ProbeResult(f"no TLS: {error.reason or 'it does not speak it'}")
    except PortHeld as held:
        return ProbeResult(str(held), held=str(held))
    except TimeoutError:
        return ProbeResult("it does not answer")
    except OSError as error:
        return ProbeResult(error.strerror or str(error))


def _context() -> ssl.SSLContext:
    """Whoever it is: the certificate is compared with what it should be."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _heard(wire: socket.socket, deadline: float) -> bytes:
    text = b""
    while len(text) < _LONGEST:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        wire.settimeout(left)
        try:
            piece = wire.recv(_LONGEST)
        except OSError:
            break
        if not piece:
            break
        text += piece
    return text


def _read(text: bytes, now: float, mark: str | None) -> ProbeResult:
    speaks, ahead = False, None
    for line in text.decode(errors="replace").splitlines():
        try:
            message = Message.parse(line)
        except (ProtocolError, ValueError):
            continue
        speaks = speaks or message.verb in _SPEAKS_TIME
        if message.verb == Numeric.RPL_TIME.code:
            ahead = _ahead(message, now)
    failure = "" if speaks else "it says nothing" if not text else "it does not speak IRC"
    return ProbeResult(failure, reached=True, speaks=speaks, fingerprint=mark, ahead=ahead)


def _ahead(message: Message, now: float) -> float | None:
    try:
        return datetime.fromisoformat(message.params[-1]).replace(tzinfo=UTC).timestamp() - now
    except (ValueError, IndexError):
        return None
