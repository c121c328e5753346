"""The world: one virtual clock, one seed, and the hosts whose programs run on it.

**Problem.** A program on a real machine runs in an order that nobody can repeat: the kernel, the disk and the network
decide it.

**Rule.** Nothing here runs by itself. The world has a list of events (what arrives on the network), and each host an
event loop with timers. ``World.step`` takes the earliest of all of them, sets the clock to its time, and runs it to its
end. If several hosts are due at the same time, the seed decides. Threads are greenlets that a loop resumes
(``threads.py``), so at any moment exactly one piece of code runs.

**Why it is repeatable.** Every decision comes from a generator that was seeded: one for the network, one for threads
and the disk, one for the programs, so that a fault that is left out (``shrinking.py``) does not change what the
programs wish to do. What was decided goes into ``digest``: each piece of data on each connection, each commit and each
crash, with its time. Two runs are the same if and only if their digests are.

A step takes a microsecond of virtual time. Otherwise a program that waits for "now plus a rounding error" would be
called for ever at a clock that stands still.
"""

import asyncio
import gc
import hashlib
import heapq
import random
from asyncio import events
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from greenlet import getcurrent, greenlet

from tests.simulation.disk import Disk
from tests.simulation.loop import SimLoop
from tests.simulation.network import Network
from tests.simulation.poll import SimPollSet
from tests.simulation.runtime import START, SimRuntime
from tests.simulation.sockets import SimSocket
from tests.simulation.threads import SimPool, SimThread, is_allowed, pause, thread_or_none

_STEP = 1e-6
_MOST_STEPS = 5_000_000
_DEFAULT_WORKERS = 16


class Stuck(Exception):
    """A program runs again and again without waiting for anything."""


class Complaint(NamedTuple):
    """Something that must never happen: an ERROR in a log, an exception in a loop or thread, a blocking call."""

    at: float
    host: str
    kind: str
    text: str


class Machine:
    """A computer: its name, its clock, and whether it has power. Its programs are hosts, one after the other."""

    def __init__(self, name: str, skew: float) -> None:
        self.name = name
        self.skew = skew
        """Seconds that its wall clock is ahead of the world's."""
        self.is_on = True


