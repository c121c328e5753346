"""Sockets of the server.

| module | what it holds |
|---|---|
| ``poller`` | one epoll set for all sockets; a turn reads all, then writes each client once |
| ``event_loop`` | asyncio's loop around the poller |
| ``listener`` | listening sockets, and the layers that a new connection gets |
| ``connection`` | a client's socket and its send queue |
| ``layers``, ``tls``, ``websocket`` | byte layers between socket and session, without I/O |
| ``connection_limits`` | limits by address, by local user and by descriptors |
| ``keepalive`` | PING and timeouts |
| ``certificates`` | self-signed certificates |
| ``port_conflict`` | names the process that has a port |
"""
