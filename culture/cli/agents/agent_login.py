"""The account with which an agent logs in: made here when the server is this machine's own."""

from culture.cli.agents.local_servers import own_server
from culture.config import paths
from culture.config.agents import ServerAddress
from culture.config.listen_policy import is_loopback
from culture.lib.files import replace_file
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import Account, AccountRefused, new_account
from culture.server.auth.password import token_digest

LABEL = "daemon"
"""The name of the token that a daemon logs in with."""


class NoLogin(Exception):
    """The agent cannot have this nick; the text says why, and what would help."""


def prepare(nick: str, address: ServerAddress, always_on: bool = True) -> str | None:
    """See to it that the agent can log in; what a person still has to do, where there is something."""
    server = own_server(address)
    if server is not None:
        ensure(nick, AccountStore(server.accounts_file, server.account_prefix), always_on)
        return None
    file = paths.secret_file(nick)
    if file.exists() or is_loopback(address.host):
        return None
    return (
        f"{nick} has no token for {address.host}, and comes in by its nick alone if that server allows it. For an "
        f"account, type there: culture account add {nick} --class agent --always-on --no-password, and "
        f"culture account token {nick}; put the token into {file} (chmod 600)"
    )


def withdraw(nick: str, address: ServerAddress) -> bool:
    """Nobody logs in as this agent any more; name and nick stay with its account, so that nobody else has them.

    False where the server is not this machine's own: its account is there.
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
    """Whether a nick belongs to an account of this machine's own server, also to one that is revoked."""
    server = own_server(address)
    return server is not None and AccountStore(server.accounts_file, server.account_prefix).owner_of(nick) is not None


def ensure(nick: str, store: AccountStore, always_on: bool = True) -> None:
    """An account of class agent with a token that is in the agent's secret file."""
    account = _made(nick, store, always_on)
    if not _has_token(nick, account):
        try:
            keep(nick, store.add_token(nick, LABEL))
        except AccountRefused as refused:
            raise NoLogin(f"{refused}: `culture account passwd {nick}`") from None


def issue(nick: str, store: AccountStore, always_on: bool = True) -> str:
    """A new token for an agent whose secret file is elsewhere; its account is made where it has none."""
    _made(nick, store, always_on)
    return store.add_token(nick, LABEL)


def _made(nick: str, store: AccountStore, always_on: bool) -> Account:
    """The agent's account, there already or made now; NoLogin where the nick is somebody else's."""
    account = store.owner_of(nick)
    if account is None:
        account = new_account(nick, UserClass.AGENT, always_on=always_on)
        store.add(account)
    elif account.kind is not UserClass.AGENT:
        raise NoLogin(f"{nick} is the nick of the {account.kind} account {account.name}; choose another for the agent")
    elif account.name != nick and store.bare(account.name) != store.bare(nick):
        raise NoLogin(f"{nick} is a further nick of the account {account.name}; choose another for the agent")
    return account


def token(nick: str) -> str | None:
    """The token that is in the agent's secret file."""
    try:
        return paths.secret_file(nick).read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None


def _has_token(nick: str, account: Account) -> bool:
    known = token(nick)
    return account.is_active and bool(known) and token_digest(known or "") in {each.digest for each in account.tokens}


def keep(nick: str, token: str) -> None:
    """Write the token where only its owner reads it, whole or not at all."""
    replace_file(paths.secret_file(nick), f"{token}\n")
