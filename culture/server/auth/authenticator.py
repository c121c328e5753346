"""Who a connection may be: the server asks, an Authenticator decides."""

import os
import pwd
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from culture.config import peer_uid
from culture.config.model import ServerConfig
from culture.config.secret_compare import same_secret
from culture.protocol.numerics import Numeric
from culture.server.auth.accounts import Account
from culture.server.errors import Refused


class Credentials(NamedTuple):
    """What a connection showed of itself by the end of its registration."""

    nick: str
    host: str
    password: str | None
    account: Account | None = None
    """Whom it has proved to be."""
    is_local: bool = True
    is_websocket: bool = False
    uid: Callable[[], int | None] = os.getuid
    """Whose process it is, where that can be known."""


class ServerIdentity(NamedTuple):
    """What the server knows of somebody: an account if there is one, and the class that it has."""

    account: str | None = None
    kind: str = "unknown"


class Authenticator(Protocol):
    """Decides who a connection is; raises Refused for those who may not come in."""

    def authenticate(self, connection: Credentials) -> ServerIdentity:
        """Admit and name, or refuse."""


class NetworkAuth:
    """A login names its account. Without one, being on this machine as a user we know is enough (decision 3)."""

    def __init__(self, config: ServerConfig) -> None:
        self._password = config.password
        self._trusts_network = config.trusted_network
        self._uids = {os.getuid(), *uids_of(config.local_users)}

    def authenticate(self, connection: Credentials) -> ServerIdentity:
        """Admit those who are logged in, then those whose presence is trusted."""
        account = connection.account
        if account is not None:
            return ServerIdentity(account.name, account.kind)
        if self._password is not None and not same_secret(connection.password, self._password):
            raise Refused(Numeric.ERR_PASSWDMISMATCH)
        if connection.is_websocket and not self._trusts_network:
            raise _log_in("any web page can open a WebSocket")
        if not connection.is_local:
            if not self._trusts_network:
                raise _log_in("you come from another machine")
        elif peer_uid.IS_KNOWN and connection.uid() not in self._uids:
            raise _log_in("you are another user of this machine")
        return ServerIdentity()


def _log_in(why: str) -> Refused:
    return Refused(Numeric.ERR_PASSWDMISMATCH, text=f"Log in to an account, with SASL or PASS account:password: {why}")


def uids_of(users: Iterable[str]) -> set[int]:
    """The numbers of these users of this machine, as far as they exist."""
    found = set()
    for user in users:
        try:
            found.add(int(user) if user.isdigit() else pwd.getpwnam(user).pw_uid)
        except KeyError:
            continue  # said when the configuration is checked; nobody is admitted by it
    return found
