"""Whether a password is right: the server says so, asked in the person's name; whoever guesses has to wait."""

import asyncio
import math

from culture.protocol.vocabulary import UserClass
from culture.transport import ClientIdentity, Hopeless, IRCTransport, NotSent
from culture.web.site import Site
from culture.web.throttle import ADDRESS

_PATIENCE = 15.0
_TOO_MANY = "too many"


class WrongPassword(Exception):
    """Somebody is not let in; the text says why."""

    def __init__(self, text: str, status: int = 403) -> None:
        super().__init__(text)
        self.status = status


async def check_password(site: Site, address: str, account: str, password: str) -> str:
    """The account as the server spells it; ``WrongPassword`` where this does not log in a person."""
    keys = (f"{ADDRESS}{address}", f"account {account.lower()}")
    wait = site.throttle.wait(*keys)
    if wait > 0:
        raise WrongPassword(f"Too many wrong passwords. Try again in {math.ceil(wait / 60)} minutes.", 429)
    if not account or not password:
        raise WrongPassword("Account and password are needed.")
    if not account.isprintable() or " " in account:
        raise WrongPassword("Account or password are wrong.")
    site.throttle.failed(*keys)  # until it is known to be right: many at once must not have a guess each
    try:
        name = await _asked(site, account, password)
    except Hopeless as refused:
        if _TOO_MANY not in str(refused).lower():
            raise WrongPassword("Account or password are wrong.") from None
        site.throttle.forgive(*keys)
        raise WrongPassword("The server looks at no passwords at present, as too many were wrong.", 429) from None
    except BaseException:
        site.throttle.forgive(*keys)
        raise
    site.throttle.forgive(keys[0])  # no more, or one right password would buy more guesses of others
    site.throttle.succeeded(keys[1])
    return name


async def _asked(site: Site, account: str, password: str) -> str:
    settings = site.settings
    irc = IRCTransport(settings.address, ClientIdentity(settings.nick_of(account), account, password, bot=False))
    try:
        async with asyncio.timeout(_PATIENCE):
            await irc.start()
        members = await irc.send_who(irc.nick)
        if {member.kind for member in members} & {UserClass.AGENT, UserClass.BOT}:
            raise WrongPassword("This page is for people: that account is a program's.")
        return irc.view.account or account
    except TimeoutError:
        raise WrongPassword("The server does not answer at the moment; try again.", 503) from None
    except NotSent as refused:
        raise WrongPassword(f"The server does not answer as it should: {refused.reason}", 503) from None
    finally:
        await irc.stop("checked")
