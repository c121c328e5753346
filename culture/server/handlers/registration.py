"""Registration: PASS, NICK, USER, PING, PONG, QUIT."""

from culture.lib.secret_compare import same_secret
from culture.protocol.message import Message
from culture.protocol.names import fold, reserved, valid_local_nick, valid_nick
from culture.protocol.numerics import Numeric
from culture.protocol.split import clip
from culture.server.auth.local_user import account_at
from culture.server.commands import Later, command
from culture.server.context import Context
from culture.server.core.session_lifecycle import check_ownership, complete
from culture.server.core.state import same
from culture.server.errors import Refused
from culture.server.events import Renamed
from culture.server.handlers.authenticate import log_in_by_password


@command("PASS", params=1, early=True)
def password(ctx: Context, message: Message) -> Later | None:
    """``PASS secret``: give the server's password, or ``PASS account:password`` to log in."""
    if ctx.session.user is not None:
        raise Refused(Numeric.ERR_ALREADYREGISTERED)
    credential = message.params[0]
    ctx.session.password = credential
    name, colon, secret = credential.partition(":")
    if not (colon and name and secret) or same_secret(credential, ctx.config.password):
        return None
    return log_in_by_password(ctx, name, secret)


@command("NICK", early=True)
def nick(ctx: Context, message: Message) -> Later | None:
    """``NICK name``: choose or change your nick."""
    if not message.params or not message.params[0]:
        raise Refused(Numeric.ERR_NONICKNAMEGIVEN)
    new_nick = message.params[0]
    _check_nick(ctx, new_nick)
    user = ctx.session.user
    if user is None:
        ctx.session.nick = new_nick
        return complete(ctx)
    if new_nick != user.nick:
        check_ownership(ctx, new_nick)
        ctx.publish(Renamed(ctx.stamp(), user.source, new_nick))
    return None


@command("USER", params=4, early=True)
def user(ctx: Context, message: Message) -> Later | None:
    """``USER name 0 * :real name``: set your user name and real name."""
    if ctx.session.user is not None:
        raise Refused(Numeric.ERR_ALREADYREGISTERED)
    name, _, _, realname = message.params[:4]
    if not name or not realname:
        raise Refused(Numeric.ERR_NEEDMOREPARAMS, "USER")
    limits = ctx.config.limits
    ctx.session.username = "~" + _plain(name)[: limits.user_length]
    ctx.session.realname = clip(realname, limits.realname_length)
    return complete(ctx)


@command("PING", params=0, early=True)
def ping(ctx: Context, message: Message) -> None:
    """``PING token``: check the connection; the answer is PONG."""
    if not message.params:
        raise Refused(Numeric.ERR_NEEDMOREPARAMS, "PING")
    ctx.send("PONG", ctx.router.name, message.params[0])


@command("PONG", early=True)
def pong(ctx: Context, message: Message) -> None:
    """``PONG token``: answer a PING of the server."""


@command("QUIT", early=True)
def leave(ctx: Context, message: Message) -> None:
    """``QUIT :reason``: disconnect."""
    reason = message.params[0] if message.params else ""
    ctx.session.close(f"Quit: {reason}" if reason else "Quit")


def _check_nick(ctx: Context, new_nick: str) -> None:
    config, limit = ctx.config, ctx.config.limits.nick_length
    if config.nick_prefix == "required":
        fits = valid_local_nick(new_nick, config.short_name, limit)
        hint = f"Nicks here look like {config.short_name}-name, at most {limit} characters"
        better = f"{config.short_name}-{new_nick}"
        if fits:
            hint = "Reserved: people would mistake it for something else"
        elif (
            not fold(new_nick).startswith(f"{config.short_name}-")
            and valid_local_nick(better, config.short_name, limit)
            and not reserved(better)
        ):
            hint += f": try {better}"
    else:
        fits = valid_nick(new_nick, limit)
        hint = f"Erroneous nickname: letters, digits and -_[]\\^{{}}|`, at most {limit} characters"
        fits = fits and not same(new_nick, ctx.router.name)  # a message of the server must not look like a user's
    if not fits or (config.nick_prefix == "required" and reserved(new_nick)):
        raise Refused(Numeric.ERR_ERRONEUSNICKNAME, new_nick, text=hint)
    owner = ctx.network.user(new_nick)
    # A client that logs in may be the owner; that is known when registration is complete.
    session = ctx.session
    may_attach = session.user is None and (
        session.password is not None or "sasl" in session.caps.enabled or config.self_registration == "anybody"
    )
    if owner is None or owner is session.user or may_attach:
        return
    if session.user is not None or account_at(session, new_nick, ctx.parts.accounts, config) is None:
        raise Refused(Numeric.ERR_NICKNAMEINUSE, new_nick)


def _plain(name: str) -> str:
    """Return a user name without the characters that ``nick!user@host`` cannot contain."""
    return "".join(c for c in name if c.isascii() and (c.isalnum() or c in "-_.")) or "user"
