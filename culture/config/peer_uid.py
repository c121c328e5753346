"""Which user's process is at the other end of a loopback connection; whether to trust it.

A port of this machine belongs to whoever listens on it first: while our server is down, any local user can take its
place. ``check_peer`` is called on each connection without TLS before a byte is written or read. The rule: look up the
listening socket, then the accepted one. An accepted socket has an owner, which is the answer. One that still waits in
the backlog has none yet, but it lives only as long as its listener, which therefore was there all the time and is the
answer. A peer that has closed its socket has no owner either; then our side is no longer in state ESTABLISHED, and what
it sent before is not read. If neither exists and the connection stands, the other end is outside of this network
namespace (a port forwarded by the kernel, which only root sets up): its owner cannot be known, and the connection is
used.
"""

import os
import pwd
import socket
import struct
import sys
from pathlib import Path
from typing import Protocol

from culture.config.listen_policy import is_loopback
from culture.runtime import REAL, Runtime

_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
_REQUEST = 1  # NLM_F_REQUEST
_HEADER = struct.Struct("=IHHII")
_WANTED = struct.Struct("=BBBBI")
_UID = 4 + 48 + 4 + 4 + 4  # family…retrans, the addresses, expires, rqueue, wqueue
_OWNER = struct.Struct("=II")  # uid, inode; one that its process has closed has none, and may look like root's
_ALL_STATES = 0xFFFFFFFF
_PATIENCE = 0.2
_ESTABLISHED, _LISTENING = 1, "0A"
_SETTLED = 0.01
"""Seconds after which the end of a loopback connection has arrived."""

Address = tuple[str, int]

IS_KNOWN = sys.platform == "linux"
"""Whether the owner of a socket can be found on this system."""


class PortHeld(ConnectionError):
    """A user whom we do not trust listens on the port of a program of ours.

    It is temporary: it ends when the user stops listening.
    """

    def __init__(self, port: int, user: str, setting: str) -> None:
        self.problem = f"port {port} of this machine is held by user {user}, not by you"
        self.remedy = (
            f"End their program there, or let your server listen on another port; if {user} runs your server, set "
            f"{setting.format(user=user)}"
        )
        super().__init__(f"{self.problem}: nothing was sent. {self.remedy}")
        self.port = port
        self.user = user


SETTING = "server.user: {user} in agents.yaml"
"""The setting that names the owner of a server's process."""


class Connected(Protocol):
    """A TCP socket, or the socket of a transport of asyncio."""

    def getpeername(self) -> tuple[str, int]:
        """Return the address (host, port) of the other end."""

    def getsockname(self) -> tuple[str, int]:
        """Return the address (host, port) of our end."""

    def getsockopt(self, level: int, name: int, size: int, /) -> bytes:
        """Return ``size`` bytes of the value of a socket option."""


def check_peer(
    connection: Connected, allowed: str | None = None, setting: str = SETTING, *, runtime: Runtime = REAL
) -> None:
    """Raise PortHeld if the other end is a process of an untrusted user of this machine.

    Trusted are root, our user and ``allowed`` (name or uid). ``setting``: where people can allow a user, for the
    error's text.
    """
    (host, port), (own_host, own_port) = connection.getpeername()[:2], connection.getsockname()[:2]
    peer, own = (host.partition("%")[0], port), (own_host.partition("%")[0], own_port)
    if not IS_KNOWN or not _is_local(peer[0], own[0]):
        return
    uid = _peer_owner(connection, peer, own, runtime)
    if uid is None or uid in (0, os.geteuid()) or allowed in (str(uid), user_name(uid)):
        return
    raise PortHeld(peer[1], user_name(uid), setting)


