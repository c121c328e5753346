"""The messages of SCRAM as its server reads and writes them (RFC 5802 §7)."""

import base64
import re
from typing import NamedTuple

# Printable ASCII except the comma, which parts the attributes.
_NONCE = re.compile(r"[\x21-\x2b\x2d-\x7e]{1,512}")


class BadMessage(ValueError):
    """The client's message is not what the RFC asks for."""


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
        header = _text(data).split(",", 2)
        if len(header) < 3:
            raise BadMessage("no GS2 header")
        flag, authzid, bare = header
        if flag not in ("n", "y"):
            raise BadMessage("channel binding is not offered")
        attributes = bare.split(",")
        if len(attributes) < 2:
            raise BadMessage("name or nonce is missing")
        # A mandatory extension (m=) would come first, and is refused by this, as it has to be.
        username, nonce = _value(attributes[0], "n"), _value(attributes[1], "r")
        if not _NONCE.fullmatch(nonce):
            raise BadMessage("not a nonce")
        asked = _saslname(_value(authzid, "a")) if authzid else ""
        return cls(f"{flag},{authzid},", asked, bare, _saslname(username), nonce)


class ClientFinal(NamedTuple):
    """The proof."""

    binding: bytes
    nonce: str
    proof: bytes
    without_proof: str

    @classmethod
    def parse(cls, data: bytes) -> "ClientFinal":
        """Read ``c=…,r=…,p=…``."""
        text = _text(data)
        without_proof, _, proof = text.rpartition(",")
        attributes = without_proof.split(",")
        if len(attributes) < 2:
            raise BadMessage("binding, nonce or proof is missing")
        binding, nonce = _base64(_value(attributes[0], "c")), _value(attributes[1], "r")
        return cls(binding, nonce, _base64(_value(proof, "p")), without_proof)


def server_first(nonce: str, salt: bytes, iterations: int) -> str:
    """What the client needs to make its proof."""
    return f"r={nonce},s={base64.b64encode(salt).decode()},i={iterations}"


def server_final(signature: bytes) -> bytes:
    """Our proof that we know the password as well."""
    return b"v=" + base64.b64encode(signature)


def _text(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BadMessage("not UTF-8") from error
    if "\0" in text:
        raise BadMessage("NUL in the message")
    return text


def _value(attribute: str, name: str) -> str:
    if not attribute.startswith(f"{name}="):
        raise BadMessage(f"expected {name}=")
    return attribute[2:]


def _saslname(text: str) -> str:
    """``=2C`` is a comma and ``=3D`` an equals sign; no other ``=`` may be there (RFC 5802 §5.1)."""
    if not text or re.search("=(?!2C|3D)", text):
        raise BadMessage("not a name")
    return text.replace("=2C", ",").replace("=3D", "=")


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise BadMessage("not base64") from error
