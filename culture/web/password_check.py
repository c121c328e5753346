"""Check a password by logging in to the IRC server with it; failures are rate-limited."""

import asyncio
import math

from culture.protocol.names import fold
from culture.protocol.vocabulary import UserClass
from culture.transport import ClientIdentity, Hopeless, IRCTransport, NotSent
from culture.web.site import Site
from culture.web.throttle import ADDRESS

_TIMEOUT = 15.0
_TOO_MANY = "too many"


class WrongPassword(Exception):
    """A login with a password is refused; the text says why.

    ``status``: the status for the HTTP response.
    """

    def __init__(self, text: str, status: int = 403) -> None:
        super().__init__(text)
        self.status = status


async def check_password(site: Site, address: str, account: str, password: str) -> str:
    """Check a person's password, and return the account's name as the server spells it.

    ``address``: IP address of the client, for the rate limit. ``WrongPassword`` is raised if the password is wrong, the
    account is not a person's, or there were too many tries.
    """
    keys = (f"{ADDRESS}{address}", f"account {fold(account)}")
    wait = site.throttle.wait(*keys)
    if wait > 0:
        raise WrongPassword(f"Too many wrong passwords. Try again in {math.ceil(wait / 60)} minutes.", 429)
    if not account or not password:
        raise WrongPassword("Enter account and password.")
    if not account.isprintable() or " " in account:
        raise WrongPassword("Account or password are wrong.")
    site.throttle.failed(*keys)  # counted in advance: parallel requests must not have a guess each
    try:
        name = await _log_in(site, account, password)
    except Hopeless as refused:
        if _TOO_MANY not in str(refused).lower():
            raise WrongPassword("Account or password are wrong.") from None
        site.throttle.forgive(*keys)
        raise WrongPassword(
            "The server checks no passwords at the moment: too many were wrong. Try again later.", 429
        ) from None
    except BaseException:
        site.throttle.forgive(*keys)
        raise
    site.throttle.forgive(keys[0])  # only this failure, or one right password would allow more guesses of others
    site.throttle.succeeded(keys[1])
    return name


async def _log_in(site: Site, account: str, password: str) -> str:
    settings = site.settings
    irc = IRCTransport(settings.address, ClientIdentity(settings.nick_of(account), account, password, bot=False))
    try:
        async with asyncio.timeout(_TIMEOUT):
            await irc.start()
        members = await irc.send_who(irc.nick)
        if {member.kind for member in members} & {UserClass.AGENT, UserClass.BOT}:
            raise WrongPassword("This page is for people; this account belongs to an agent or bot.")
        return irc.view.account or account
    except TimeoutError:
        raise WrongPassword("The server does not respond. Try again.", 503) from None
    except NotSent as refused:
        raise WrongPassword(f"Unexpected answer of the server: {refused.reason}", 503) from None
    finally:
        await irc.stop("checked")
