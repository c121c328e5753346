"""Registration, attaching to a present user, and leaving.

A user may have several sessions. A client that logs in to the account of a user who is here becomes one more session of
it; the user leaves with its last session, or stays as away if the account is always on.
"""

import logging
from functools import partial

from culture.protocol.message import NO_TAGS
from culture.protocol.modes import ModeChange
from culture.protocol.names import fold
from culture.protocol.numerics import Numeric
from culture.protocol.vocabulary import Tag, UserClass
from culture.server.auth.accounts import Account
from culture.server.auth.authenticator import Credentials, ServerIdentity
from culture.server.auth.local_user import account_at, objection
from culture.server.commands import Later
from culture.server.context import Context, ServerParts
from culture.server.core.session import Session
from culture.server.core.state import User
from culture.server.core.welcome import show_channels, welcome
from culture.server.errors import Refused
from culture.server.events import AccountSet, Arrived, AwaySet, Left, UserModeSet

log = logging.getLogger(__name__)

DISCONNECTED = "Not connected"
_REPLACED = "Replaced by a new login"


def complete(ctx: Context) -> Later | None:
    """Register the client if NICK, USER and CAP END have come; else do nothing.

    Returns a Later if the uid of the client's process has to be checked first.
    """
    session = ctx.session
    if session.nick is None or session.username is None or session.caps.pending or session.user is not None:
        return None
    if session.account is None and _account_here(ctx) is not None:
        _, inode = session.connection.peer_owner() or (None, None)
        look = partial(objection, inode, runtime=ctx.parts.runtime)
        return Later(ctx.parts.logins.look(look), partial(_log_in_by_uid, ctx))
    _enter(ctx)
    return None


def _account_here(ctx: Context) -> Account | None:
    return account_at(ctx.session, ctx.session.nick or "", ctx.parts.accounts, ctx.config)


def _log_in_by_uid(ctx: Context, why_not: str) -> None:
    """Register the client, logged in to the account of its nick if ``why_not`` is empty.

    ``why_not``: why the uid of the client's process is no proof; the client is told.
    """
    session = ctx.session
    session.not_owner = why_not
    if why_not:
        log.warning("no login by local uid as %s: %s", session.nick, why_not)
        if ctx.config.nick_prefix != "required":  # else the refusal of the nick says it
            ctx.send("NOTICE", "*", f"No login by local uid: {why_not}")
    else:
        session.account = _account_here(ctx)
        session.login_tags = NO_TAGS if session.account is None else {Tag.KEYBOARD.value: ""}
    _enter(ctx)


def _enter(ctx: Context) -> None:
    session = ctx.session
    try:
        identity = ctx.parts.authenticator.authenticate(_credentials(session))
    except Refused as refused:
        ctx.refuse(refused)
        session.close("Access denied")
        return
    if Tag.KEYBOARD in session.login_tags:
        source, name = f"{session.nick}!{session.username}@{session.host}", identity.account or ""
        ctx.reply(
            Numeric.RPL_LOGGEDIN, source, name, text=f"You are logged in as {name}, by the user id of your program"
        )
    user = _same_person(ctx, identity)
    if user is not None:
        _attach(ctx, user)
        return
    nick = session.nick or ""
    _check_free(ctx, nick, identity.account)
    _arrive(ctx, nick, identity)


def _credentials(session: Session) -> Credentials:
    return Credentials(
        session.nick or "",
        session.host,
        session.password,
        session.account,
        session.is_local,
        session.is_websocket,
        session.connection.peer_uid,
    )


def _same_person(ctx: Context, identity: ServerIdentity) -> User | None:
    """Return the connected user to whom a new session with this identity belongs, or None.

    The user has the same account and, unless nicks are bound to accounts, the same nick.
    """
    if identity.account is None:
        return None
    if ctx.config.nick_prefix == "required":
        return ctx.network.by_account(identity.account, ctx.router.name)
    user = ctx.network.user(ctx.session.nick or "")
    return user if user is not None and user.account == identity.account else None


