"""Limits on connections: by address, by user of this machine, by the process's descriptors.

Loopback is not counted by address, since every program on the machine connects from there. It is counted by user: one
user must not be able to keep the others out. The rules, in this order:

1. A user who is not one of ours (the server's own user, root, ``local_users``) has at most
   ``limits.connections_per_user`` connections. When all are in use, the oldest unregistered one ends.
2. Of our own users' connections at most ``limits.unregistered_connections`` may be unregistered; the oldest ends.
3. A part of the descriptors is a reserve. A connection that would use it ends the oldest unregistered one: of other
   users first, then of other machines, then of ours. If there is none, only our users are let in.
"""

import ipaddress
import os
import resource
from collections import Counter
from collections.abc import Collection, Hashable, Iterator
from functools import lru_cache

from culture.config import peer_uid
from culture.config.model import ServerLimits
from culture.lib.ratelimit import SlidingWindow, Slots
from culture.protocol.message import Message
from culture.server.core.encode import wire
from culture.server.core.session import Session
from culture.server.net.connection import ClientConnection

_IPV6_NETWORK = 64  # bits: one customer has at least such a network
_USUAL_DESCRIPTORS = 32
_OWN, _REMOTE = "own", "remote"
_LEAST_RESERVE, _LARGEST_RESERVE, _PART_RESERVED = 4, 64, 8
_TOO_MANY_OF_USER = "Too many connections of your user of this machine"
_FULL = "No room for further connections"


class AddressLimits:
    """Limits the connections of each address, except in exempt networks (loopback by default)."""

    def __init__(self) -> None:
        self._admitted: dict[Hashable, str] = {}
        self._open = Slots()
        self._recent = SlidingWindow()

    def admit(
        self, guest: Hashable, host: str, limits: ServerLimits, exempt: tuple[str, ...], now: float
    ) -> str | None:
        """Count a new connection; return why it is refused, or None if it is accepted.

        ``guest``: what to pass to ``release`` at its end. ``host``: its address. ``exempt``: networks without limits.
        ``now``: monotonic time in seconds.
        """
        group = group_of(host, exempt)
        if group is None:
            return None
        if not self._open.take(group, limits.connections_per_address):
            return "Too many connections from your address"
        if self._recent.count(group, limits.new_connections_period, now) >= limits.new_connections:
            self._open.release(group)
            return "Too many new connections from your address, try again later"
        self._recent.add(group, now)
        self._admitted[guest] = group
        return None

    def release(self, guest: Hashable) -> None:
        """Count a connection as ended; ``guest``: the object that was passed to ``admit``."""
        group = self._admitted.pop(guest, None)
        if group is not None:
            self._open.release(group)

    def forget(self, limits: ServerLimits, now: float) -> None:
        """Drop the records of addresses that had no new connection for the period of the limit.

        ``now``: monotonic time in seconds.
        """
        self._recent.prune(limits.new_connections_period, now)


