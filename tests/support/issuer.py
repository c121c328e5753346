"""An OpenID issuer on loopback: real HTTP, real keys, and every wrong token one may think of."""

import base64
import json
import ssl
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from culture.config.listen_policy import Tls

AUDIENCE = "culture"
Private = RSAPrivateKey | EllipticCurvePrivateKey | Ed25519PrivateKey


def armoured(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _number(value: int, size: int) -> str:
    return armoured(value.to_bytes(size, "big"))


def new_key(algorithm: str = "ES256") -> Private:
    """A fresh key for this algorithm."""
    match algorithm:
        case "RS256":
            return rsa.generate_private_key(65537, 2048)
        case "EdDSA":
            return Ed25519PrivateKey.generate()
    return ec.generate_private_key(ec.SECP256R1())


def algorithm_of(key: Private) -> str:
    """The one algorithm that the key is for."""
    if isinstance(key, Ed25519PrivateKey):
        return "EdDSA"
    return "RS256" if isinstance(key, RSAPrivateKey) else "ES256"


def public_of(key: Private) -> dict[str, Any]:
    """The public half as a JWK."""
    if isinstance(key, RSAPrivateKey):
        numbers = key.public_key().public_numbers()
        return {"kty": "RSA", "n": _number(numbers.n, key.key_size // 8), "e": _number(numbers.e, 3)}
    if isinstance(key, EllipticCurvePrivateKey):
        point = key.public_key().public_numbers()
        return {"kty": "EC", "crv": "P-256", "x": _number(point.x, 32), "y": _number(point.y, 32)}
    return {"kty": "OKP", "crv": "Ed25519", "x": armoured(key.public_key().public_bytes_raw())}


def signature(key: Private, data: bytes) -> bytes:
    """As a JWT has it."""
    if isinstance(key, RSAPrivateKey):
        return key.sign(data, padding.PKCS1v15(), SHA256())
    if isinstance(key, EllipticCurvePrivateKey):
        first, second = decode_dss_signature(key.sign(data, ec.ECDSA(SHA256())))
        return first.to_bytes(32, "big") + second.to_bytes(32, "big")
    return key.sign(data)


def unsigned(header: Mapping[str, object], claims: Mapping[str, object]) -> str:
    """The part of a token that is signed."""
    return ".".join(armoured(json.dumps(part).encode()) for part in (header, claims))


class Issuer:
    """Answers at /.well-known/openid-configuration and /keys; ``now`` is the time that its tokens are made at."""

    def __init__(self, now: float, tls: Tls | None = None) -> None:
        self.now = now
        self.keys: dict[str, Private] = {"first": new_key()}
        self.asked: list[str] = []
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        """What to say in place of the truth, by path: status, headers, body."""
        self.was_asked, self.may_answer = threading.Event(), threading.Event()
        self.may_answer.set()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls.certificate, tls.key)
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Answer nobody any more."""
        self.may_answer.set()
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
            self._http.server_close()

    def settings(self, **said: Any) -> dict[str, Any]:
        """The block of a configuration that trusts this issuer."""
        return {"issuer": self.url, "audience": AUDIENCE, **said}

    def documents(self) -> dict[str, bytes]:
        """What there is to be read, by path."""
        keys = [{"kid": kid, "use": "sig", **public_of(key)} for kid, key in self.keys.items()]
        discovery = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        return {
            "/.well-known/openid-configuration": json.dumps(discovery).encode(),
            "/keys": json.dumps({"keys": keys}).encode(),
        }

    def claims(self, name: str = "ori", **said: object) -> dict[str, object]:
        """What a good token says; None leaves a claim out."""
        claims = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": name,
            "iat": int(self.now),
            "nbf": int(self.now),
            "exp": int(self.now) + 300,
            **said,
        }
        return {key: value for key, value in claims.items() if value is not None}

    def token(
        self, name: str = "ori", *, kid: str = "first", key: Private | None = None, typ: str = "JWT", **said: object
    ) -> str:
        """A token with these claims; ``key`` signs in place of the one that ``kid`` names."""
        signer = key or self.keys[kid]
        signed = unsigned({"alg": algorithm_of(signer), "kid": kid, "typ": typ}, self.claims(name, **said))
        return f"{signed}.{armoured(signature(signer, signed.encode()))}"


def _handler(issuer: Issuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.asked.append(self.path)
            issuer.was_asked.set()
            issuer.may_answer.wait()
            body = issuer.documents().get(self.path)
            status, headers, said = issuer.answers.get(self.path, (200 if body else 404, {}, body or b""))
            try:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)
            except OSError:
                pass  # nobody waits for it any longer

        def log_message(self, *args: object) -> None:
            pass

    return Handler


def bearer(token: str, authzid: str = "") -> list[str]:
    """What OAUTHBEARER says (RFC 7628 §3.1), in pieces for AUTHENTICATE."""
    wanted = f"a={authzid}" if authzid else ""
    message = f"n,{wanted},\x01host=irc.example.org\x01port=6697\x01auth=Bearer {token}\x01\x01"
    text = base64.b64encode(message.encode()).decode()
    pieces = [text[start : start + 400] for start in range(0, len(text), 400)]
    return pieces if len(pieces[-1]) < 400 else [*pieces, "+"]
