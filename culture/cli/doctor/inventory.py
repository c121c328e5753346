"""The inventory that checks look at; each part is read once, when first needed."""

import hashlib
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from culture.cli.agents.select_agents import load
from culture.cli.config import check_skills
from culture.cli.local_servers import reached_by
from culture.cli.options import Choices
from culture.cli.server import pid_file
from culture.cli.team.select_team import TEAM
from culture.clients.shared import pidfile as daemons
from culture.clients.shared.backends import NoBackend, backend, found
from culture.clients.shared.programs import Found
from culture.config import paths
from culture.config.agents import AgentConfig, AgentsConfig, ServerAddress
from culture.config.errors import ConfigError, Problem
from culture.config.links import LinkConfig
from culture.config.listen_policy import is_loopback
from culture.config.load import Loaded, load_team
from culture.config.model import Listen, ServerConfig
from culture.config.peer_uid import PortHeld, check_peer, user_name
from culture.config.team import ROLES, TeamConfig
from culture.config.values import Misfit
from culture.federation import book
from culture.federation.book import UnreadableBook
from culture.protocol.message import Message, ProtocolError
from culture.protocol.numerics import Numeric
from culture.server.auth import account_file
from culture.server.auth.account_file import AccountFileContents

PROBE_PATIENCE = 2.0


_LONGEST_ANSWER = 1 << 16


_ASKED = bytes(Message("TIME")) + bytes(Message("QUIT"))


_SPEAKS_TIME = (Numeric.RPL_TIME.code, Numeric.ERR_NOTREGISTERED.code, "ERROR")


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Result of a test connection: whether an IRC server answers, its certificate and its clock."""

    failure: str = ""
    """Why there is no connection, or no TLS."""
    reached: bool = False
    """Whether the connection was made, with TLS where wanted."""
    speaks: bool = False
    """Whether it speaks IRC."""
    fingerprint: str | None = None
    """SHA-256 of the certificate that it showed."""
    held: PortHeld | None = None
    """Error if another user of this machine holds the port; nothing was sent to them."""
    ahead: float | None = None
    """Seconds that its clock is ahead of ours; None if unknown."""


def probe(host: str, port: int, tls: bool, patience: float = PROBE_PATIENCE, *, user: str | None = None) -> ProbeResult:
    """Make a test connection to an IRC server: ask for its time, without registering.

    ``tls``: connect with TLS. ``patience``: limit in seconds. ``user``: a user besides the current one who may run the
    server.
    """
    deadline = time.monotonic() + patience
    try:
        with socket.create_connection((host, port), timeout=patience) as plain:
            if not tls:
                check_peer(plain, user)
            wire = _context().wrap_socket(plain) if tls else plain
            certificate = wire.getpeercert(binary_form=True) if isinstance(wire, ssl.SSLSocket) else None
            mark = hashlib.sha256(certificate).hexdigest() if certificate else None
            with wire:
                begun = time.time()
                with suppress(OSError):
                    wire.sendall(_ASKED)
                text = _received(wire, deadline)
            return _read_answer(text, (begun + time.time()) / 2, mark)
    except ssl.SSLError as error:
        return ProbeResult(f"no TLS: {error.reason or 'it does not speak it'}")
    except PortHeld as held:
        return ProbeResult(str(held), held=held)
    except TimeoutError:
        return ProbeResult("it does not answer")
    except OSError as error:
        return ProbeResult(error.strerror or str(error))


def _context() -> ssl.SSLContext:
    """Return a TLS context that accepts any certificate; callers compare its fingerprint."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _received(wire: socket.socket, deadline: float) -> bytes:
    text = b""
    while len(text) < _LONGEST_ANSWER:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        wire.settimeout(left)
        try:
            piece = wire.recv(_LONGEST_ANSWER)
        except OSError:
            break
        if not piece:
            break
        text += piece
    return text


def _read_answer(text: bytes, now: float, mark: str | None) -> ProbeResult:
    speaks, ahead = False, None
    for line in text.decode(errors="replace").splitlines():
        try:
            message = Message.parse(line)
        except (ProtocolError, ValueError):
            continue
        speaks = speaks or message.verb in _SPEAKS_TIME
        if message.verb == Numeric.RPL_TIME.code:
            ahead = _clock_ahead(message, now)
    failure = "" if speaks else "it says nothing" if not text else "it does not speak IRC"
    return ProbeResult(failure, reached=True, speaks=speaks, fingerprint=mark, ahead=ahead)


