"""Linked servers in this process, each link through a proxy that a test may cut."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from culture.config.links import Federation, LinkConfig
from culture.config.model import Listen, Operator
from culture.protocol.names import fold
from culture.server.core.state import Channel
from culture.server.ircd import IRCd
from tests.support.client import Client, registered
from tests.support.mesh import Edge
from tests.support.ports import reserved
from tests.support.proxy import Proxy, proxied
from tests.support.servers import serving
from tests.support.waiting import until

SECRET = "known to nobody else".replace(" ", "-")


class Servers:
    """Servers by name, and the proxies between them."""

    def __init__(self, servers: Mapping[str, IRCd], proxies: Mapping[Edge, Proxy], stack: AsyncExitStack) -> None:
        self.servers = servers
        self._proxies = proxies
        self._stack = stack

    def __getitem__(self, name: str) -> IRCd:
        return self.servers[name]

    async def client(self, nick: str, *channels: str, caps: str = "") -> Client:
        """Somebody on the server of the nick's prefix."""
        port = self.servers[nick.partition("-")[0]].port
        client = await self._stack.enter_async_context(registered(port, nick, caps))
        for channel in channels:
            await client.join(channel)
        return client

    async def operator(self, nick: str) -> Client:
        """The same as an operator of the server."""
        client = await self.client(nick)
        client.send("OPER root :very-secret")
        await client.expect("381")
        return client

    async def cut(self, one: str, other: str) -> None:
        """Lose a link; both sides know of it."""
        proxy = self._proxies.get((one, other)) or self._proxies[other, one]
        proxy.cut()
        await until(lambda: not self.is_linked(one, other) and not self.is_linked(other, one))

    def delay(self, one: str, other: str, seconds: float) -> None:
        """Let everything on the link take so long."""
        (self._proxies.get((one, other)) or self._proxies[other, one]).delay(seconds)

    def heal(self, one: str, other: str) -> None:
        """Let the link come up again."""
        (self._proxies.get((one, other)) or self._proxies[other, one]).heal()

    def is_linked(self, one: str, other: str) -> bool:
        """Does this side have the link?"""
        mesh: Any = self.servers[one].parts.skills.get("federation")
        return other in mesh.links

    async def whole(self) -> None:
        """Wait until each reaches all others, and all know the same."""
        most = len(self.servers) - 1
        try:
            await until(
                lambda: all(len(each.parts.network.servers) == most for each in self.servers.values()) and self.agree()
            )
        except AssertionError:
            raise AssertionError(f"they do not agree: {self._differences()}") from None

    def agree(self) -> bool:
        """Do all know the same?"""
        pictures = [picture(each) for each in self.servers.values()]
        return all(each == pictures[0] for each in pictures)

    def _differences(self) -> dict[str, dict[str, Any]]:
        """Whom each reaches, and what it knows differently from the others."""
        pictures = {name: picture(each) for name, each in self.servers.items()}
        flat = {
            name: {f"{kind} {key}": value for kind in made for key, value in made[kind].items()}
            for name, made in pictures.items()
        }
        keys = {key for each in flat.values() for key in each}
        told = {key for key in keys if len({repr(each.get(key)) for each in flat.values()}) > 1}
        return {
            name: {"reaches": sorted(self.servers[name].parts.network.servers), **{key: each.get(key) for key in told}}
            for name, each in flat.items()
        }

    def channels(self, name: str) -> Iterator[Channel]:
        """A channel as each server has it."""
        for ircd in self.servers.values():
            channel = ircd.parts.network.channel(name)
            assert channel is not None
            yield channel


def picture(ircd: IRCd) -> dict[str, Any]:
    """Who is where and what is set, as far as servers tell each other."""
    network = ircd.parts.network
    users = {
        user.nick: (user.username, user.host, user.realname, user.server, user.away, user.metadata or {})
        for user in network.users.values()
    }
    channels = {
        fold(channel.name): {
            "name": channel.name,
            "members": {user.nick: rank for user, rank in channel.members.items()},
            "topic": channel.topic,
            "flags": sorted(channel.flags - {"P"}),
            "key": channel.key,
            "limit": channel.limit,
            "lists": {mode: entries for mode, entries in channel.lists.items() if entries},
            "metadata": channel.metadata or {},
        }
        for channel in network.channels.values()
        if channel.members
    }
    return {"users": users, "channels": channels}


@asynccontextmanager
async def linked(
    folder: Path,
    names: Sequence[str],
    edges: Sequence[Edge],
    each: Mapping[str, Mapping[str, Any]] | None = None,
    **settings: Any,
) -> AsyncIterator[Servers]:
    """Servers that are linked: the first of each edge dials the second. ``each`` has settings of one server."""
    async with AsyncExitStack() as stack:
        ports = {name: stack.enter_context(reserved()) for name in names}
        proxies = {edge: await stack.enter_async_context(proxied(ports[edge[1]])) for edge in edges}
        servers = {}
        for name in names:
            links = tuple(_links(name, proxies))
            servers[name] = await stack.enter_async_context(
                serving(
                    folder / name,
                    name=name,
                    description=f"the server {name}",
                    listen=(Listen(port=ports[name]),),
                    links=links,
                    federation=Federation(ping=1.0, timeout=20.0),
                    operators=(Operator(name="root", password="very-secret"),),
                    **settings,
                    **(each or {}).get(name, {}),
                )
            )
        made = Servers(servers, proxies, stack)
        await until(lambda: all(made.is_linked(*edge) for edge in edges), "not every link stands")
        await made.whole()
        yield made


def _links(name: str, proxies: Mapping[Edge, Proxy]) -> Iterator[LinkConfig]:
    for (dials, waits), proxy in proxies.items():
        if name == dials:
            yield LinkConfig(name=waits, secret=SECRET, address=f"127.0.0.1:{proxy.port}")
        elif name == waits:
            yield LinkConfig(name=dials, secret=SECRET)
