"""Documented import path of the IRC connection."""

from culture.transport import IRCTransport

__all__ = ["IRCTransport"]
