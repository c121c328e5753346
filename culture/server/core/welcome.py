"""The welcome of a registered client: 001 to 005, LUSERS, metadata, message of the day."""

from collections.abc import Iterator

from culture import __version__
from culture.protocol.message import Message
from culture.protocol.numerics import Numeric
from culture.server.channels.join_reply import show_join
from culture.server.context import Context
from culture.server.core.encode import wire
from culture.server.core.isupport import CHANNEL_MODES, PARAMETER_MODES, USER_MODES, tokens
from culture.server.core.render import iso_time
from culture.server.subscriptions.metadata_replies import show_own

VERSION = f"culture-{__version__}"


def welcome(ctx: Context) -> None:
    """Send a client that has just registered 001 to 005, LUSERS, its metadata and the MOTD."""
    config, user, server = ctx.config, ctx.user, ctx.router.name
    ctx.reply(Numeric.RPL_WELCOME, text=f"Welcome to the {config.network} IRC Network {user.source}")
    ctx.reply(Numeric.RPL_YOURHOST, text=f"Your host is {server}, running version {VERSION}")
    ctx.reply(Numeric.RPL_CREATED, text=f"This server has been up since {iso_time(ctx.parts.started)}")
    ctx.reply(Numeric.RPL_MYINFO, server, VERSION, USER_MODES, CHANNEL_MODES, PARAMETER_MODES)
    for group in tokens(config, ctx.parts.skills.isupport()):
        ctx.reply(Numeric.RPL_ISUPPORT, *group, text="are supported by this server")
    for row in lusers(ctx):
        ctx.session.send(wire(row))
    show_own(ctx)
    for row in motd(ctx):
        ctx.session.send(wire(row))


def show_channels(ctx: Context) -> None:
    """Send the session JOIN, topic, names and metadata of each channel that its user is in.

    The user joined these channels by an earlier session.
    """
    for channel in sorted(ctx.user.channels, key=lambda each: each.name):
        show_join(ctx, channel)


def motd(ctx: Context) -> Iterator[Message]:
    """Yield the lines of the message of the day."""
    text = ctx.config.motd
    if not text.strip():
        yield ctx.numeric(Numeric.ERR_NOMOTD)
        return
    yield ctx.numeric(Numeric.RPL_MOTDSTART, text=f"- {ctx.router.name} Message of the day - ")
    for line in text.splitlines():
        yield ctx.numeric(Numeric.RPL_MOTD, text=f"- {line}")
    yield ctx.numeric(Numeric.RPL_ENDOFMOTD)


def lusers(ctx: Context) -> Iterator[Message]:
    """Yield the lines of LUSERS: numbers of users, operators, channels, clients and servers."""
    network = ctx.network
    users, invisible, operators = len(network.users), network.count("i"), network.count("o")
    waiting = len(ctx.parts.sessions) - ctx.router.attached
    local, most = len(ctx.router.sessions), network.most_users
    linked = sum(server.hops == 1 for server in network.servers.values())
    yield ctx.numeric(
        Numeric.RPL_LUSERCLIENT,
        text=f"There are {users - invisible} users and {invisible} invisible on {len(network.servers) + 1} servers",
    )
    yield ctx.numeric(Numeric.RPL_LUSEROP, str(operators))
    yield ctx.numeric(Numeric.RPL_LUSERUNKNOWN, str(waiting))
    yield ctx.numeric(Numeric.RPL_LUSERCHANNELS, str(len(network.channels)))
    yield ctx.numeric(Numeric.RPL_LUSERME, text=f"I have {local} clients and {linked} servers")
    yield ctx.numeric(Numeric.RPL_LOCALUSERS, str(local), str(most), text=f"Current local users {local}, max {most}")
    yield ctx.numeric(Numeric.RPL_GLOBALUSERS, str(users), str(most), text=f"Current global users {users}, max {most}")
