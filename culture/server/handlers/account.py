"""REGISTER, VERIFY, REDEEM: a client makes its account (IRCv3 draft/account-registration)."""

import logging
from functools import partial

from culture.protocol.message import Message
from culture.protocol.names import fold
from culture.protocol.vocabulary import LoginProof, UserClass
from culture.runtime import Runtime
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

_SHORTEST_PASSWORD = 8  # characters
_BEFORE_CONNECT = "before-connect"


def may_make_account(ctx: Context) -> bool:
    """Return whether this session may make an account: settings and connection allow it."""
    return ctx.config.self_registration != "off" and is_private(ctx)


def offer(ctx: Context) -> str | None:
    """Return the value of the capability draft/account-registration, None for no value.

    A value says that accounts can be created before NICK and USER.
    """
    return _BEFORE_CONNECT if _early(ctx) else None


def _early(ctx: Context) -> bool:
    """Return whether accounts may be created before the client has registered by NICK and USER.

    They may not if the server has a password.
    """
    return ctx.config.self_registration == "anybody" and ctx.config.password is None


@command("REGISTER", params=3, early=True)
def register(ctx: Context, message: Message) -> Later:
    """``REGISTER * * password``: make an account named like your nick, and log in to it."""
    requested, _, password = message.params[:3]
    _check_allowed(ctx, "REGISTER", requested)
    name = _name(ctx, requested)
    check_password("REGISTER", name, password)
    session = ctx.session
    holder = ctx.network.user(session.nick or "")
    if (holder is not None and holder is not session.user) or ctx.parts.accounts.owner_of(name) is not None:
        raise _taken(name)
    if not ctx.parts.logins.may_make_account(session, ctx.config.limits, ctx.now()):
        raise Failed("REGISTER", "TEMPORARILY_UNAVAILABLE", name, text="Too many new accounts, try again later")
    work = partial(_make, ctx.parts.accounts, name, password, runtime=ctx.parts.runtime)
    return Later(ctx.parts.logins.check(work), lambda outcome: _made(ctx, outcome))


@command("VERIFY", params=2, early=True)
def verify(ctx: Context, message: Message) -> None:
    """``VERIFY account code``: not needed; accounts here are not verified."""
    name = message.params[0]
    _check_allowed(ctx, "VERIFY", name)
    raise Failed("VERIFY", "INVALID_CODE", name, text="Accounts here need no code")


def _check_allowed(ctx: Context, verb: str, name: str) -> None:
    session = ctx.session
    if ctx.config.self_registration == "off":
        raise Failed(verb, "DISALLOWED", name, text="Only the operators of this server make accounts")
    if session.account is not None:
        raise Failed(verb, "ALREADY_AUTHENTICATED", session.account.name, text="You are logged in")
    if session.user is None and not _early(ctx):
        raise Failed(verb, "COMPLETE_CONNECTION_REQUIRED", name, text="Register first, with NICK and USER")
    if not is_private(ctx):
        raise Failed(verb, "TEMPORARILY_UNAVAILABLE", name, text="Passwords are taken over TLS only")


def _name(ctx: Context, requested: str) -> str:
    """Return the name for the session's new account: its nick, without the prefix of the server.

    ``requested``: the name in the command, which must be the nick or ``*``. Raises Failed.
    """
    nick = ctx.session.nick if ctx.session.user is None else ctx.nick
    if nick is None:
        raise Failed("REGISTER", "NEED_NICK", "*", text="Choose a nick first")
    bare = ctx.parts.accounts.bare
    if requested != "*" and bare(requested) != bare(nick):
        raise Failed(
            "REGISTER", "ACCOUNT_NAME_MUST_BE_NICK", requested, text=f"An account is named like its nick: {nick}"
        )
    name = nick[len(nick) - len(bare(nick)) :]
    if bare(name) != fold(name):
        text = "The prefix of the server is no part of a name: the account would own another nick"
        raise Failed("REGISTER", "BAD_ACCOUNT_NAME", name, text=text)
    try:
        return account_name(name)
    except AccountRefused as refused:
        raise Failed("REGISTER", "BAD_ACCOUNT_NAME", name, text=str(refused)) from refused


