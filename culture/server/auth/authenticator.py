"""Decides whether a connection may register, and as which account."""

import os
import pwd
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from culture.config import peer_uid
from culture.config.model import ServerConfig
from culture.lib.secret_compare import same_secret
from culture.protocol.numerics import Numeric
from culture.server.auth.accounts import Account
from culture.server.errors import Refused


class Credentials(NamedTuple):
    """Facts about a connection at the end of its registration: nick, login, origin."""

    nick: str
    host: str
    password: str | None
    account: Account | None = None
    """The account it has logged in to."""
    is_local: bool = True
    is_websocket: bool = False
    uid: Callable[[], int | None] = os.getuid
    """Returns the uid of the client's process, if it is known."""


class ServerIdentity(NamedTuple):
    """The identity of an admitted connection: its account, if it has one, and its class."""

    account: str | None = None
    kind: str = "unknown"


class Authenticator(Protocol):
    """Decides which connections may register; raises Refused for the others."""

    def authenticate(self, connection: Credentials) -> ServerIdentity:
        """Return the identity of a connection; raises Refused if it may not register."""


class NetworkAuth:
    """Admits clients that logged in, and without a login those of known users of this machine."""

    def __init__(self, config: ServerConfig) -> None:
        self._password = config.password
        self._trusts_network = config.trusted_network
        self._uids = {os.getuid(), *uids_of(config.local_users)}

    def authenticate(self, connection: Credentials) -> ServerIdentity:
        """Return the identity of a client: its account, or none if its origin needs no login.

        Raises Refused for a wrong server password, and for a client that has to log in.
        """
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
    """Return the uids of these local users (names or numbers); unknown names are left out."""
    uids = set()
    for user in users:
        try:
            uids.add(int(user) if user.isdigit() else pwd.getpwnam(user).pw_uid)
        except KeyError:
            continue  # checking the configuration reports it
    return uids
