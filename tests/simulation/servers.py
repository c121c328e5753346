"""A simulated server over its lives: started, stopped, killed, without power, and back."""

import asyncio
import random
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culture.config.links import Federation, LinkConfig
from culture.config.model import Flood, Listen, Rate, ServerConfig, ServerLimits
from culture.config.skills import (
    AuditConfig,
    Embeddings,
    HistoryConfig,
    LedgerConfig,
    LoggerConfig,
    RoomsConfig,
    UrlIndexConfig,
)
from culture.federation.link import Stage
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import Account
from culture.server.auth.authenticator import Credentials, ServerIdentity
from culture.server.auth.password import PasswordVerifier
from culture.server.ircd import IRCd
from tests.simulation.disk import Disk, Drive, is_disk_error

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh
    from tests.simulation.world import Host, World

PORT = 6667
_SECRET = "known-to-nobody-else"
_UNLIMITED = Rate(burst=10_000, rate=0.0)
_PULLED = ServerLimits().pull_queue
_MANY = {"connections_per_address": 1_000, "connections_per_user": 1_000, "new_connections": 10_000}
_NETWORK = "10.0.0.0/8"
_SALT, _ITERATIONS = bytes(16), 4096


class ByName:
    """Logs in whoever gives the name of an account as the password, or has logged in already.

    Without TLS, which is not simulated, the server takes real passwords from its own machine only, but for SCRAM.
    """

    def __init__(self, accounts: AccountStore) -> None:
        self._accounts = accounts

    def authenticate(self, connection: Credentials) -> ServerIdentity:
        """Return who a client is."""
        account = connection.account or self._accounts.get(connection.password or "")
        return ServerIdentity() if account is None else ServerIdentity(account.name, account.kind)


