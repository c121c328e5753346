"""Applies changes of accounts that the command line makes while the server runs."""

import asyncio
import logging

from culture.server.auth.accounts import AccountsError
from culture.server.auth.credential_check import may_act
from culture.server.context import ServerParts
from culture.server.core.session import Session
from culture.server.core.session_lifecycle import expel
from culture.server.core.state import User

log = logging.getLogger(__name__)

PERIOD = 1.0
_REVOKED = "Your account was revoked"


async def watch(parts: ServerParts) -> None:
    """Check every second if the accounts file changed; end the sessions of revoked accounts.

    ``parts``: the parts of the running server. A check of an unchanged file costs one system call (stat).
    """
    while True:
        await asyncio.sleep(PERIOD)
        try:
            _check_accounts(parts)
        except AccountsError as error:
            log.error("%s", error)
        except Exception:  # our bug: without further checks no revoked account would be ended
            log.exception("checking the accounts failed")


def _check_accounts(parts: ServerParts) -> None:
    changes = parts.accounts.refresh()
    if changes.changed or changes.revoked:
        with parts.turn():
            parts.network.know_people(parts.accounts.knows_people)
            _end(parts, changes.revoked)
            if parts.config.nick_prefix == "required":
                _clear_nicks(parts)


def _end(parts: ServerParts, revoked: frozenset[str]) -> None:
    here = (each for each in parts.network.users.values() if each.server == parts.router.name)
    for user in [each for each in here if each.account in revoked]:
        log.info("disconnected %s: the account %s was revoked", user.nick, user.account)
        expel(parts, user, _REVOKED)
    for session in [each for each in parts.sessions if each.account is not None and each.account.name in revoked]:
        session.close(_REVOKED)
    for session in [each for each in parts.sessions if each.acting is not None]:
        _end_acting(parts, session, revoked)


def _end_acting(parts: ServerParts, session: Session, revoked: frozenset[str]) -> None:
    """End a session that a program logged in for a person if it may no longer act for them.

    ``revoked``: names of the accounts that were revoked.
    """
    acting, account = session.acting, session.account
    if acting is None or account is None:
        return
    by, target = parts.accounts.active(acting.name), parts.accounts.active(account.name)
    if acting.name in revoked or by is None or target is None or not may_act(by, target):
        log.info("ended the sessions of %s via %s", account.name, acting.via)
        session.close(f"{acting.name} may no longer act for you")


def _clear_nicks(parts: ServerParts) -> None:
    """Disconnect the users whose nick has become the nick of an account that is not theirs."""
    for user in list(parts.network.users.values()):
        owner = parts.accounts.owner_of(user.nick)
        if owner is None or user.account == owner.name or _is_logging_in(parts, user):
            continue
        log.info("disconnected %s: the nick belongs to the account %s", user.nick, owner.name)
        expel(parts, user, f"Your nick belongs to the account {owner.name}: log in")


def _is_logging_in(parts: ServerParts, user: User) -> bool:
    """Return whether one of the user's sessions waits for a result, such as that of a login."""
    return any(session.waiting for session in parts.router.sessions.get(user, ()))