def _clock_ahead(message: Message, now: float) -> float | None:
    try:
        return datetime.fromisoformat(message.params[-1]).replace(tzinfo=UTC).timestamp() - now
    except (ValueError, IndexError):
        return None


COMMAND = "acp_command"


@dataclass(frozen=True)
class Needed:
    """A backend that is used, its installed programs, and the agents and teams that use it."""

    backend: str
    programs: Sequence[Found]
    users: Sequence[str]


def needed_programs(agents: Iterable[AgentConfig], teams: Iterable[TeamConfig]) -> list[Needed]:
    """Return the backends that agents and teams use, each with its programs and its users.

    Backends without a program, and agents with a command of their own, are left out.
    """
    users: dict[str, list[str]] = {}
    for agent in agents:
        if COMMAND not in agent.backend_options:
            users.setdefault(agent.agent, []).append(agent.nick)
    for team in teams:
        for name in sorted({team.role(role).agent for role in ROLES}):
            users.setdefault(name, []).append(f"the team {team.slug}")
    every = [Needed(name, _found_programs(name), nicks) for name, nicks in users.items()]
    return [each for each in every if each.programs]


def _found_programs(name: str) -> Sequence[Found]:
    try:
        return found(backend(name))
    except NoBackend:
        return (Found(name),)


