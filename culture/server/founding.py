"""Who may register a channel (+P), and who may end that."""

from culture.protocol.numerics import Numeric
from culture.server.context import Context
from culture.server.errors import Refused
from culture.server.state import Channel, User
from culture.server.visibility import is_operator


def may_release(user: User, channel: Channel) -> bool:
    """The founder, and operators of the server, without whom nobody could once the founder is gone."""
    return channel.is_founder(user) or is_operator(user)


def check_registration(ctx: Context, channel: Channel, add: bool) -> None:
    """Refuse what this operator of the channel may not do."""
    user, limit = ctx.user, ctx.config.limits.registered_channels
    if not add:
        if not may_release(user, channel):
            text = "Only the channel's founder or an IRC operator may do this"
            raise Refused(Numeric.ERR_CHANOPRIVSNEEDED, channel.name, text=text)
    elif user.account is None:
        text = "Log in first: a registered channel belongs to an account"
        raise Refused(Numeric.ERR_NEEDREGGEDNICK, channel.name, text=text)
    elif sum(each.is_founder(user) for each in ctx.network.channels.values()) >= limit:
        text = f"An account may register at most {limit} channels"
        raise Refused(Numeric.ERR_TOOMANYCHANNELS, channel.name, text=text)
