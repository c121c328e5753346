"""Who a connection may be: the server asks, an Authenticator decides."""

import hmac
from typing import NamedTuple, Protocol

from culture.config.model import ServerConfig
from culture.protocol.numerics import Numeric
from culture.server.errors import Refused


class Credentials(NamedTuple):
    """What a connection showed of itself by the end of its registration."""

    nick: str
    host: str
    password: str | None


class Identity(NamedTuple):
    """What the server knows of somebody: an account if there is one, and the class that it has."""

    account: str | None = None
    kind: str = "unknown"


class Authenticator(Protocol):
    """Decides who a connection is; raises Refused for those who may not come in."""

    def authenticate(self, connection: Credentials) -> Identity:
        """Admit and name, or refuse."""


class NetworkAuth:
    """Presence on the network is trust; a password of the server, where one is set, must be right."""

    def __init__(self, config: ServerConfig) -> None:
        self._password = config.password

    def authenticate(self, connection: Credentials) -> Identity:
        """Admit everybody who knows the server's password."""
        if self._password is not None and not same_secret(connection.password, self._password):
            raise Refused(Numeric.ERR_PASSWDMISMATCH)
        return Identity()


def same_secret(given: str | None, wanted: str) -> bool:
    """Compare secrets in constant time; an empty one never matches."""
    if not given or not wanted:
        return False
    return hmac.compare_digest(given.encode(), wanted.encode())