MOST = 50_000
# Belongs to agents and git, with their own modes.
_NOT_OURS = frozenset({"work", "sandbox", "objects", ".git", "lost+found"})


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Path and status (``lstat``) of a file or folder."""

    path: Path
    status: os.stat_result


def walk(folder: Path) -> list[FileEntry]:
    """Return a folder and everything in it, at most 50,000 entries; empty if it does not exist."""
    try:
        entries = [FileEntry(folder, folder.lstat())]
    except FileNotFoundError:
        return []
    for entry in _below(folder):
        entries.append(entry)
        if len(entries) >= MOST:
            break
    return entries


def _below(folder: Path) -> Iterator[FileEntry]:
    try:
        with os.scandir(folder) as entries:
            inner = [(each.is_dir(follow_symlinks=False), each) for each in entries]
    except OSError:
        return
    for is_folder, each in inner:
        try:
            yield FileEntry(Path(each.path), each.stat(follow_symlinks=False))
        except FileNotFoundError:
            continue
        if is_folder and each.name not in _NOT_OURS:
            yield from _below(Path(each.path))


Result = TypeVar("Result")


@dataclass(frozen=True)
class LocalServer:
    """A server of this home folder: as it runs, or as it is configured if it does not run."""

    config: ServerConfig
    note: pid_file.ServerNote | None

    @property
    def listeners(self) -> list[tuple[Listen, str, int]]:
        """The listeners of the server, each with the host and port by which this machine reaches it."""
        planned = [(each.host, each.port) for each in self.config.listen]
        places = self.note.addresses if self.note else planned
        pairs = zip(self.config.listen, places, strict=False)
        return [(listener, reached_by(host), port) for listener, (host, port) in pairs]


class Inventory:
    """Files, servers and agents of this machine, as the doctor's checks look at them.

    Each part is read once, when it is first needed.
    """

    def __init__(self) -> None:
        self.home = paths.home()
        self._probes: dict[tuple[str, int, bool], ProbeResult] = {}
        self._probing: dict[tuple[str, int, bool], threading.Lock] = {}
        self._lock = threading.Lock()

    @cached_property
    def entries(self) -> list[FileEntry]:
        """Every file and folder in culture's home folder, up to a limit."""
        return walk(self.home)

    @cached_property
    def _configured(self) -> tuple[Loaded[ServerConfig] | None, tuple[Problem, ...]]:
        return _load(_load_server)

    @cached_property
    def _agents(self) -> tuple[AgentsConfig | None, tuple[Problem, ...]]:
        return _load(load)

    @cached_property
    def _teams(self) -> list[tuple[TeamConfig | None, tuple[Problem, ...]]]:
        files = sorted((self.home / "team").glob(f"*/{TEAM}"))
        return [_load(lambda file=file: load_team(file).config) for file in files]  # type: ignore[misc]

    @property
    def problems(self) -> list[Problem]:
        """The errors in culture.yaml, agents.yaml and the files of teams."""
        teams = [problem for _, problems in self._teams for problem in problems]
        return [*self._configured[1], *self._agents[1], *teams]

    @property
    def loaded(self) -> Loaded[ServerConfig] | None:
        """The configuration in culture.yaml; None if the file is invalid."""
        return self._configured[0]

    @property
    def settings(self) -> AgentsConfig | None:
        """The configuration in agents.yaml; None if the file is invalid."""
        return self._agents[0]

    @property
    def agents(self) -> list[AgentConfig]:
        """The agents of agents.yaml that run as this user, with the file's defaults filled in."""
        if self.settings is None:
            return []
        configured = [self.settings.agent(each.nick) for each in self.settings.agents]
        return [each for each in configured if each is not None and each.user in (None, user_name(os.geteuid()))]

    @property
    def teams(self) -> list[TeamConfig]:
        """The configurations of the teams whose files are valid."""
        return [team for team, _ in self._teams if team is not None]

    @cached_property
    def servers(self) -> list[LocalServer]:
        """The servers that run, and the server in culture.yaml."""
        servers = {}
        for name in pid_file.all_running():
            note = pid_file.running(name)
            config = _as_running(note) if note else None
            if config is not None:
                servers[name] = LocalServer(config, note)
        if self.loaded is not None and paths.server_file().exists():
            servers.setdefault(self.loaded.config.name, LocalServer(self.loaded.config, None))
        return list(servers.values())

    @cached_property
    def daemons(self) -> dict[str, daemons.DaemonNote]:
        """The contents of running daemons' pid files (pid, socket, version), by the agent's nick."""
        return daemons.all_running()

    @cached_property
    def needed(self) -> list[Needed]:
        """The backends that the agents and teams use, with their programs."""
        return needed_programs(self.agents, self.teams)

    def server_at(self, address: ServerAddress) -> LocalServer | None:
        """Return the server of this home folder that listens at an address, or None."""
        if not is_loopback(address.host):
            return None
        servers = [each for each in self.servers if address.port in {port for _, _, port in each.listeners}]
        return servers[0] if servers else None

    def links(self, server: LocalServer) -> list[LinkConfig]:
        """Return the links configured for a server, from culture.yaml and the link file.

        UnreadableBook is raised if the link file cannot be read, Misfit if the links are invalid for the server.
        """
        file = book.path_of(server.config)
        try:
            entries = book.parsed(file, file.read_bytes())
        except FileNotFoundError:
            entries = book.NOTHING
        links = list(book.merged(server.config.links, entries).values())
        book.check(server.config, links)
        return links

    def good_links(self, server: LocalServer) -> list[LinkConfig]:
        """Return the links configured for a server; empty if they are invalid."""
        try:
            return self.links(server)
        except (UnreadableBook, Misfit, OSError):
            return []

    def accounts(self, server: LocalServer) -> AccountFileContents:
        """Return the accounts of a server; reading them does not change the mode of the file."""
        try:
            return account_file.parse(server.config.accounts_file.read_bytes())
        except FileNotFoundError:
            return account_file.empty()

    def probe(self, host: str, port: int, tls: bool) -> ProbeResult:
        """Return the result of a test connection to an IRC server, which is made only once."""
        key = (host, port, tls)
        with self._lock:
            turn = self._probing.setdefault(key, threading.Lock())
        with turn:
            if key not in self._probes:
                user = None if self.settings is None else self.settings.server.user
                self._probes[key] = probe(host, port, tls, user=user)
            return self._probes[key]


def _load_server() -> Loaded[ServerConfig]:
    loaded = Choices().load()
    check_skills(loaded)
    return loaded


def _load(load: Callable[[], Result]) -> tuple[Result | None, tuple[Problem, ...]]:
    try:
        return load(), ()
    except ConfigError as wrong:
        return None, wrong.problems


def _as_running(note: pid_file.ServerNote) -> ServerConfig | None:
    try:
        return Choices.parse(note.options).load().config
    except ConfigError:
        return None


def display_path(path: Path) -> str:
    """Return a path with ``~`` in place of the user's home folder."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)
