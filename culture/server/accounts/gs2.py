"""The header that SCRAM and OAUTHBEARER messages begin with (RFC 5801 §4)."""

import re
from typing import NamedTuple


class BadMessage(ValueError):
    """The client's message is not what the RFC asks for."""


class Opened(NamedTuple):
    """A client's first message: its header, whom it wants to act as ("" for itself), and the rest."""

    header: str
    authzid: str
    rest: str

    @classmethod
    def parse(cls, data: bytes) -> "Opened":
        """Read ``n,a=user,rest``."""
        parts = text(data).split(",", 2)
        if len(parts) < 3:
            raise BadMessage("no GS2 header")
        flag, authzid, rest = parts
        if flag not in ("n", "y"):
            raise BadMessage("channel binding is not offered")
        return cls(f"{flag},{authzid},", saslname(value(authzid, "a")) if authzid else "", rest)


def text(data: bytes) -> str:
    """The message as text."""
    try:
        decoded = data.decode()
    except UnicodeDecodeError as error:
        raise BadMessage("not UTF-8") from error
    if "\0" in decoded:
        raise BadMessage("NUL in the message")
    return decoded


def value(attribute: str, name: str) -> str:
    """What ``name=value`` says."""
    if not attribute.startswith(f"{name}="):
        raise BadMessage(f"expected {name}=")
    return attribute[2:]


def saslname(quoted: str) -> str:
    """``=2C`` is a comma and ``=3D`` an equals sign; no other ``=`` may be there (RFC 5802 §5.1)."""
    if not quoted or re.search("=(?!2C|3D)", quoted):
        raise BadMessage("not a name")
    return quoted.replace("=2C", ",").replace("=3D", "=")
