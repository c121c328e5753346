"""The account `web`, with which the page connects to the server for its logged-in people."""

import hashlib
import logging
from collections.abc import Callable
from pathlib import Path

from culture.config.model import ServerConfig
from culture.lib.files import replace_file
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import Account, AccountRefused, AccountsError, new_account
from culture.server.auth.password import token_digest

log = logging.getLogger(__name__)

NAME = "web"
_VIA = "web"


def ensure_token(settings: ServerConfig) -> str:
    """Return the login token of the web page's account ``web``, which is made if missing.

    AccountRefused is raised if the account cannot be used.
    """
    store = AccountStore(settings.accounts_file, settings.account_prefix)
    account = store.owner_of(NAME)
    if account is None:
        account = new_account(NAME, UserClass.BOT, always_on=False, via=_VIA)
        store.add(account)
    _check(account)
    secret = _read_token(secret_file(settings))
    if secret is not None and token_digest(secret) in {each.digest for each in account.tokens}:
        return secret
    # Several servers may share an accounts file: each has its own token.
    token = store.add_token(account.name, f"web-{settings.short_name}")
    replace_file(secret_file(settings), f"{token}\n")
    return token


def login_version(settings: ServerConfig) -> Callable[[str], str | None]:
    """Return a function that maps an account name to a version of the account's login.

    The version changes when the account is revoked or gets another password, which ends its browser sessions. It is
    None if the account may not use the web page.
    """
    store = AccountStore(settings.accounts_file, settings.account_prefix)

    def of(name: str) -> str | None:
        try:
            store.catch_up()
        except AccountsError as error:
            log.error("%s", error)
        account = store.active(name)
        if account is None or account.kind is not UserClass.HUMAN:
            return None
        salt = account.verifier.salt if account.verifier is not None else b""
        return hashlib.sha256(f"{account.created} {account.revocations} ".encode() + salt).hexdigest()

    return of


def secret_file(settings: ServerConfig) -> Path:
    """Return the path of the file with the token by which the web page logs in to its server."""
    return settings.data_dir / "web" / "secret"


def _check(account: Account) -> None:
    if not account.is_active:
        raise AccountRefused(
            f"the account {account.name} is revoked, so the web page cannot log in: "
            f"`culture account passwd {account.name}` activates it again"
        )
    if account.name != NAME or account.via is None:
        raise AccountRefused(
            f"{NAME} is a name of the {account.kind} account {account.name}, and the web page needs it for its own"
        )


def _read_token(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None
