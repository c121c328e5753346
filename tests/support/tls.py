"""A TLS client without a socket, and certificates for it."""

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from culture.config.listen_policy import Tls
from culture.server.net import certificates
from culture.server.net.layers import Layer


def made(folder: Path, name: str, days: int = 30, ago: int = 0) -> tuple[Tls, str]:
    """A fresh certificate of that name, made some days ago, and its fingerprint."""
    files = Tls(certificate=folder / f"{name}.pem", key=folder / f"{name}.key")
    made_at = datetime.now(UTC) - timedelta(days=ago)
    return files, certificates.make([name], days, files.certificate, files.key, made_at)


def client_context(certificate: Tls | None = None, trusted: Path | None = None) -> ssl.SSLContext:
    """A client that trusts what is in this file, or else anybody, and may show a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = trusted is not None
    context.verify_mode = ssl.CERT_NONE if trusted is None else ssl.CERT_REQUIRED
    if trusted is not None:
        context.load_verify_locations(trusted)
    if certificate is not None:
        context.load_cert_chain(certificate.certificate, certificate.key)
    return context


class TlsClient:
    """The client's side of one connection."""

    def __init__(self, context: ssl.SSLContext, server_name: str = "spark") -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.engine = context.wrap_bio(self._in, self._out, server_hostname=server_name)

    def shake_hands(self) -> bytes:
        """Go on with the handshake; what to send."""
        try:
            self.engine.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return self._out.read()

    def send(self, data: bytes) -> bytes:
        """The bytes on the wire for this."""
        self.engine.write(data)
        return self._out.read()

    def receive(self, data: bytes) -> bytes:
        """What these bytes of the wire say."""
        self._in.write(data)
        got = b""
        try:
            while piece := self.engine.read(65536):
                got += piece
        except ssl.SSLWantReadError:
            pass
        return got

    def take(self, data: bytes) -> None:
        """Keep these bytes of the wire for the handshake."""
        self._in.write(data)

    def close(self) -> bytes:
        """Say goodbye; the bytes for that."""
        try:
            self.engine.unwrap()
        except ssl.SSLWantReadError:
            pass
        return self._out.read()

    def introduce(self, server: Layer, sizes: Iterator[int] | None = None) -> None:
        """Complete the handshake with a server's layer, in pieces of these sizes."""
        for _ in range(4):
            for piece in pieces(self.shake_hands(), sizes):
                assert server.decode(piece) == b""
                self.take(server.outgoing())
        assert server.is_open


def pieces(data: bytes, sizes: Iterator[int] | None) -> Iterator[bytes]:
    """The data cut into pieces of these sizes; without any, in one."""
    while data:
        size = len(data) if sizes is None else next(sizes)
        yield data[:size]
        data = data[size:]
