"""The IRC connection under the name that the founding documents give it."""

from culture.transport import IRCTransport

__all__ = ["IRCTransport"]
