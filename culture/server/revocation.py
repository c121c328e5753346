"""Takes up what the command line changes in the accounts while the server runs."""

import asyncio
import logging

from culture.server.accounts.errors import AccountsError
from culture.server.arrival import expel
from culture.server.context import Parts

log = logging.getLogger(__name__)

PERIOD = 1.0
_REVOKED = "Your account was revoked"


async def watch(parts: Parts) -> None:
    """Look at the accounts every second, at the price of one stat: whoever was revoked is out before the next look."""
    while True:
        await asyncio.sleep(PERIOD)
        try:
            changes = parts.accounts.refresh()
        except AccountsError as error:
            log.error("%s", error)
            continue
        if changes.changed or changes.revoked:
            with parts.turn():
                _end(parts, changes.revoked)
                parts.network.know_people(parts.accounts.knows_people)


def _end(parts: Parts, revoked: frozenset[str]) -> None:
    for user in [each for each in parts.network.users.values() if each.account in revoked]:
        log.info("%s is out: the account %s was revoked", user.nick, user.account)
        expel(parts, user, _REVOKED)
    for session in [each for each in parts.sessions if each.account is not None and each.account.name in revoked]:
        session.close(_REVOKED)
