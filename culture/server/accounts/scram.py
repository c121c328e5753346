"""The messages of SCRAM as its server reads and writes them (RFC 5802 §7)."""

import base64
import re
from typing import NamedTuple

from culture.server.accounts.gs2 import BadMessage, Opened, saslname, text, value

# Printable ASCII except the comma, which parts the attributes.
_NONCE = re.compile(r"[\x21-\x2b\x2d-\x7e]{1,512}")


class ClientFirst(NamedTuple):
    """Who wants to log in."""

    header: str
    """The GS2 header, which the client must repeat in its last message."""
    authzid: str
    bare: str
    username: str
    nonce: str

    @classmethod
    def parse(cls, data: bytes) -> "ClientFirst":
        """Read ``n,,n=user,r=nonce``."""
        header, authzid, bare = Opened.parse(data)
        attributes = bare.split(",")
        if len(attributes) < 2:
            raise BadMessage("name or nonce is missing")
        # A mandatory extension (m=) would come first, and is refused by this, as it has to be.
        username, nonce = value(attributes[0], "n"), value(attributes[1], "r")
        if not _NONCE.fullmatch(nonce):
            raise BadMessage("not a nonce")
        return cls(header, authzid, bare, saslname(username), nonce)


class ClientFinal(NamedTuple):
    """The proof."""

    binding: bytes
    nonce: str
    proof: bytes
    without_proof: str

    @classmethod
    def parse(cls, data: bytes) -> "ClientFinal":
        """Read ``c=…,r=…,p=…``."""
        without_proof, _, proof = text(data).rpartition(",")
        attributes = without_proof.split(",")
        if len(attributes) < 2:
            raise BadMessage("binding, nonce or proof is missing")
        binding, nonce = _base64(value(attributes[0], "c")), value(attributes[1], "r")
        return cls(binding, nonce, _base64(value(proof, "p")), without_proof)


def server_first(nonce: str, salt: bytes, iterations: int) -> str:
    """What the client needs to make its proof."""
    return f"r={nonce},s={base64.b64encode(salt).decode()},i={iterations}"


def server_final(signature: bytes) -> bytes:
    """Our proof that we know the password as well."""
    return b"v=" + base64.b64encode(signature)


def _base64(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError as error:
        raise BadMessage("not base64") from error
