"""The account and token with which an agent logs in, made here for a server of this machine."""

from culture.cli.local_servers import own_server
from culture.config import paths
from culture.config.agents import ServerAddress
from culture.config.listen_policy import is_loopback
from culture.lib.files import replace_file
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import Account, AccountRefused, new_account
from culture.server.auth.password import token_digest

LABEL = "daemon"
"""Label of the token that a daemon logs in with."""


class NoLogin(Exception):
    """An agent cannot log in with its nick; the message says why and what to do."""


def prepare_login(nick: str, address: ServerAddress, always_on: bool = True) -> str | None:
    """Make sure that an agent can log in to its server; return a hint for people, or None.

    On a server of this machine its account is made if missing. The hint says what a person still has to do.
    ``always_on``: the new account stays online without a connection. NoLogin is raised if another account owns the
    nick.
    """
    server = own_server(address)
    if server is not None:
        ensure_account(nick, AccountStore(server.accounts_file, server.account_prefix), always_on)
        return None
    file = paths.secret_file(nick)
    if file.exists() or is_loopback(address.host):
        return None
    return (
        f"{nick} has no token for {address.host}, and comes in by its nick alone if that server allows it. For an "
        f"account, type there: culture account add {nick} --class agent --always-on --no-password, and "
        f"culture account token {nick}; put the token into {file} (chmod 600)"
    )


def revoke_account(nick: str, address: ServerAddress) -> bool:
    """Revoke an agent's account and delete its token; the account keeps the nick reserved.

    Returns False, and changes nothing, if the server at ``address`` is not on this machine.
    """
    server = own_server(address)
    if server is None:
        return False
    store = AccountStore(server.accounts_file, server.account_prefix)
    account = store.active(nick)
    if account is not None and account.kind is UserClass.AGENT:
        store.revoke(nick)
    paths.secret_file(nick).unlink(missing_ok=True)
    return True


def has_account(nick: str, address: ServerAddress) -> bool:
    """Whether an account has this nick, revoked or not.

    False if the server at ``address`` is on another machine.
    """
    server = own_server(address)
    return server is not None and AccountStore(server.accounts_file, server.account_prefix).owner_of(nick) is not None


def ensure_account(nick: str, store: AccountStore, always_on: bool = True) -> None:
    """Make sure that an agent has an account of class agent, and a token in its secret file.

    ``always_on``: a new account stays online without a connection. NoLogin is raised if another account owns the nick.
    """
    account = _account_of(nick, store, always_on)
    if not _has_token(nick, account):
        try:
            store_token(nick, store.add_token(nick, LABEL))
        except AccountRefused as refused:
            raise NoLogin(f"{refused}: `culture account passwd {nick}`") from None


def issue_token(nick: str, store: AccountStore, always_on: bool = True) -> str:
    """Return a new token for an agent whose secret file is in another home folder.

    An account of class agent is made if missing. ``always_on``: it then stays online without a connection. NoLogin is
    raised if another account owns the nick.
    """
    _account_of(nick, store, always_on)
    return store.add_token(nick, LABEL)


def _account_of(nick: str, store: AccountStore, always_on: bool) -> Account:
    """Return the account of an agent, made if missing; NoLogin if another account owns the nick.

    ``always_on``: a new account stays online without a connection.
    """
    account = store.owner_of(nick)
    if account is None:
        account = new_account(nick, UserClass.AGENT, always_on=always_on)
        store.add(account)
    elif account.kind is not UserClass.AGENT:
        raise NoLogin(f"{nick} is the nick of the {account.kind} account {account.name}; choose another for the agent")
    elif account.name != nick and store.bare(account.name) != store.bare(nick):
        raise NoLogin(f"{nick} is a further nick of the account {account.name}; choose another for the agent")
    return account


def read_token(nick: str) -> str | None:
    """Return the token in an agent's secret file; None if there is no file or it is empty."""
    try:
        return paths.secret_file(nick).read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None


def _has_token(nick: str, account: Account) -> bool:
    secret = read_token(nick)
    return account.is_active and bool(secret) and token_digest(secret or "") in {each.digest for each in account.tokens}


def store_token(nick: str, read_token: str) -> None:
    """Write a token into an agent's secret file (mode 600), atomically."""
    replace_file(paths.secret_file(nick), f"{read_token}\n")