def user_name(uid: int) -> str:
    """Return the name of the user with this uid; the uid as text if the user has no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _is_local(peer: str, own: str) -> bool:
    """Return whether both ends of a connection, given by their hosts, are on this machine."""
    return peer == own or is_loopback(peer)


def _peer_owner(connection: Connected, peer: Address, own: Address, runtime: Runtime) -> int | None:
    listener = _listener_owner(peer, own[0], runtime)
    accepted = socket_owner(peer, own, runtime=runtime)
    if accepted is not None:
        return accepted[0]
    if listener is None:
        runtime.sleep(_SETTLED)  # rare: a port that the kernel forwards elsewhere, or a peer that is gone
    if connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != _ESTABLISHED:
        raise ConnectionAbortedError(f"whatever listens on port {peer[1]} closed the connection at once")
    return None if listener is None else listener[0]


def uid_of(client: Address, server: Address) -> int | None:
    """Return the uid of the user who owns a client's socket; None if it cannot be determined.

    ``client`` and ``server``: the addresses of the two ends of the connection.
    """
    owner = socket_owner(client, server)
    return None if owner is None else owner[0]


def socket_owner(client: Address, server: Address, *, runtime: Runtime = REAL) -> tuple[int, int] | None:
    """Return uid and inode of a client's socket; None if they cannot be determined.

    ``client`` and ``server``: the addresses of the two ends of the connection. The kernel is asked by netlink (10 µs),
    or if that fails by reading /proc; a runtime with sockets of its own is asked instead.
    """
    if runtime.socket_owner is not None:
        return runtime.socket_owner(client, server)
    try:
        return _by_netlink(client, server)
    except OSError:
        return _by_proc(client, server)


def _listener_owner(address: Address, client: str, runtime: Runtime = REAL) -> tuple[int, int] | None:
    """Return uid and inode of the socket that listens on ``address`` for the host ``client``.

    None if there is no such socket.
    """
    anyone = (client, 0)  # no connection has port 0, so the kernel finds the listener
    if runtime.socket_owner is not None:
        return runtime.socket_owner(address, anyone)
    try:
        return _by_netlink(address, anyone)
    except OSError:
        return _listener_by_proc(address)


def _by_netlink(client: Address, server: Address) -> tuple[int, int] | None:
    family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    query = (
        _WANTED.pack(family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES)
        + struct.pack("!HH", client[1], server[1])
        + _packed(family, client[0])
        + _packed(family, server[0])
        + struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
        kernel.settimeout(_PATIENCE)
        kernel.send(_HEADER.pack(_HEADER.size + len(query), _BY_FAMILY, _REQUEST, 0, 0) + query)
        answer = kernel.recv(4096)
    kind = _HEADER.unpack_from(answer)[1]
    if kind != _BY_FAMILY or len(answer) < _HEADER.size + _UID + _OWNER.size:
        return None
    uid, inode = _OWNER.unpack_from(answer, _HEADER.size + _UID)
    return (uid, inode) if inode else None


def _packed(family: int, host: str) -> bytes:
    return socket.inet_pton(family, host).ljust(16, b"\0")


def _by_proc(client: Address, server: Address) -> tuple[int, int] | None:
    pair = (_hex(client), _hex(server))
    for words in _rows(6 if ":" in client[0] else 4):
        if (words[1], words[2]) == pair:
            return (int(words[7]), int(words[9])) if words[9] != "0" else None
    return None


def _listener_by_proc(address: Address) -> tuple[int, int] | None:
    """Return uid and inode of the socket that listens on an address, by /proc; None without one.

    A listener on exactly this address wins over one on all addresses (also an IPv6 one).
    """
    mine, port = _hex(address), f":{address[1]:04X}"
    wide = {"0" * 8 + port, "0" * 32 + port}
    listeners = [words for family in (4, 6) for words in _rows(family) if words[3] == _LISTENING]
    for words in sorted(listeners, key=lambda words: words[1] != mine):
        if words[1] == mine or words[1] in wide:
            return int(words[7]), int(words[9])
    return None


def _rows(family: int) -> list[list[str]]:
    try:
        text = Path("/proc/net/tcp6" if family == 6 else "/proc/net/tcp").read_text()
    except OSError:
        return []
    return [row.split() for row in text.splitlines()[1:]]


def _hex(address: Address) -> str:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    raw = socket.inet_pton(family, address[0])
    # The kernel prints each 32-bit word in the machine's own byte order.
    words = struct.unpack(f"={len(raw) // 4}I", raw)
    return "".join(f"{word:08X}" for word in words) + f":{address[1]:04X}"
