"""Documented import path of the agent's socket server."""

from culture.clients.shared.socket_server import SocketServer

__all__ = ["SocketServer"]