def check_password(verb: str, name: str, password: str) -> None:
    """Raise Failed for a password that is too short or has characters that no password may have.

    ``verb`` and ``name``: the command and the account, for the reply.
    """
    if len(password) < _SHORTEST_PASSWORD:
        raise Failed(verb, "WEAK_PASSWORD", name, text=f"A password has at least {_SHORTEST_PASSWORD} characters")
    try:
        prepare(password)
    except UnfitPassword as unfit:
        raise Failed(verb, "UNACCEPTABLE_PASSWORD", name, text=str(unfit)) from unfit


def _make(store: AccountStore, name: str, password: str, *, runtime: Runtime) -> Account | Failed:
    """Add an account with this password, and return it, or the refusal; call it in a thread.

    The account is of class bot, since nobody vouches that a person has it.
    """
    try:
        verifier = PasswordVerifier.of(password, runtime=runtime)
        account = new_account(name, UserClass.BOT, verifier=verifier, runtime=runtime)
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
    return Failed("REGISTER", "ACCOUNT_EXISTS", name, text="This name belongs to another account")


log = logging.getLogger(__name__)

LABEL = "joined"
"""The label of the token that a redeemed invitation creates for the person's programs."""


@command("REDEEM", params=3, early=True)
def redeem(ctx: Context, message: Message) -> Later:
    """``REDEEM account key :password``: make your account by an invitation, with this password."""
    name, key, password = message.params[:3]
    if not is_private(ctx):
        raise Failed("REDEEM", "NEED_TLS", text="Invitations are redeemed over TLS only")
    if not ctx.parts.logins.may_try(ctx.session, ctx.config.limits, ctx.now()):
        raise Failed("REDEEM", "TOO_MANY", text=TOO_MANY)
    check_password("REDEEM", name, password)
    runtime = ctx.parts.runtime
    invitations = Invitations(path_of(ctx.config), runtime=runtime)
    work = partial(_redeemed, invitations, ctx.parts.accounts, name, key, password, runtime=runtime)
    return Later(ctx.parts.logins.check(work), lambda outcome: _answer(ctx, name, outcome))


def _redeemed(
    invitations: Invitations, store: AccountStore, name: str, key: str, password: str, *, runtime: Runtime
) -> str | Failed:
    """Make the invited person's account and return a token for it, or the refusal.

    ``name`` and ``password``: those of the account; ``key``: the invitation's. Call it in a thread.
    """
    token = ""

    def let_in(invitation: Invitation) -> None:
        nonlocal token
        verifier = PasswordVerifier.of(password, runtime=runtime)
        store.add(new_account(invitation.name, UserClass.HUMAN, verifier=verifier, runtime=runtime))
        token = store.add_token(invitation.name, LABEL)

    try:
        invitations.redeem("person", key, name, runtime.now(), let_in)
    except NotInvited as why:
        return Failed("REDEEM", "INVALID_KEY" if why.is_guess else "NOT_INVITED", text=str(why))
    except AccountRefused as refused:
        return Failed("REDEEM", "BAD_ACCOUNT_NAME", text=str(refused))
    except (AccountsError, UnreadableInvitations, OSError) as error:
        log.error("cannot redeem an invitation: %s", error)
        return Failed("REDEEM", "TEMPORARILY_UNAVAILABLE", text="The account could not be written")
    return token


def _answer(ctx: Context, name: str, outcome: str | Failed) -> None:
    if isinstance(outcome, Failed):
        if "INVALID_KEY" in outcome.params:
            log.warning("an unknown invitation key was tried from %s", ctx.session.host)
            ctx.parts.logins.fail(ctx.session, ctx.now())
        raise outcome
    prefix = f"{ctx.config.short_name}-" if ctx.config.nick_prefix == "required" else ""
    log.info("%s redeemed an invitation and has an account", name)
    ctx.send("REDEEM", "SUCCESS", name, f"{prefix}{name}", outcome)
