"""Sockets of the server: event loop, listeners, connections, TLS and WebSocket layers, connection limits."""
