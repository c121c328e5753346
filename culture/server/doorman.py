"""Who may connect: so many connections per address, so many new ones in a while."""

import ipaddress
from collections import Counter
from collections.abc import Hashable
from functools import lru_cache

from culture.config.model import Limits
from culture.server.tally import Tally

_IPV6_NETWORK = 64  # one customer has at least that much


class Doorman:
    """Counts connections by address; those of exempt networks, loopback by default, are not counted."""

    def __init__(self) -> None:
        self._inside: dict[Hashable, str] = {}
        self._open: Counter[str] = Counter()
        self._recent = Tally()

    def admit(self, guest: Hashable, host: str, limits: Limits, exempt: tuple[str, ...], now: float) -> str | None:
        """Count a new connection; why it may not come in, or None."""
        group = group_of(host, exempt)
        if group is None:
            return None
        if self._open[group] >= limits.connections_per_address:
            return "Too many connections from your address"
        if self._recent.count(group, limits.new_connections_period, now) >= limits.new_connections:
            return "Too many new connections from your address, try again later"
        self._recent.note(group, now)
        self._open[group] += 1
        self._inside[guest] = group
        return None

    def release(self, guest: Hashable) -> None:
        """Whoever was admitted is gone."""
        group = self._inside.pop(guest, None)
        if group is not None:
            self._open[group] -= 1
            if not self._open[group]:
                del self._open[group]

    def forget(self, limits: Limits, now: float) -> None:
        """Let go of addresses that have not been here for a while."""
        self._recent.forget(limits.new_connections_period, now)


@lru_cache(maxsize=4096)
def group_of(host: str, exempt: tuple[str, ...] = ()) -> str | None:
    """What counts as one address; None for what is not counted."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if any(address in ipaddress.ip_network(network) for network in exempt):
        return None
    if address.version == 6:
        return str(ipaddress.ip_network((address, _IPV6_NETWORK), strict=False))
    return host
