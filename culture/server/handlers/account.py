"""REDEEM: a person who was invited makes their account, once for each key."""

import logging
import time
from functools import partial

from culture.protocol.message import Message
from culture.protocol.names import fold
from culture.protocol.vocabulary import LoginProof, UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import Account, AccountRefused, AccountsError, NameTaken, account_name, new_account
from culture.server.auth.credential_check import Done
from culture.server.auth.invitations import Invitation, Invitations, NotInvited, UnreadableInvitations, path_of
from culture.server.auth.login_attempts import TOO_MANY
from culture.server.auth.password import PasswordVerifier, UnfitPassword, prepare
from culture.server.commands import Later, command
from culture.server.context import Context
from culture.server.errors import Failed
from culture.server.handlers.authenticate import is_private, log_in

log = logging.getLogger(__name__)

CAPABILITY = "draft/account-registration"

_SHORTEST_PASSWORD = 8
_BEFORE_CONNECT = "before-connect"


def may_make_account(ctx: Context) -> bool:
    """Is this something for the session at all?"""
    return ctx.config.self_registration != "off" and is_private(ctx)


def offer(ctx: Context) -> str | None:
    """The value of the capability."""
    return _BEFORE_CONNECT if _early(ctx) else None


def _early(ctx: Context) -> bool:
    """May somebody make an account before they are let in? It must be no way around the server's password."""
    return ctx.config.self_registration == "anybody" and ctx.config.password is None


@command("REGISTER", params=3, early=True)
def register(ctx: Context, message: Message) -> Later:
    """``REGISTER * * password``: make an account named like my nick, and log in to it."""
    said, _, password = message.params[:3]
    _check_allowed(ctx, "REGISTER", said)
    name = _name(ctx, said)
    check_password("REGISTER", name, password)
    session = ctx.session
    holder = ctx.network.user(session.nick or "")
    if (holder is not None and holder is not session.user) or ctx.parts.accounts.owner_of(name) is not None:
        raise _taken(name)
    if not ctx.parts.logins.may_make_account(session, ctx.config.limits, ctx.now()):
        raise Failed("REGISTER", "TEMPORARILY_UNAVAILABLE", name, text="Too many new accounts, try again later")
    work = partial(_make, ctx.parts.accounts, name, password)
    return Later(ctx.parts.logins.check(work), lambda outcome: _made(ctx, outcome))


@command("VERIFY", params=2, early=True)
def verify(ctx: Context, message: Message) -> None:
    """``VERIFY account code``: nothing here waits for a code."""
    name = message.params[0]
    _check_allowed(ctx, "VERIFY", name)
    raise Failed("VERIFY", "INVALID_CODE", name, text="Accounts here need no code")


def _check_allowed(ctx: Context, verb: str, name: str) -> None:
    session = ctx.session
    if ctx.config.self_registration == "off":
        raise Failed(verb, "DISALLOWED", name, text="Accounts are made by those who run this server")
    if session.account is not None:
        raise Failed(verb, "ALREADY_AUTHENTICATED", session.account.name, text="You are logged in")
    if session.user is None and not _early(ctx):
        raise Failed(verb, "COMPLETE_CONNECTION_REQUIRED", name, text="Come in first, with NICK and USER")
    if not is_private(ctx):
        raise Failed(verb, "TEMPORARILY_UNAVAILABLE", name, text="Passwords are taken over TLS only")


def _name(ctx: Context, said: str) -> str:
    """The account's name: that of the nick, without the server's prefix where nicks have one."""
    nick = ctx.session.nick if ctx.session.user is None else ctx.nick
    if nick is None:
        raise Failed("REGISTER", "NEED_NICK", "*", text="Choose a nick first")
    bare = ctx.parts.accounts.bare
    if said != "*" and bare(said) != bare(nick):
        raise Failed("REGISTER", "ACCOUNT_NAME_MUST_BE_NICK", said, text=f"An account is named like its nick: {nick}")
    name = nick[len(nick) - len(bare(nick)) :]
    if bare(name) != fold(name):
        text = "The prefix of the server is no part of a name: the account would own another nick"
        raise Failed("REGISTER", "BAD_ACCOUNT_NAME", name, text=text)
    try:
        return account_name(name)
    except AccountRefused as refused:
        raise Failed("REGISTER", "BAD_ACCOUNT_NAME", name, text=str(refused)) from refused


def check_password(verb: str, name: str, password: str) -> None:
    """Refuse what is too short, or no password."""
    if len(password) < _SHORTEST_PASSWORD:
        raise Failed(verb, "WEAK_PASSWORD", name, text=f"A password has at least {_SHORTEST_PASSWORD} characters")
    try:
        prepare(password)
    except UnfitPassword as unfit:
        raise Failed(verb, "UNACCEPTABLE_PASSWORD", name, text=str(unfit)) from unfit


def _make(store: AccountStore, name: str, password: str) -> Account | Failed:
    """Hash and write, in a thread. Nobody becomes a person by their own word, so the class is bot."""
    try:
        account = new_account(name, UserClass.BOT, verifier=PasswordVerifier.of(password))
        store.add(account)
    except NameTaken:
        return _taken(name)
    except AccountsError as error:
        log.error("%s", error)
        return Failed("REGISTER", "TEMPORARILY_UNAVAILABLE", name, text="The account could not be written")
    return account


def _made(ctx: Context, outcome: Account | Failed) -> None:
    if isinstance(outcome, Failed):
        raise outcome
    log.info("%s made the account %s", ctx.session.host, outcome.name)
    ctx.send("REGISTER", "SUCCESS", outcome.name, "The account is yours, and you are logged in")
    log_in(ctx, Done(outcome.name, LoginProof.PASSWORD))


def _taken(name: str) -> Failed:
    return Failed("REGISTER", "ACCOUNT_EXISTS", name, text="That name is somebody's")


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
        store.add(new_account(invitation.name, UserClass.HUMAN, verifier=PasswordVerifier.of(password)))
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