@lru_cache(maxsize=4096)
def group_of(host: str, exempt: tuple[str, ...] = ()) -> str | None:
    """Return the key by which the connections of an address (``host``) are counted.

    None if it is in one of the exempt networks. All addresses of an IPv6 network have the same key.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if any(address in ipaddress.ip_network(network) for network in exempt):
        return None
    if address.version == 6:
        return str(ipaddress.ip_network((address, _IPV6_NETWORK), strict=False))
    return host


class ConnectionGroups:
    """Limits the connections of each local user, and all by the number of file descriptors.

    To make room it ends connections that have not registered yet.
    """

    def __init__(self) -> None:
        self.closing: dict[ClientConnection, None] = {}
        """Connections of ended sessions whose clients may still read the end; the oldest first."""
        self.other_descriptors = 0
        """Number of descriptors at the start that are not client connections."""
        self._sizes: Counter[str] = Counter()
        self._group_of: dict[Session, str] = {}
        self._unregistered: dict[str, dict[Session, None]] = {}

    def admit(
        self, session: Session, limits: ServerLimits, exempt: tuple[str, ...], uids: Collection[int]
    ) -> str | None:
        """Count a session's new connection; return why it is refused, or None if it is accepted.

        Unregistered connections may be ended for it. ``exempt``: networks outside of which each client counts as
        remote. ``uids``: users of this machine without a limit.
        """
        group = _user_group(session, exempt, uids)
        if group not in (_OWN, _REMOTE) and self._sizes[group] >= limits.connections_per_user:
            oldest = self._oldest(group)
            if oldest is None:
                return _TOO_MANY_OF_USER
            _end(oldest, _TOO_MANY_OF_USER)
        if not self._has_room(group):
            return _FULL
        self._add(session, group)
        if group == _OWN and len(self._unregistered[group]) > limits.unregistered_connections:
            self._forget_registered(group)
            if len(self._unregistered[group]) > limits.unregistered_connections:
                _end(next(iter(self._unregistered[group])), "Too many connections that have not registered")
        return None

    def make_room(self) -> bool:
        """Free a file descriptor: end the connection that has been closing or unregistered longest.

        Returns False if there is none to end.
        """
        while self.closing:
            connection = next(iter(self.closing))
            del self.closing[connection]
            if connection.is_open:
                connection.abort()
                return True
        for group in self._by_priority():
            oldest = self._oldest(group)
            if oldest is not None:
                _end(oldest, _FULL)
                return True
        return False

    def forget(self, session: Session) -> None:
        """Count the connection of an ended session no more."""
        group = self._group_of.pop(session, None)
        if group is None:
            return
        self._unregistered[group].pop(session, None)
        self._sizes[group] -= 1
        if not self._sizes[group]:
            del self._sizes[group], self._unregistered[group]

    def _has_room(self, group: str) -> bool:
        """Return whether a further connection of a group may have a file descriptor.

        If none is free, one is freed by ``make_room``. A group is all connections of one local user, or all from
        elsewhere.
        """
        most = descriptors()
        reserve = max(_LEAST_RESERVE, min(_LARGEST_RESERVE, most // _PART_RESERVED))
        if self._free(most) > reserve:
            return True
        for connection in [each for each in self.closing if not each.is_open]:
            del self.closing[connection]
        free = self._free(most)
        return free > reserve or self.make_room() or (group == _OWN and free > reserve // 2)

    def _free(self, most: int) -> int:
        return most - self.other_descriptors - len(self._group_of) - len(self.closing)

    def _add(self, session: Session, group: str) -> None:
        self._group_of[session] = group
        self._sizes[group] += 1
        self._unregistered.setdefault(group, {})[session] = None

    def _by_priority(self) -> Iterator[str]:
        """Yield the groups of connections in the order in which they have to give up connections.

        Other local users come first, those with most connections before others; then remote clients; then our own user.
        """
        yield from [group for group, _ in self._sizes.most_common() if group not in (_OWN, _REMOTE)]
        yield from (group for group in (_REMOTE, _OWN) if group in self._sizes)

    def _oldest(self, group: str) -> Session | None:
        waiting = self._unregistered.get(group, {})
        while waiting:
            session = next(iter(waiting))
            if session.user is None:
                return session
            del waiting[session]
        return None

    def _forget_registered(self, group: str) -> None:
        waiting = self._unregistered[group]
        self._unregistered[group] = {session: None for session in waiting if session.user is None}


def _user_group(session: Session, exempt: tuple[str, ...], uids: Collection[int]) -> str:
    if not session.is_local or group_of(session.host, exempt) is not None:
        return _REMOTE
    if not peer_uid.IS_KNOWN:
        return _OWN
    uid = session.connection.peer_uid()
    return _OWN if uid in uids else f"user {uid}"


def _end(session: Session, why: str) -> None:
    """End a session at once: its descriptor is freed without waiting for the client to close.

    ``why``: the reason that the client is sent.
    """
    session.push(wire(Message("ERROR", (f"Closing link: {session.host} ({why})",))))
    session.connection.flush()
    session.connection.abort()
    session.lost(why)


def descriptors() -> int:
    """Return how many file descriptors this process may open."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limit if limit != resource.RLIM_INFINITY else 1 << 30


def used_descriptors() -> int:
    """Return how many file descriptors this process has open, or a guess where that is unknown."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return _USUAL_DESCRIPTORS