class SimServer:
    """One server, its machine, and the program on it while there is one."""

    def __init__(self, world: "World", name: str, folder: Path, peers: Mapping[str, bool], skew: float) -> None:
        """``peers``: the servers that it is linked to, and whether it dials them."""
        self.world, self.name = world, name
        self.machine = world.machine(name, skew)
        self.drive = Drive()
        self.address = world.network.address_of(name)
        self.host: Host | None = None
        self.ircd: IRCd | None = None
        self.lives = 0
        self.ends: list[float] = []
        """When each past life ended."""
        self.trust: dict[str, tuple[str, tuple[str, ...]]] = {}
        """By peer the trust of the link and, for a restricted one, its channels."""
        self.guests: dict[str, str] = {}
        """Peers that dial it and that nobody waits for, with their secrets."""
        self.settings: dict[str, Any] = {}
        """Further settings of the configuration."""
        self.send_queue = ServerLimits().send_queue
        self.pause = 1.0
        """Seconds from the end of a life to the start of the next one."""
        self.troubles: list[tuple[float, float]] = []
        """When its disk could not be written: from, to."""
        self._folder = folder
        self._peers = peers
        self._is_running = False
        self._stopping: asyncio.Event | None = None
        self._chance = random.Random(f"{world.seed}/{name}")
        self._accounts = AccountStore(self._accounts_file, name)

    def add_account(self, name: str, kind: UserClass, always_on: bool, password: str | None = None) -> None:
        """Add an account before the first start; its user stays while disconnected if it is ``always_on``."""
        verifier = None if password is None else PasswordVerifier.of(password, salt=_SALT, iterations=_ITERATIONS)
        self._accounts.add(Account(name, kind, always_on, "2027-01-01T00:00:00+00:00", verifier))

    @property
    def _accounts_file(self) -> Path:
        return self._folder / str(self.lives) / "accounts.json"

    @property
    def is_up(self) -> bool:
        """Return whether there is a program."""
        return self.host is not None

    @property
    def is_running(self) -> bool:
        """Return whether it accepts clients."""
        return self.host is not None and self._is_running

    @property
    def data(self) -> Path:
        """Return the data folder of the present or the next life."""
        return self._folder / str(self.lives) / "data"

    @property
    def mesh(self) -> "Mesh":
        """Return the federation of the running server."""
        assert self.ircd is not None
        mesh: Any = self.ircd.parts.skills.get("federation")
        return mesh

    def start(self) -> None:
        """Start the program, unless it runs."""
        if self.host is not None:
            return
        disk = Disk(self._folder / str(self.lives), self.drive)
        self.host = self.world.boot(self.machine, disk)
        disk.crash = self._crasher(self.host)
        self.world.note("start", self.name)
        self.host.start(self._run(self.host))

    def _crasher(self, host: "Host") -> Callable[[bool], None]:
        def crash(with_power: bool) -> None:
            if self.host is host:
                self.crash(with_power)

        return crash

    async def _run(self, host: "Host") -> None:
        self._stopping, kind = asyncio.Event(), "stopped"
        try:
            self.ircd = IRCd(self.config(), authenticator=ByName(self._accounts), runtime=host.runtime)
            async with self.ircd.running():
                self._is_running = host.is_serving = True
                await self._stopping.wait()
                self._is_running = host.is_serving = False
        except Exception:
            text, kind = traceback.format_exc(), "failed"
            self.world.remark("log", self.name, kind, text)
            if not (self.drive.troubles and is_disk_error(text)):  # else it is started again, as by a supervisor
                self.world.complain(host, "program", text)
        self.world.after_step.append(lambda: self.host is host and self._end(with_power=False, kind=kind))

    def config(self) -> ServerConfig:
        """Return the configuration of the next life."""
        return ServerConfig(
            name=self.name,
            listen=(Listen(host=self.address, port=PORT),),
            trusted_network=True,
            data_dir=self.data,
            accounts_file=self._accounts_file,
            exempt=(_NETWORK,),
            flood=Flood(clients=_UNLIMITED, agents=_UNLIMITED, loopback=_UNLIMITED),
            limits=ServerLimits(**_MANY, send_queue=self.send_queue, pull_queue=min(_PULLED, self.send_queue // 2)),
            channels=(),
            links=tuple(
                self._link(peer, dials) for peer, dials in {**self._peers, **dict.fromkeys(self.guests, False)}.items()
            ),
            logger=LoggerConfig(enabled=False),
            urlindex=UrlIndexConfig(enabled=False),
            audit=AuditConfig(enabled=False),
            rooms=RoomsConfig(enabled=False),
            **{
                "federation": Federation(ping=1.0, timeout=5.0),
                "history": HistoryConfig(semantic=Embeddings(enabled=False)),
                "ledger": LedgerConfig(),
                **self.settings,
            },
        )

    def _link(self, peer: str, dials: bool) -> LinkConfig:
        trust, channels = self.trust.get(peer, ("full", ()))
        address = f"{self.world.network.address_of(peer)}:{PORT}" if dials else None
        return LinkConfig(
            name=peer,
            secret=self.guests.get(peer, _SECRET),
            address=address,
            tls=False if dials else None,
            trust=trust,  # type: ignore[arg-type]
            channels=channels,
        )

    def trouble(self, number: int, kind: str, seconds: float) -> None:
        """Begin a trouble of the disk, which ends after so many seconds."""
        self.world.note(kind, self.name)
        self.drive.begin(number, kind, self.world.now + seconds)
        self.troubles.append((self.world.now, self.world.now + seconds))
        self.world.call_later(seconds, lambda: self.drive.mend(number))

    def stop(self) -> None:
        """Stop the program as SIGTERM does."""
        if self._stopping is not None and self.is_running:
            self.world.note("stop", self.name)
            stopping = self._stopping
            assert self.host is not None
            self.host.loop.call_soon(stopping.set)

    def crash(self, with_power: bool) -> None:
        """End the program by ``kill -9``, or the machine by a power loss."""
        self._end(with_power, "power" if with_power else "kill")

    def _end(self, with_power: bool, kind: str) -> None:
        host = self.host
        assert host is not None and host.disk is not None
        self.world.note(kind, self.name)
        self.world.happened["stop" if kind == "stopped" else kind] += 1
        self.host, self._is_running, self._stopping = None, False, None
        self.ends.append(self.world.now)
        self.lives += 1
        host.disk.copy(self._folder / str(self.lives), with_power, self._chance)
        self.world.end(host, with_power)
        host.disk.close()
        self.world.call_later(self.pause, self.start)

    def is_linked(self, peers: Sequence[str] | None = None) -> bool:
        """Return whether all its links (or those to ``peers``) are up and in sync."""
        if not self.is_running:
            return False
        mesh: Mesh | None = self.mesh
        links = {} if mesh is None else mesh.links  # none if the skill could not start
        return all(peer in links and links[peer].link.stage is Stage.LIVE for peer in (peers or self._peers))
