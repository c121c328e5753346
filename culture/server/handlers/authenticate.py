"""AUTHENTICATE: log in to an account (IRCv3 sasl-3.2)."""

import logging
from collections.abc import Awaitable

from culture.protocol.message import Message
from culture.protocol.numerics import Numeric
from culture.protocol.vocabulary import Tag
from culture.server.auth import sasl
from culture.server.auth.accounts import AccountsError
from culture.server.auth.credential_check import CredentialCheck, Done, LoginFailed, check_password, may_act
from culture.server.auth.login_attempts import TOO_MANY, SaslLogin
from culture.server.auth.sasl import Challenge, SaslMechanism
from culture.server.auth.sasl_framing import Unframed, pieces
from culture.server.commands import Later, command
from culture.server.context import Context
from culture.server.errors import Refused
from culture.server.events import AccountSet

log = logging.getLogger(__name__)


def mechanisms(ctx: Context) -> tuple[SaslMechanism, ...]:
    """Return the SASL mechanisms for this session.

    Passwords and tokens need a private connection.
    """
    return sasl.offered(
        private=is_private(ctx),
        certificate=_certificate(ctx) is not None,
        tokens=ctx.parts.logins.tokens is not None,
    )


def _certificate(ctx: Context) -> str | None:
    return ctx.session.tls.certificate if ctx.session.tls is not None else None


def is_private(ctx: Context) -> bool:
    """Return whether nobody else can read the session's connection: it uses TLS or loopback."""
    return ctx.session.is_local or ctx.session.tls is not None


@command("AUTHENTICATE", params=1, early=True)
def authenticate(ctx: Context, message: Message) -> Later | None:
    """``AUTHENTICATE mechanism``, then ``AUTHENTICATE data``: log in; ``AUTHENTICATE *`` aborts."""
    word = message.params[0]
    login = ctx.parts.logins.under_way.get(ctx.session)
    if word == "*":
        ctx.parts.logins.forget(ctx.session)
        raise Refused(Numeric.ERR_SASLABORTED)
    if "sasl" not in ctx.session.caps.enabled:
        raise Refused(Numeric.ERR_SASLFAIL, text="Request the capability sasl first")
    if login is None:
        _begin(ctx, word)
        return None
    data = login.inbox.feed(word)
    if data is None:
        return None
    if isinstance(data, Unframed):
        ctx.parts.logins.forget(ctx.session)
        raise Refused(Numeric.ERR_SASLTOOLONG if data is Unframed.TOO_LONG else Numeric.ERR_SASLFAIL)
    if login.has_failed:
        ctx.parts.logins.forget(ctx.session)
        raise Refused(Numeric.ERR_SASLFAIL)
    step = login.exchange.step(data)
    if not isinstance(step, Done):
        _check_tries(ctx)
    return _handle_step(ctx, step)


def _check_tries(ctx: Context) -> None:
    """Raise Refused for a session with too many failed logins; called at each step of a login.

    A program that acts for people with a token can guess nothing and is not held up: one person's wrong password must
    not lock out the others.
    """
    if not ctx.parts.logins.may_try(ctx.session, ctx.config.limits, ctx.now()):
        ctx.parts.logins.forget(ctx.session)
        raise Refused(Numeric.ERR_SASLFAIL, text=TOO_MANY)


def _begin(ctx: Context, word: str) -> None:
    if word.upper() != SaslMechanism.PLAIN:  # which sends everything in one step
        _check_tries(ctx)
    _catch_up(ctx)
    names = mechanisms(ctx)
    chosen = next((each for each in names if each == word.upper()), None)
    if chosen is None:
        ctx.reply(Numeric.RPL_SASLMECHS, ",".join(names))
        raise Refused(Numeric.ERR_SASLFAIL)
    parts = ctx.parts
    exchange = sasl.begin(chosen, parts.accounts, _certificate(ctx), parts.logins.tokens, runtime=parts.runtime)
    ctx.parts.logins.under_way[ctx.session] = SaslLogin(exchange, chosen.longest)
    ctx.send("AUTHENTICATE", "+", source="")


