"""The network: addresses, cuts, and what can be held back.

Each machine has an address of its own (``10.0.0.N``). A cut has a direction: nothing that one machine sends reaches the
other. TCP repeats what is lost, so a cut holds data back and loses none; what was sent over a connection whose other
direction is cut arrives, but its acknowledgement does not, so the sender's buffer stays full. A connection needs both
directions to begin.
"""

import asyncio
import errno
from typing import TYPE_CHECKING, Any

from tests.simulation.sockets import Flow, SimSocket

if TYPE_CHECKING:
    from tests.simulation.world import Machine, World

PEOPLE = "people"
"""The machine of all clients."""
_LATENCY = 0.002
_LONGEST_RETRY = 8.0
Address = tuple[str, int]


class Network:
    """The ports where machines listen, the cuts between them, and the flows that a cut holds back."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.latency = _LATENCY
        """The typical seconds that a packet needs."""
        self.buffer = 1 << 16
        """How many bytes the systems of both ends hold for a connection that nobody reads."""
        self.chance = world.generator("network")
        self.listening: dict[Address, SimSocket] = {}
        self.connections: list[SimSocket] = []
        """The ends that dialled, of all open connections, in the order in which they began."""
        self._cuts: dict[tuple[str, str], int] = {}
        self._held: list[Flow] = []
        self._addresses: dict[str, str] = {}
        self._ports = 40_000

    def address_of(self, machine: str) -> str:
        """Return the IP address of a machine."""
        for address, name in self._addresses.items():
            if name == machine:
                return address
        address = f"10.0.0.{len(self._addresses) + 1}"
        self._addresses[address] = machine
        return address

    def machine_at(self, address: str) -> "Machine | None":
        """Return the machine that has an IP address."""
        name = self._addresses.get(address)
        return None if name is None else self.world.machine(name)

    def delay(self) -> float:
        """Return how long the next packet takes."""
        return self.latency * (0.2 + self.chance.expovariate(1.0))

    def new_port(self) -> int:
        """Return the port of a new outgoing connection."""
        self._ports += 1
        return self._ports

    def cut(self, source: str, target: str) -> None:
        """Let nothing through from one machine to another; cuts of the same direction add up."""
        self._cuts[source, target] = self._cuts.get((source, target), 0) + 1

    def mend(self, source: str, target: str) -> None:
        """Take one cut of this direction away; what it held back moves on."""
        count = self._cuts.pop((source, target), 0) - 1
        if count > 0:
            self._cuts[source, target] = count
        else:
            self.resume()

    def mend_all(self) -> None:
        """Take all cuts away."""
        self._cuts.clear()
        self.resume()

    def is_cut(self, source: str, target: str) -> bool:
        """Return whether nothing gets from one machine to another."""
        return (source, target) in self._cuts

    def passes(self, source: "Machine", target: "Machine") -> bool:
        """Return whether a packet would get from one machine to another, which must have power."""
        return target.is_on and (source.name, target.name) not in self._cuts

    def hold(self, flow: Flow) -> None:
        """Keep a flow that cannot move until something changes."""
        if not flow.is_held:
            flow.is_held = True
            self._held.append(flow)
            self.world.happened[self._why_held(flow)] += 1

    def _why_held(self, flow: Flow) -> str:
        source, target = flow.source.host.name, flow.target.host.name
        cuts = ((source, target) in self._cuts) + ((target, source) in self._cuts)
        if cuts and PEOPLE in (source, target):
            return "clients"
        return ("off", "one-way", "cut")[cuts]

    def resume(self) -> None:
        """Move all flows on that were held back; what still cannot move is held again."""
        held, self._held = self._held, []
        for flow in held:
            flow.is_held = False
            flow.resume()

    async def connect(self, sock: SimSocket, address: Any) -> None:
        """Connect a socket to an address, as ``loop.sock_connect``."""
        address = (address[0], address[1])
        target = self.machine_at(address[0])
        if target is None:
            raise OSError(errno.EHOSTUNREACH, "No route to host")
        here, pause = sock.host.machine, 1.0
        await asyncio.sleep(self.delay())
        while not (self.passes(here, target) and self.passes(target, here)):
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_RETRY)
        listener = self.listening.get(address)
        if listener is None or not listener.is_open:
            await asyncio.sleep(self.delay())
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        other = SimSocket(listener.host)
        sock.local, sock.peer = (self.address_of(here.name), self.new_port()), address
        other.local, other.peer = address, sock.local
        sock.join(other)
        self.connections = [each for each in self.connections if each.is_open and each.error is None]
        self.connections.append(sock)
        listener.backlog.append(other)
        listener.changed()
        await asyncio.sleep(self.delay())
        if sock.error is not None:
            raise sock.error
