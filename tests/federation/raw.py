"""A peer that says what a test wants, line by line."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ssl import SSLContext

from culture.federation.mesh import Mesh
from culture.protocol.message import Message
from culture.server.ircd import IRCd
from tests.support.client import Client, connected

SECRET = "correct-horse"
LOG = "00c0ffee00c0ffee"
EPOCH = "5f0c2a91"


def mesh_of(ircd: IRCd) -> Mesh:
    """The mesh as a server sees it."""
    mesh = ircd.parts.skills.get("federation")
    assert isinstance(mesh, Mesh)
    return mesh


class RawPeer(Client):
    """The other end of a link, called thor unless said otherwise."""

    name = "thor"
    seq = 0

    def greet(self, name: str = "thor", secret: str = SECRET) -> None:
        """PASS and SERVER."""
        self.name = name
        self.send(f"PASS {secret}")
        self.send(f"SERVER {name} 1 :a server of a test")

    def agree(self, log: str = LOG, epoch: str = EPOCH, version: int = 1, oldest: int = 1, caps: str = "") -> None:
        """LINK: what it speaks, and which server it is."""
        self.send(f"LINK {version} {log} {epoch} {oldest} {caps}".rstrip())
        self.send("RESUME * 0")

    async def link(
        self, name: str = "thor", secret: str = SECRET, log: str = LOG, epoch: str = EPOCH, caps: str = ""
    ) -> None:
        """Be linked, without users."""
        self.greet(name, secret)
        await self.expect("SERVER")
        self.agree(log, epoch, caps=caps)
        await self.expect("EOBACKFILL")
        self.tell(f"ROSTER {name} {epoch} 0")
        self.tell(f"ENDROSTER {name}")
        self.send("EOBACKFILL 0")

    def tell(self, line: str, source: str | None = None) -> None:
        """A line from the server itself, or from somebody."""
        self.send(f":{source or self.name} {line}")

    def event(self, line: str, source: str, tags: str = "", origin: str = "", epoch: str = EPOCH) -> None:
        """An event of its own users, or of another server's."""
        self.seq += 1
        stamp = f"id={origin or self.name.partition('.')[0]}.{epoch}.{self.seq};at=1773914400000000"
        self.send(f"@{stamp}{';' if tags else ''}{tags} :{source} {line}")

    def arrive(self, nick: str, tags: str = "", modes: str = "+") -> None:
        """A user of its own."""
        self.event(f"NICK {nick} 1 user host {self.name} {modes} :Somebody", self.name, tags)

    def join(self, nick: str, channel: str, status: str = "+") -> None:
        """A user of its own comes into a channel."""
        self.event(f"JOIN {channel} {status} :Somebody", f"{nick}!user@host")

    async def answered(self) -> list[Message]:
        """Everything until now: the server has taken every line."""
        return await self.sync()


@asynccontextmanager
async def raw_peer(ircd: IRCd, port: int | None = None, tls: SSLContext | None = None) -> AsyncIterator[RawPeer]:
    """A connection that has said nothing."""
    async with connected(port or ircd.port, tls=tls) as client:
        peer = RawPeer(client.reader, client.writer)
        yield peer
