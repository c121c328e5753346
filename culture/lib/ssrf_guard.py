"""The SSRF guard of outgoing requests: which addresses may be called.

Somebody who may choose a URL must not reach through us what they cannot reach themselves: services of this machine, the
private network around it, the metadata service of a cloud. So an address must be public, or in a network that the
configuration lists. IPv6 has many ways to write an IPv4 address (mapped, 6to4, Teredo, NAT64); all of them are
unwrapped first. The check is on numbers, after the name is resolved, since a name can lead anywhere.
"""

import base64
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import quote, unquote, urljoin, urlsplit

Ip = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
PORTS = {"https": 443, "http": 80}
# What Python takes for public, in part or whole, and is not: protocols and relays, and old private networks.
_NOT_PUBLIC = tuple(
    map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "fec0::/10", "64:ff9b:1::/48", "100::/64"))
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_PATH = "/%:@!$&'()*+,;=~-._"


class TargetRefused(Exception):
    """A request may not go to its target.

    The exception's text says why, and names at most the host.
    """


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """A URL, of which only the host may be displayed: whoever knows the whole URL can use it."""

    url: str = field(repr=False)
    scheme: str
    host: str
    port: int
    path: str = field(repr=False)
    authorization: str | None = field(repr=False)

    def __str__(self) -> str:
        return self.host

    @classmethod
    def parse(cls, url: str) -> "HttpTarget":
        """Parse a URL; raises TargetRefused if it is no http(s) URL with a host."""
        try:
            parts = urlsplit(url)
            port, host = parts.port, (parts.hostname or "").encode("idna").decode()
        except ValueError:
            raise TargetRefused("the address cannot be read") from None
        if parts.scheme not in PORTS or not host:
            raise TargetRefused("the address must begin with https:// or http:// and name a host")
        path = quote(parts.path or "/", safe=_PATH) + (
            f"?{quote(parts.query, safe=_PATH + '?')}" if parts.query else ""
        )
        login = _login(parts.username, parts.password)
        return cls(url, parts.scheme, host, PORTS[parts.scheme] if port is None else port, path, login)

    def redirected(self, location: str) -> "HttpTarget":
        """Return the target to which a redirect leads; ``location`` is the header of the answer.

        Raises TargetRefused if that is no valid target, or leads from https to http.
        """
        try:
            target = HttpTarget.parse(urljoin(self.url, location))
        except (ValueError, TargetRefused):
            raise TargetRefused("redirects to an address that cannot be read") from None
        if self.scheme == "https" and target.scheme != "https":
            raise TargetRefused(f"redirects from https to http, at {target}")
        return target


def permitted(address: str, listed: Sequence[Network] = ()) -> bool:
    """Return whether requests may go to a numeric address: it is public or in a listed network."""
    try:
        ip = _plain(ipaddress.ip_address(address.partition("%")[0]))
    except ValueError:
        return False
    if ip.is_unspecified or ip.is_multicast or ip == IPv4Address("255.255.255.255"):
        return False
    return is_public(ip) or any(ip in network for network in listed)


def is_public(ip: Ip) -> bool:
    """Return whether an address can be reached from anywhere: in no private or special network."""
    ip = _plain(ip)
    if isinstance(ip, IPv6Address) and (inner := _carried(ip)) is not None:
        return is_public(inner)
    return ip.is_global and not ip.is_multicast and not ip.is_reserved and not any(ip in net for net in _NOT_PUBLIC)


def _plain(ip: Ip) -> Ip:
    """Return an IPv4-mapped IPv6 address (``::ffff:10.0.0.1``) as IPv4; any other unchanged."""
    return ip.ipv4_mapped or ip if isinstance(ip, IPv6Address) else ip


def _carried(ip: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address of 6to4, Teredo or NAT64 contains, or None."""
    if ip.sixtofour is not None:
        return ip.sixtofour
    if ip.teredo is not None:
        return ip.teredo[1]
    return IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 or ip in _COMPATIBLE else None


def _login(user: str | None, password: str | None) -> str | None:
    if user is None:
        return None
    pair = f"{unquote(user)}:{unquote(password or '')}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"
