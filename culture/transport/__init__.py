"""Being on IRC as somebody: one connection that is made again when it is lost, and loses nothing."""

from culture.transport.irc import IRCTransport
from culture.transport.types import (
    Address,
    Condition,
    Cursor,
    Hopeless,
    Identity,
    Mark,
    Member,
    Message,
    NoHistory,
    NotSent,
    Timing,
    Transport,
    Unreachable,
    WrongServer,
)
from culture.transport.view import View

__all__ = [
    "Address",
    "Condition",
    "Cursor",
    "Hopeless",
    "IRCTransport",
    "Identity",
    "Mark",
    "Member",
    "Message",
    "NoHistory",
    "NotSent",
    "Timing",
    "Transport",
    "Unreachable",
    "View",
    "WrongServer",
]
