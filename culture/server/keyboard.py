"""Who needs no login: the user of this machine whose account it is, at its own keyboard."""

import pwd

from culture.config import peer_uid
from culture.config.compare import same_secret
from culture.config.model import ServerConfig
from culture.server.accounts.model import Account
from culture.server.accounts.store import AccountStore
from culture.server.session import Session


def account_at(session: Session, nick: str, accounts: AccountStore, config: ServerConfig) -> Account | None:
    """The account whose nick a client wants, when the client is a process of the account's own user here.

    A page in a browser is no process of its reader's, and where the kernel cannot say whose a process is, nobody is.
    """
    if not session.is_local or session.is_websocket or not peer_uid.IS_KNOWN:
        return None
    if config.password is not None and not same_secret(session.password, config.password):
        return None
    account = accounts.owner_of(nick)
    if account is None or account.user is None or not account.is_active:
        return None
    uid = uid_of(account.user)
    return account if uid is not None and session.connection.peer_uid() == uid else None


def uid_of(user: str) -> int | None:
    """The number of a user of this machine; None when there is no such user."""
    if user.isdecimal():
        return int(user)
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None
