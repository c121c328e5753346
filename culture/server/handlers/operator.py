"""IRC operators: OPER, KILL, WALLOPS, REHASH."""

import hashlib
import logging

from culture.config.errors import ConfigError
from culture.lib.secret_compare import same_secret
from culture.protocol.message import Message
from culture.protocol.modes import ModeChange
from culture.protocol.numerics import Numeric
from culture.protocol.split import room, split_text
from culture.server.auth.login_attempts import TOO_MANY
from culture.server.commands import command
from culture.server.context import Context
from culture.server.core.encode import wire
from culture.server.core.session_lifecycle import expel
from culture.server.core.state import same
from culture.server.core.visibility import is_operator
from culture.server.errors import Refused
from culture.server.events import UserModeSet, Walloped

log = logging.getLogger(__name__)

_HASHED = "sha256$"


@command("OPER", params=2)
def oper(ctx: Context, message: Message) -> None:
    """``OPER name password``: become an IRC operator (RFC 2812 §3.1.4)."""
    name, password = message.params[:2]
    logins, now = ctx.parts.logins, ctx.now()
    if not logins.may_try(ctx.session, ctx.config.limits, now):
        raise Refused(Numeric.ERR_PASSWDMISMATCH, text=TOO_MANY)
    # An unknown name takes as long as a wrong password and gets the same answer.
    expected = next((each.password for each in ctx.config.operators if each.name == name), logins.no_password)
    if not _is_password(password, expected):
        log.warning("%s failed to become operator %s", ctx.user.source, name)
        logins.fail(ctx.session, now)
        raise Refused(Numeric.ERR_PASSWDMISMATCH)
    log.info("%s became operator %s", ctx.user.source, name)
    ctx.reply(Numeric.RPL_YOUREOPER)
    if not is_operator(ctx.user):
        ctx.publish(UserModeSet(ctx.stamp(), ctx.user.source, (ModeChange(True, "o"),)))
    for name, why in ctx.parts.skills.off.items():
        _tell(ctx, f"*** the skill {name} failed and is switched off until a restart: {why}")


def _is_password(password: str, expected: str) -> bool:
    """Return whether a password matches ``expected``: plain, or ``sha256$`` and a hash in hex."""
    digest = _HASHED + hashlib.sha256(password.encode()).hexdigest()
    return same_secret(digest, expected.lower()) if expected.startswith(_HASHED) else same_secret(password, expected)


@command("KILL", params=1)
def kill(ctx: Context, message: Message) -> None:
    """``KILL nick :reason``: end all sessions of a user of this server (RFC 2812 §3.7.1)."""
    _check_operator(ctx)
    nick, reason = message.params[0], "".join(message.params[1:2]) or "No reason given"
    if same(nick, ctx.router.name):
        raise Refused(Numeric.ERR_CANTKILLSERVER)
    victim, killer = ctx.find_user(nick), ctx.user
    if victim.server != ctx.router.name:
        text = f"{victim.nick} is on {victim.server}, and only that server's operators can do this"
        raise Refused(Numeric.ERR_NOPRIVILEGES, text=text)
    log.info("%s kills %s: %s", killer.source, victim.source, reason)
    line = wire(Message("KILL", (victim.nick, reason), killer.source))
    for session in list(ctx.router.sessions.get(victim, ())):
        session.send(line)
    expel(ctx.parts, victim, f"Killed ({killer.nick} ({reason}))")


@command("WALLOPS", params=1)
def wallops(ctx: Context, message: Message) -> None:
    """``WALLOPS :text``: send a message to all users with mode +w (RFC 2812 §4.7)."""
    _check_operator(ctx)
    source = ctx.user.source
    pieces = split_text(message.params[0], room(source, "WALLOPS", ""))
    if not pieces:
        raise Refused(Numeric.ERR_NEEDMOREPARAMS, "WALLOPS")
    for piece in pieces:
        ctx.publish(Walloped(ctx.stamp(), source, piece))


@command("REHASH")
def rehash(ctx: Context, message: Message) -> None:
    """``REHASH``: read the configuration again (RFC 2812 §4.2)."""
    _check_operator(ctx)
    try:
        ctx.parts.rehash()
    except ConfigError as error:
        log.warning("the configuration is unchanged:\n%s", error)
        _tell(ctx, f"The configuration is unchanged:\n{error}")
        return
    log.info("%s reloaded the configuration", ctx.user.source)
    ctx.reply(Numeric.RPL_REHASHING, "culture.yaml")


def _tell(ctx: Context, text: str) -> None:
    for line in split_text(text, room(ctx.router.name, "NOTICE", ctx.nick)):
        ctx.send("NOTICE", ctx.nick, line)


def _check_operator(ctx: Context) -> None:
    if not is_operator(ctx.user):
        raise Refused(Numeric.ERR_NOPRIVILEGES)
