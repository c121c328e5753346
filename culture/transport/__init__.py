"""Being on IRC as somebody: one connection that is made again when it is lost, and loses nothing."""

from culture.transport.irc import IRCTransport
from culture.transport.types import (
    Address,
    ChannelMember,
    ClientIdentity,
    ConnectionState,
    Hopeless,
    Message,
    NoHistory,
    NotSent,
    ReceiveCursor,
    ReceiveMark,
    ServerUnreachable,
    Timing,
    Transport,
    WrongServer,
)
from culture.transport.view import NetworkView

__all__ = [
    "Address",
    "ChannelMember",
    "ClientIdentity",
    "ConnectionState",
    "Hopeless",
    "IRCTransport",
    "Message",
    "NetworkView",
    "NoHistory",
    "NotSent",
    "ReceiveCursor",
    "ReceiveMark",
    "ServerUnreachable",
    "Timing",
    "Transport",
    "WrongServer",
]
