"""REDEEM: a person who was invited makes their account, once for each key."""

import logging
import time
from functools import partial

from culture.protocol.message import Message
from culture.protocol.vocabulary import UserClass
from culture.server.accounts.errors import AccountRefused, AccountsError
from culture.server.accounts.model import new_account
from culture.server.accounts.store import AccountStore
from culture.server.accounts.verifier import Verifier
from culture.server.commands import Later, command
from culture.server.context import Context
from culture.server.errors import Failed
from culture.server.handlers.account import check_password
from culture.server.handlers.login import is_private
from culture.server.invitations import Invitation, Invitations, NotInvited, UnreadableInvitations, path_of
from culture.server.logins import TOO_MANY

log = logging.getLogger(__name__)

LABEL = "joined"
"""Of the token that whoever redeems an invitation gets for their programs."""


@command("REDEEM", params=3, early=True)
def redeem(ctx: Context, message: Message) -> Later:
    """``REDEEM account key :password``: I was invited; make my account, with this password."""
    name, key, password = message.params[:3]
    if not is_private(ctx):
        raise Failed("REDEEM", "NEED_TLS", text="An invitation is taken up over TLS")
    if not ctx.parts.logins.may_try(ctx.session, ctx.config.limits, ctx.now()):
        raise Failed("REDEEM", "TOO_MANY", text=TOO_MANY)
    check_password("REDEEM", name, password)
    work = partial(_redeemed, Invitations(path_of(ctx.config)), ctx.parts.accounts, name, key, password)
    return Later(ctx.parts.logins.check(work), lambda outcome: _answer(ctx, name, outcome))


def _redeemed(invitations: Invitations, store: AccountStore, name: str, key: str, password: str) -> str | Failed:
    """In a thread: a token of the new account. Whoever invites somebody says that they are a person."""
    token = ""

    def let_in(invitation: Invitation) -> None:
        nonlocal token
        store.add(new_account(invitation.name, UserClass.HUMAN, verifier=Verifier.of(password)))
        token = store.add_token(invitation.name, LABEL)

    try:
        invitations.redeem("person", key, name, time.time(), let_in)
    except NotInvited as why:
        return Failed("REDEEM", "INVALID_KEY" if why.is_guess else "NOT_INVITED", text=str(why))
    except AccountRefused as refused:
        return Failed("REDEEM", "BAD_ACCOUNT_NAME", text=str(refused))
    except (AccountsError, UnreadableInvitations, OSError) as error:
        log.error("nobody can be let in by invitation: %s", error)
        return Failed("REDEEM", "TEMPORARILY_UNAVAILABLE", text="It could not be written down")
    return token


def _answer(ctx: Context, name: str, outcome: str | Failed) -> None:
    if isinstance(outcome, Failed):
        if "INVALID_KEY" in outcome.params:
            log.warning("a key that opens nothing was tried from %s", ctx.session.host)
            ctx.parts.logins.fail(ctx.session, ctx.now())
        raise outcome
    prefix = f"{ctx.config.short_name}-" if ctx.config.nick_prefix == "required" else ""
    log.info("%s was invited, and has an account from now on", name)
    ctx.send("REDEEM", "SUCCESS", name, f"{prefix}{name}", outcome)