def _handle_step(ctx: Context, step: sasl.Step) -> Later | None:
    match step:
        case Challenge(data):
            _challenge(ctx, data)
            return None
        case CredentialCheck():
            return Later(_run_check(ctx, step), lambda outcome: _finish(ctx, outcome))
        case LoginFailed():
            ctx.parts.logins.fail(ctx.session, ctx.now())
    _finish(ctx, step)
    return None


def _challenge(ctx: Context, data: bytes) -> None:
    for piece in pieces(data):
        ctx.send("AUTHENTICATE", piece, source="")


def _finish(ctx: Context, outcome: Done | LoginFailed) -> None:
    if isinstance(outcome, LoginFailed) and outcome.challenge:
        ctx.parts.logins.under_way[ctx.session].has_failed = True
        _challenge(ctx, outcome.challenge)
        return
    ctx.parts.logins.forget(ctx.session)
    if isinstance(outcome, LoginFailed):
        raise Refused(Numeric.ERR_SASLFAIL)
    log_in(ctx, outcome)
    ctx.reply(Numeric.RPL_SASLSUCCESS)


def _run_check(ctx: Context, check: CredentialCheck) -> Awaitable[Done | LoginFailed]:
    return ctx.parts.logins.try_password(ctx.session, check, ctx.config.limits, ctx.now)


def log_in(ctx: Context, done: Done) -> None:
    """Log the session in to the account of a successful login; raises Refused if it may not.

    The login is by the account's own credential, or by a program that acts for it (``done.by``).
    """
    by = done.by
    session, account = ctx.session, ctx.parts.accounts.active(done.account)
    acting = ctx.parts.accounts.active(by) if by is not None else None
    if account is None or (by is not None and (acting is None or not may_act(acting, account))):
        raise Refused(Numeric.ERR_SASLFAIL)
    user = session.user
    if ctx.config.nick_prefix == "required" and user is not None and user.account not in (None, account.name):
        # The nick and the other sessions belong to the first account and end when it is revoked.
        text = f"You are logged in as {user.account}: to log in as {account.name}, reconnect"
        raise Refused(Numeric.ERR_SASLALREADY, text=text)
    session.account, session.acting = account, acting
    session.login_tags = {Tag.LOGIN.value: done.proof.value}
    source = user.source if user is not None else f"{session.nick or '*'}!{session.username or '*'}@{session.host}"
    ctx.reply(Numeric.RPL_LOGGEDIN, source, account.name, text=f"You are now logged in as {account.name}")
    if user is not None and (user.account, user.account_kind) != (account.name, account.kind):
        ctx.publish(AccountSet(ctx.stamp(), user.source, account.name, account.kind))


def log_in_by_password(ctx: Context, name: str, password: str) -> Later | None:
    """Check the password of ``PASS account:password``, for clients without SASL, and log in.

    If it is wrong or cannot be checked, the connection is closed.
    """
    if not is_private(ctx):
        _reject(ctx, "Passwords are taken over TLS only")
        return None
    if not ctx.parts.logins.may_try(ctx.session, ctx.config.limits, ctx.now()):
        _reject(ctx, TOO_MANY)
        return None
    _catch_up(ctx)
    step = check_password(ctx.parts.accounts, name, password)
    if isinstance(step, LoginFailed):
        _reject(ctx, None)
        return None
    return Later(_run_check(ctx, step), lambda outcome: _admit(ctx, outcome))


def _catch_up(ctx: Context) -> None:
    """Read the accounts file again if it changed: one may log in to a new account at once."""
    try:
        ctx.parts.accounts.catch_up()
    except AccountsError as error:
        log.error("%s", error)


def _admit(ctx: Context, outcome: Done | LoginFailed) -> None:
    if isinstance(outcome, LoginFailed):
        _reject(ctx, None)
    else:
        log_in(ctx, outcome)


def _reject(ctx: Context, why: str | None) -> None:
    ctx.reply(Numeric.ERR_PASSWDMISMATCH, text=why)
    ctx.session.close("Access denied")
