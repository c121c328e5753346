"""The agent's socket under the name that the founding documents give it."""

from culture.clients.shared.socket_server import SocketServer

__all__ = ["SocketServer"]
