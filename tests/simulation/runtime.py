"""The runtime of a simulated program: every member of ``culture.runtime.Runtime``, from the world."""

import fcntl
import os
import random
import socket
import sqlite3
from concurrent.futures import Executor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from culture.runtime import PollSet, Runtime, Thread, ThreadEvent, ThreadLock
from tests.simulation import databases
from tests.simulation.disk import path_of
from tests.simulation.poll import SimPollSet
from tests.simulation.sockets import SimSocket
from tests.simulation.threads import SimEvent, SimLock, SimPool, SimThread, calling_thread, thread_or_none

if TYPE_CHECKING:
    from tests.simulation.world import Host

EPOCH = 1_800_000_000.0
"""The wall-clock time at which every world begins (seconds since 1970)."""
START = 1_000.0
"""The monotonic time at which every world begins."""
_LOOP_THREAD = 1
_RETRY = 0.002
_SYNC = 0.0008


class SimRuntime(Runtime):
    """Clock, chance, threads, databases and sockets of one life of a host."""

    def __init__(self, host: "Host") -> None:
        world = host.world
        self._host, self._world = host, world
        self.chance: random.Random = world.programs
        # Instances, not methods: the product may bind them as defaults and callbacks.
        self.now = lambda: EPOCH + world.now - START + host.machine.skew
        self.monotonic = lambda: world.now
        self.process_time = self.thread_time = lambda: world.now
        self.sleep = lambda seconds: calling_thread(host, "sleep").wait(seconds)
        self.token_bytes = lambda size=32: world.tokens.randbytes(size)
        self.token_hex = lambda size=32: world.tokens.randbytes(size).hex()
        self.token_urlsafe = lambda size=32: world.tokens.randbytes(size).hex()
        self.write = self._write
        self.fsync = self._fsync
        self.flock = self._flock
        self.socket_owner = self._socket_owner

    def utc(self) -> datetime:
        return datetime.fromtimestamp(self.now(), UTC)

    def local(self) -> datetime:
        """Return the time in UTC: the machine that runs the simulation must not decide it."""
        return self.utc()

    def thread(self, target: Any, name: str, *args: object) -> Thread:
        return SimThread(self._host, lambda: target(*args), name)

    def thread_id(self) -> int:
        thread = thread_or_none()
        return _LOOP_THREAD if thread is None else thread.number

    def event(self) -> ThreadEvent:
        return SimEvent(self._host)

    def lock(self) -> ThreadLock:
        return SimLock(self._host)

    def pool(self, workers: int, name: str) -> Executor:
        return SimPool(self._host, workers, name)

    def connect(self, database: Any, **options: Any) -> sqlite3.Connection:
        return databases.connect(self._host, database, **options)

    def _fsync(self, file: int) -> None:
        """Sync a real file of tmpfs, which takes virtual time; a crash may come before and after it."""
        disk = self._host.disk
        if disk is not None:
            path = str(path_of(file))
            disk.pass_point("before", path, self._world.delay(_SYNC))
            disk.check_trouble()
            disk.note_synced(file)
            disk.pass_point("after", path, self._world.delay(_SYNC / 4))

    def _write(self, file: int, data: bytes | memoryview) -> int:
        if self._host.disk is not None:
            self._host.disk.check_room()
        return os.write(file, data)

    def _flock(self, file: int, operation: int) -> None:
        """Lock a real file, which may be held by another life of this process only for a moment."""
        while True:
            try:
                fcntl.flock(file, operation | fcntl.LOCK_NB)
            except BlockingIOError:
                if operation & fcntl.LOCK_NB:
                    raise
                calling_thread(self._host, "flock").wait(_RETRY)
            else:
                return

    def new_socket(
        self, family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM, protocol: int = 0
    ) -> socket.socket:
        return SimSocket(self._host)  # type: ignore[return-value]

    def _socket_owner(self, address: tuple[str, int], peer: tuple[str, int]) -> tuple[int, int] | None:
        """Return our own user: everybody on a simulated machine is the same one."""
        for host in self._world.hosts:
            for sock in host.sockets.values():
                if sock.local == address and peer in (sock.peer, (sock.peer[0], 0)):
                    return os.getuid(), sock.fd
        return None

    def is_hung_up(self, sock: Any) -> bool:
        hung_up: bool = sock.is_hung_up
        return hung_up

    def poll_set(self) -> PollSet | None:
        return SimPollSet(self._host)