class Host:
    """One life of one program on a machine: a loop, threads, sockets and a disk."""

    def __init__(self, world: "World", machine: Machine, disk: Disk | None) -> None:
        self.world, self.machine, self.disk = world, machine, disk
        self.is_alive = True
        self.is_serving = False
        """Whether others wait for its event loop, which nothing may stop then."""
        self.sockets: dict[int, SimSocket] = {}
        self.poll_sets: dict[int, SimPollSet] = {}
        self.threads: list[SimThread] = []
        self.loop = SimLoop(self)
        self.pool = SimPool(self, _DEFAULT_WORKERS, "default")
        self._green: Any = greenlet(self._run_loop)
        self.blocked_until: float | None = None
        """When a call on the thread of the event loop returns, if there is one."""
        self.runtime = SimRuntime(self)

    @property
    def name(self) -> str:
        """Return the name of the machine."""
        return self.machine.name

    def step(self) -> None:
        """Run the event loop once, until it waits for events or for the disk."""
        self._green.parent = getcurrent()
        self._green.switch()

    def _run_loop(self) -> None:
        while True:
            self.loop._run_once()
            pause()

    def wait(self, seconds: float, what: str) -> None:
        """Let time pass for the code that runs now, which waits for the disk.

        A thread waits alone; on the thread of the event loop the whole program stands still meanwhile, and nobody may
        wait for it then, but for what ``ALLOWED`` names.
        """
        thread = thread_or_none()
        if thread is not None:
            thread.wait(seconds)
        elif getcurrent() is self._green:  # else a test, or the world before a program starts
            if self.is_serving and not is_allowed():
                self.world.complain(self, "blocking call", f"{what} on the thread of the event loop")
            self.blocked_until = self.world.now + seconds
            pause()
            self.blocked_until = None

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run a coroutine on this host."""
        return self.loop.create_task(coroutine)


class World:
    """All machines, the network between them, and the time."""

    def __init__(self, seed: int | str, is_verbose: bool = False) -> None:
        self.seed = seed
        self.is_verbose = is_verbose
        self.now = START
        self.steps = 0
        self.most_steps = _MOST_STEPS
        """Steps after which it is ``Stuck``."""
        self.chance = self.generator("order")
        self.programs = self.generator("programs")
        self.tokens = self.generator("tokens")
        self.hosts: list[Host] = []
        self.machines: dict[str, Machine] = {}
        self.host: Host | None = None
        """The host whose code runs now."""
        self.complaints: list[Complaint] = []
        self.is_collecting = False
        """Whether garbage is collected: of programs that nobody can name any more."""
        self.happened: Counter[str] = Counter()
        """By kind of fault how often it had an effect."""
        self.trace: list[tuple[Any, ...]] = []
        self.after_step: list[Callable[[], None]] = []
        """What is done as soon as the code that runs now has returned, such as a crash of its own host."""
        self._dead: list[tuple[Host, set[asyncio.Task[Any]]]] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._digest = hashlib.blake2b(digest_size=8)
        self._last_number = 1000
        self.network = Network(self)

    def generator(self, purpose: str) -> random.Random:
        """Return the generator of random numbers for one purpose, which other purposes do not disturb."""
        return random.Random(f"{self.seed}/{purpose}")

    def number(self) -> int:
        """Return a number that was not used before."""
        self._last_number += 1
        return self._last_number

    def delay(self, typical: float) -> float:
        """Return a random duration: rarely much longer than the typical one."""
        return typical * (0.2 + self.chance.expovariate(1.0))

    def machine(self, name: str, skew: float = 0.0) -> Machine:
        """Return the machine of this name; it is made at the first call."""
        if name not in self.machines:
            self.machines[name] = Machine(name, skew)
        return self.machines[name]

    def boot(self, machine: Machine, disk: Disk | None = None) -> Host:
        """Begin the life of a program on a machine."""
        if not machine.is_on:
            machine.is_on = True
            self.network.resume()
        host = Host(self, machine, disk)
        if disk is not None:
            disk.attach(host)
        self.hosts.append(host)
        return host

    def end(self, host: Host, with_power: bool) -> None:
        """End a program at once: nothing of it runs any more, not even its ``finally``.

        With ``with_power`` the whole machine loses power, and its peers hear nothing.
        """
        host.is_alive = False
        host.machine.is_on = not with_power
        self.hosts.remove(host)
        # Kept, so that nothing of it is collected, and runs its ``finally``, before the end.
        self._dead.append((host, asyncio.all_tasks(host.loop)))
        for sock in list(host.sockets.values()):
            sock.vanish() if with_power else sock.close()

    def call_later(self, delay: float, call: Callable[[], None]) -> None:
        """Call a function of the network's after so many seconds."""
        heapq.heappush(self._events, (self.now + delay, self.number(), call))

    def note(self, *what: Any) -> None:
        """Add something that happened to the digest, and to the trace if there is one."""
        self._digest.update(repr((round(self.now, 9), *what)).encode())
        if self.is_verbose:
            self.trace.append((round(self.now - START, 6), *what))

    def remark(self, *what: Any) -> None:
        """Add a line to the trace, which is no part of the digest."""
        if self.is_verbose:
            self.trace.append((round(self.now - START, 6), *what))

    @property
    def digest(self) -> str:
        """Return the digest of everything that happened so far."""
        return self._digest.hexdigest()

    def complain(self, host: Host | None, kind: str, text: str) -> None:
        """Note something that must never happen; what a dead program did is not its fault."""
        if (host is None and not self.is_collecting) or (host is not None and host.is_alive):
            name = "" if host is None else host.name
            self.complaints.append(Complaint(round(self.now - START, 3), name, kind, text))
            self.remark("complaint", name, kind, text)

    def collect(self) -> None:
        """Collect garbage: a task that nobody awaits reports its exception when it is deleted, else never."""
        self.is_collecting = True  # what the dead still do in their ``finally`` is nobody's fault
        gc.collect()
        self.is_collecting = False

    def step(self, until: float) -> bool:
        """Run the next event, wherever it is; return False if none is due before ``until``."""
        now, due = self.now, self._events[0][0] if self._events else float("inf")
        hosts: list[Host] = []
        for host in self.hosts:
            at = host.blocked_until or host.loop.next_due or now
            if at < due:
                due, hosts = at, [host]
            elif at == due and hosts:
                hosts.append(host)
        if due > until:
            self.now = max(self.now, until)
            return False
        self.steps += 1
        if self.steps > self.most_steps:
            raise Stuck(f"{self.most_steps} steps: {[host.name for host in hosts]} never wait")
        self.now = max(self.now, due) + _STEP
        if hosts:
            self.run_host(hosts[0] if len(hosts) == 1 else self.chance.choice(hosts))
        else:
            heapq.heappop(self._events)[2]()
        return True

    def run_host(self, host: Host) -> None:
        """Run what is due on one host's event loop."""
        self.host = host
        events._set_running_loop(host.loop)
        try:
            host.step()
            host.loop.note_due()
        finally:
            events._set_running_loop(None)
            self.host = None
        while self.after_step:
            self.after_step.pop(0)()

    def run(self, seconds: float) -> None:
        """Let so much virtual time pass."""
        until = self.now + seconds
        while self.step(until):
            pass

    def run_until(self, is_done: Callable[[], bool], patience: float, look: float = 0.05) -> bool:
        """Let time pass until a condition holds, at most ``patience`` seconds; return whether it does."""
        until = self.now + patience
        while self.now < until:
            if is_done():
                return True
            self.run(look)
        return is_done()

    def close(self) -> None:
        """Give the event loops back; for a process that goes on to live."""
        for host in [*self.hosts, *(host for host, _ in self._dead)]:
            host.is_alive = False
            host.loop.close()
            if host.disk is not None:
                host.disk.close()
