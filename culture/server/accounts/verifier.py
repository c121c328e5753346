"""What is kept of a password: a SCRAM-SHA-256 verifier (RFC 5802 §3, RFC 7677), which PLAIN is checked against too."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Self

from culture.config.compare import same_secret
from culture.server.accounts.password import prepare

ITERATIONS = 600_000
"""How often a new password is hashed: about 0.2 s of one core, spent outside the event loop."""

_SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class Verifier:
    """Enough to check a password and to prove that we have it, not enough to log in elsewhere."""

    salt: bytes = field(repr=False)
    iterations: int
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def of(cls, password: str, *, salt: bytes | None = None, iterations: int = ITERATIONS) -> Self:
        """Hash a new password, which takes long: never on the event loop. Raises UnfitPassword."""
        chosen = salt or secrets.token_bytes(_SALT_BYTES)
        return cls(chosen, iterations, *_keys(prepare(password), chosen, iterations))

    @classmethod
    def fake(cls, key: bytes, name: str) -> Self:
        """One that no password fits: always the same for a name, so that it looks like a real account's."""
        salt, stored_key, server_key = (
            hmac.digest(key, f"{use}\0{name}".encode(), "sha256") for use in ("salt", "stored", "server")
        )
        return cls(salt[:_SALT_BYTES], ITERATIONS, stored_key, server_key)

    def fits(self, password: bytes) -> bool:
        """Check a prepared password, which takes as long as hashing one."""
        stored_key, _ = _keys(password, self.salt, self.iterations)
        return same_secret(stored_key, self.stored_key)

    def proved_by(self, proof: bytes, exchange: bytes) -> bool:
        """Whether the client's proof over the exchange shows that it knows the password."""
        signature = hmac.digest(self.stored_key, exchange, "sha256")
        if len(proof) != len(signature):
            return False
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        return same_secret(hashlib.sha256(client_key).digest(), self.stored_key)

    def signature(self, exchange: bytes) -> bytes:
        """Our own proof over the exchange."""
        return hmac.digest(self.server_key, exchange, "sha256")


def _keys(password: bytes, salt: bytes, iterations: int) -> tuple[bytes, bytes]:
    salted = hashlib.pbkdf2_hmac("sha256", password, salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256")
