"""TLS as a layer: OpenSSL between two buffers; clients are known by certificate fingerprint."""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from OpenSSL import SSL

from culture.config.listen_policy import Tls
from culture.lib.secret_compare import same_secret
from culture.server.errors import StartError
from culture.server.net.layers import LayerError

log = logging.getLogger(__name__)

_PIECE = 65_536
_Key: TypeAlias = RSAPrivateKey | EllipticCurvePrivateKey | Ed25519PrivateKey | Ed448PrivateKey


class TlsLayer:
    """The TLS layer of one connection.

    ``dials``: we opened the connection, so we are the client.
    """

    __slots__ = ("_engine", "_is_open", "certificate")

    def __init__(self, context: SSL.Context, ask_for_certificate: bool = True, dials: bool = False) -> None:
        self._engine = SSL.Connection(context, None)
        if dials:
            self._engine.set_connect_state()
        else:
            self._engine.set_accept_state()
        if not ask_for_certificate:
            self._engine.set_verify(SSL.VERIFY_NONE)
        self._is_open = False
        self.certificate: str | None = None  # SHA-256 of the peer's certificate in lower-case hex, after the handshake

    @property
    def is_open(self) -> bool:
        """Return whether the TLS handshake is complete."""
        return self._is_open

    def decode(self, data: bytes) -> bytes:
        """Return the decrypted data, after continuing the handshake if it is not complete.

        Raises LayerError if the connection has to end.
        """
        if data:
            self._engine.bio_write(data)
        pieces: list[bytes] = []
        try:
            if not self._is_open:
                self._shake_hands()
            while True:
                pieces.append(self._engine.recv(_PIECE))
        except SSL.WantReadError:
            return b"".join(pieces)
        except SSL.ZeroReturnError:
            raise LayerError("Connection closed", b"".join(pieces)) from None
        except SSL.Error as error:
            raise LayerError(f"TLS: {_reason(error)}", b"".join(pieces)) from None

    def encode(self, data: bytes) -> bytes:
        """Return the data encrypted, after other bytes that TLS has to send."""
        try:
            if data and self._is_open:
                self._engine.sendall(data)
        except SSL.Error:  # close_notify was sent
            pass
        return self.outgoing()

    def outgoing(self) -> bytes:
        """Return the bytes that TLS itself has to send, such as those of a handshake."""
        data = b""
        try:
            while len(piece := self._engine.bio_read(_PIECE)) == _PIECE:
                data += piece
        except SSL.WantReadError:
            return data
        return data + piece

    def close(self) -> None:
        """Put close_notify into ``outgoing``: it tells the other side that no data was cut off."""
        try:
            if self._is_open:
                self._engine.shutdown()
        except SSL.Error:  # a fatal alert was sent
            pass

    def _shake_hands(self) -> None:
        self._engine.do_handshake()
        self._is_open = True
        certificate = self._engine.get_peer_certificate(as_cryptography=True)
        self.certificate = certificate.fingerprint(SHA256()).hex() if certificate is not None else None


class DiallingTls(TlsLayer):
    """TLS of a link that we open: nothing is sent before the peer's certificate is checked."""

    __slots__ = ("_expected", "opened")

    def __init__(self, own: Tls | None, expected: str | None) -> None:
        super().__init__(_dialling_context(own), dials=True)
        self._expected = expected
        self.opened: Callable[[], None] = lambda: None
        """Called once, after the check of the peer's certificate."""

    def _shake_hands(self) -> None:
        super()._shake_hands()
        if self._expected is not None and not same_secret(self.certificate or "", self._expected):
            raise LayerError(
                f"It has another certificate than its fingerprint says: SHA-256 {self.certificate}. Compare it with "
                "what `culture server cert` shows there"
            )
        self.opened()


class TlsContexts:
    """The listeners' certificates, read at the start and, for later connections, by ``reload``."""

    def __init__(self, settings: Iterable[Tls]) -> None:
        self._contexts = {each: context(each) for each in settings}

    def layer(self, settings: Tls, ask_for_certificate: bool = True) -> TlsLayer:
        """Return the TLS layer for a new connection to the listener with these settings.

        A browser that is asked for a certificate asks its user, so a WebSocket does without.
        """
        return TlsLayer(self._contexts[settings], ask_for_certificate)

    def reload(self) -> None:
        """Read every certificate again; one that cannot be used is logged, and the old one stays."""
        for settings in self._contexts:
            try:
                self._contexts[settings] = context(settings)
            except StartError as error:
                log.error("the certificate stays as it was: %s", error)


def _dialling_context(own: Tls | None) -> SSL.Context:
    """Return the TLS context of a link that we open, with our own certificate if there is one."""
    shared = SSL.Context(SSL.TLS_CLIENT_METHOD)
    shared.set_min_proto_version(SSL.TLS1_2_VERSION)
    shared.set_options(SSL.OP_NO_RENEGOTIATION | SSL.OP_NO_COMPRESSION)
    # The fingerprint decides; OpenSSL verifies that the peer has the key.
    shared.set_verify(SSL.VERIFY_PEER, lambda *_: True)
    if own is not None:
        _load(shared, own)
    return shared


def context(settings: Tls) -> SSL.Context:
    """Return the TLS context of a listener.

    Raises StartError if its certificate or key cannot be used.
    """
    shared = SSL.Context(SSL.TLS_SERVER_METHOD)
    shared.set_min_proto_version(SSL.TLS1_2_VERSION)
    shared.set_options(SSL.OP_NO_RENEGOTIATION | SSL.OP_NO_COMPRESSION | SSL.OP_CIPHER_SERVER_PREFERENCE)
    shared.set_mode(SSL.MODE_RELEASE_BUFFERS)  # an idle client then holds no buffers
    # Every connection presents its certificate itself: no sessions are resumed.
    shared.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    shared.set_options(SSL.OP_NO_TICKET)
    shared.set_session_id(b"culture")
    # OpenSSL verifies that the client has the certificate's key; the fingerprint decides the rest.
    shared.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_CLIENT_ONCE, lambda *_: True)
    certificate = _load(shared, settings)
    log.info(
        "certificate %s, SHA-256 %s, is good until %s",
        *(settings.certificate, certificate.fingerprint(SHA256()).hex(), certificate.not_valid_after_utc.date()),
    )
    return shared


def _load(shared: SSL.Context, settings: Tls) -> x509.Certificate:
    certificate, *chain = _certificates(settings.certificate)
    try:
        shared.use_certificate(certificate)
        for each in chain:
            shared.add_extra_chain_cert(each)
        shared.use_privatekey(_key(settings.key))
        shared.check_privatekey()
    except SSL.Error as error:
        raise StartError(f"{settings.key}: is not the key of {settings.certificate}: {_reason(error)}") from error
    return certificate


def _certificates(file: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(_read(file))
    except ValueError as error:
        raise StartError(f"{file}: is no certificate in PEM form") from error


def _key(file: Path) -> _Key:
    try:
        key = load_pem_private_key(_read(file), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:  # TypeError: it has a passphrase
        raise StartError(f"{file}: must be a key in PEM form without a passphrase") from error
    if not isinstance(key, _Key):
        raise StartError(f"{file}: is not a key that TLS can use, such as RSA or ECDSA")
    return key


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise StartError(f"{file}: cannot be read: {error.strerror}") from error


def _reason(error: SSL.Error) -> str:
    """Return the last and most precise reason that OpenSSL gives in an error."""
    reasons = error.args[0] if error.args else []
    return str(reasons[-1][-1]) if reasons else "unusable"
