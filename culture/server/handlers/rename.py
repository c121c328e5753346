"""RENAME: give a channel another name (IRCv3 draft/channel-rename)."""

from culture.protocol.message import Message
from culture.protocol.names import valid_channel
from culture.protocol.numerics import Numeric
from culture.protocol.split import room
from culture.server.channels.ownership import may_release, name_fault
from culture.server.commands import command
from culture.server.context import Context
from culture.server.errors import Failed, Refused
from culture.server.events import ChannelRenamed


@command("RENAME", params=2)
def rename(ctx: Context, message: Message) -> None:
    """``RENAME #old #new :reason``: give a channel another name; for its operators."""
    (name, new), reason = message.params[:2], "".join(message.params[2:3])
    channel = ctx.find_channel(name)
    if ctx.user not in channel.members:
        raise Refused(Numeric.ERR_NOTONCHANNEL, channel.name)
    if not channel.is_operator(ctx.user):
        raise Refused(Numeric.ERR_CHANOPRIVSNEEDED, channel.name)
    if channel.is_registered and not may_release(ctx.user, channel):
        raise _cannot(channel.name, new, "Only its founder or an IRC operator renames a registered channel")
    if channel.standing:
        raise _cannot(channel.name, new, "The configuration names this channel")
    if not valid_channel(new, ctx.config.limits.channel_length):
        raise _cannot(channel.name, new, "This is not a name for a channel")
    if new == channel.name:
        raise _cannot(channel.name, new, "The channel has this name")
    if ctx.network.channel(new) not in (None, channel):
        raise Failed("RENAME", "CHANNEL_NAME_IN_USE", channel.name, new, text="There is a channel of this name")
    if (fault := name_fault(ctx, new, channel)) is not None:
        raise _cannot(channel.name, new, fault)
    left = room(ctx.user.source, "RENAME", f"{channel.name} {new}")
    if len(reason.encode()) > left:
        raise Refused(Numeric.ERR_INPUTTOOLONG, text=f"Reason too long: at most {left} bytes here")
    ctx.publish(ChannelRenamed(ctx.stamp(), ctx.user.source, channel.name, new, reason))


def _cannot(name: str, new: str, text: str) -> Failed:
    return Failed("RENAME", "CANNOT_RENAME", name, new, text=text)