def _check_free(ctx: Context, nick: str, account: str | None) -> None:
    """Raise Refused for a nick that is in use or belongs to another account.

    If it belongs to ``account``, the user who has it is disconnected instead.
    """
    try:
        is_owner = _check_owner(ctx, nick, account)
        holder = ctx.network.user(nick)
        if holder is not None and not is_owner:
            raise Refused(Numeric.ERR_NICKNAMEINUSE, nick)
    except Refused:
        ctx.session.nick = None
        raise
    if holder is not None:
        expel(ctx.parts, holder, f"Your nick belongs to the account {account}")


def check_ownership(ctx: Context, nick: str) -> None:
    """Raise Refused if this nick belongs to an account that is not that of the session's user."""
    _check_owner(ctx, nick, ctx.user.account)


def _check_owner(ctx: Context, nick: str, account: str | None) -> bool:
    """Return True if the account owns this nick, False if no account does.

    Raises Refused if another account owns it. Without the setting that binds nicks to accounts, nobody owns a nick.
    """
    owner = ctx.parts.accounts.owner_of(nick) if ctx.config.nick_prefix == "required" else None
    if owner is None:
        return False
    if account is None or fold(owner.name) != fold(account):
        why = f", and {ctx.session.not_owner}" if ctx.session.not_owner else ": log in"
        raise Refused(Numeric.ERR_NICKNAMEINUSE, nick, text=f"This nick belongs to the account {owner.name}{why}")
    return True


def _arrive(ctx: Context, nick: str, identity: ServerIdentity) -> None:
    session = ctx.session
    ctx.publish(
        Arrived(
            ctx.stamp(),
            nick,
            session.username or "",
            session.host,
            session.realname,
            ctx.router.name,
            identity.account,
            identity.kind,
        )
    )
    ctx.router.attach(session, ctx.network.users[fold(nick)])
    session.password = None
    welcome(ctx)


def _attach(ctx: Context, user: User) -> None:
    """Add the session to a connected user: it gets the same nick and the same channels.

    An agent's earlier sessions are closed.
    """
    before = list(ctx.router.sessions.get(user, ()))
    ctx.router.attach(ctx.session, user)
    ctx.session.password = None
    _take_class(ctx, user)
    if user.kind == UserClass.AGENT:
        for ghost in before:
            ghost.close(_REPLACED)
    if user.away == DISCONNECTED:
        ctx.publish(AwaySet(ctx.stamp(), user.source, None))
    welcome(ctx)
    show_channels(ctx)
    for tell in ctx.parts.on_session_attach:
        tell(ctx.session)


def _take_class(ctx: Context, user: User) -> None:
    """Update the class of a connected user if its account has another class by now."""
    account = ctx.session.account
    if account is not None and user.account_kind != account.kind:
        ctx.publish(AccountSet(ctx.stamp(), user.source, account.name, account.kind))


def depart(parts: ServerParts, session: Session, reason: str) -> None:
    """Handle a session's end: with the last one, its user leaves, or if always on goes away.

    ``parts``: the parts of the server; ``reason``: the text of the QUIT.
    """
    router, user = parts.router, session.user
    if not router.detach(session) or user is None:
        return
    account = parts.accounts.active(user.account) if user.account is not None else None
    if account is None or not account.always_on or not _may_stay(parts, user, account):
        router.publish(Left(router.ids.stamp(), user.source, reason))
        return
    if "o" in user.modes:  # a later session has not given the operator password
        router.publish(UserModeSet(router.ids.stamp(), user.source, (ModeChange(False, "o"),)))
    # A person's away text stays while they are gone; an agent's described a program that has ended.
    if user.away is None or user.kind == UserClass.AGENT:
        router.publish(AwaySet(router.ids.stamp(), user.source, DISCONNECTED))


def _may_stay(parts: ServerParts, user: User, account: Account) -> bool:
    """Return whether a user without sessions may stay on the network.

    The account must own the user's nick, or have no other user here.
    """
    if parts.accounts.owner_of(user.nick) == account:
        return True
    here = (each for each in parts.network.users.values() if each.server == user.server)
    return all(each is user or each.account != user.account for each in here)


def expel(parts: ServerParts, user: User, reason: str) -> None:
    """End every session of a user; the user leaves the network even if its account is always on.

    ``reason``: the text of the QUIT.
    """
    for session in list(parts.router.sessions.get(user, ())):
        session.close(reason)
    if parts.network.user(user.nick) is user:
        parts.router.publish(Left(parts.router.ids.stamp(), user.source, reason))
