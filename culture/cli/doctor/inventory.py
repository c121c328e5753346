"""What there is to look at: each thing is read once, by the first check that asks for it, and nothing is changed."""

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from culture.cli.agents.select_agents import load
from culture.cli.config import check_skills
from culture.cli.connect_hints import reached_by
from culture.cli.doctor.agent_programs import Needed, needed
from culture.cli.doctor.probe import ProbeResult, probe
from culture.cli.options import Choices
from culture.cli.server import pid_file
from culture.cli.team.select_team import TEAM
from culture.clients.shared import pidfile as daemons
from culture.config import paths
from culture.config.agents import AgentConfig, AgentsConfig, ServerAddress
from culture.config.errors import ConfigError, Problem
from culture.config.links import LinkConfig
from culture.config.listen_policy import is_loopback
from culture.config.load import Loaded, load_team
from culture.config.model import Listen, ServerConfig
from culture.config.peer_uid import user_name
from culture.config.team import TeamConfig
from culture.config.values import Misfit
from culture.federation import book
from culture.federation.book import UnreadableBook
from culture.server.auth import account_file
from culture.server.auth.account_file import AccountFileContents

MOST = 50_000
# What belongs to agents and to git, and has the modes they give it.
_NOT_OURS = frozenset({"work", "sandbox", "objects", ".git", "lost+found"})


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file or a folder."""

    path: Path
    status: os.stat_result


def walked(folder: Path) -> list[FileEntry]:
    """The folder itself and what is in it; nothing, where there is none."""
    try:
        found = [FileEntry(folder, folder.lstat())]
    except FileNotFoundError:
        return []
    for entry in _below(folder):
        found.append(entry)
        if len(found) >= MOST:
            break
    return found


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
    """A server of this home folder: as it runs, else as culture.yaml would have it."""

    config: ServerConfig
    note: pid_file.ServerNote | None

    @property
    def listeners(self) -> list[tuple[Listen, str, int]]:
        """Where it listens, each with the host and the port by which this machine reaches it."""
        planned = [(each.host, each.port) for each in self.config.listen]
        places = self.note.addresses if self.note else planned
        found = zip(self.config.listen, places, strict=False)
        return [(listener, reached_by(host), port) for listener, (host, port) in found]


class Inventory:
    """This machine, as far as culture is concerned."""

    def __init__(self) -> None:
        self.home = paths.home()
        self._probes: dict[tuple[str, int, bool], ProbeResult] = {}
        self._probing: dict[tuple[str, int, bool], threading.Lock] = {}
        self._lock = threading.Lock()

    @cached_property
    def entries(self) -> list[FileEntry]:
        """Everything in the home folder, as far as it is ours."""
        return walked(self.home)

    @cached_property
    def _configured(self) -> tuple[Loaded[ServerConfig] | None, tuple[Problem, ...]]:
        return _tried(_load_server)

    @cached_property
    def _agents(self) -> tuple[AgentsConfig | None, tuple[Problem, ...]]:
        return _tried(load)

    @cached_property
    def _teams(self) -> list[tuple[TeamConfig | None, tuple[Problem, ...]]]:
        files = sorted((self.home / "team").glob(f"*/{TEAM}"))
        return [_tried(lambda file=file: load_team(file).config) for file in files]  # type: ignore[misc]

    @property
    def problems(self) -> list[Problem]:
        """What is wrong with the configuration files."""
        teams = [problem for _, problems in self._teams for problem in problems]
        return [*self._configured[1], *self._agents[1], *teams]

    @property
    def loaded(self) -> Loaded[ServerConfig] | None:
        """What culture.yaml says; None where it is wrong."""
        return self._configured[0]

    @property
    def settings(self) -> AgentsConfig | None:
        """What agents.yaml says; None where it is wrong."""
        return self._agents[0]

    @property
    def agents(self) -> list[AgentConfig]:
        """The agents of this user, with the file's own rules filled in."""
        if self.settings is None:
            return []
        found = [self.settings.agent(each.nick) for each in self.settings.agents]
        return [each for each in found if each is not None and each.user in (None, user_name(os.geteuid()))]

    @property
    def teams(self) -> list[TeamConfig]:
        """The teams whose files can be read."""
        return [team for team, _ in self._teams if team is not None]

    @cached_property
    def servers(self) -> list[LocalServer]:
        """Those that run, and the one that culture.yaml describes."""
        found = {}
        for name in pid_file.all_running():
            note = pid_file.running(name)
            config = _as_running(note) if note else None
            if config is not None:
                found[name] = LocalServer(config, note)
        if self.loaded is not None and paths.server_file().exists():
            found.setdefault(self.loaded.config.name, LocalServer(self.loaded.config, None))
        return list(found.values())

    @cached_property
    def daemons(self) -> dict[str, daemons.DaemonNote]:
        """The daemons that run, by nick."""
        return daemons.all_running()

    @cached_property
    def needed(self) -> list[Needed]:
        """The programs of the agents, and of those that teams would hire."""
        return needed(self.agents, self.teams)

    def server_at(self, address: ServerAddress) -> LocalServer | None:
        """The server of this home folder that has the port of an address on this machine."""
        if not is_loopback(address.host):
            return None
        found = [each for each in self.servers if address.port in {port for _, _, port in each.listeners}]
        return found[0] if found else None

    def links(self, server: LocalServer) -> list[LinkConfig]:
        """The links it shall have; UnreadableBook or Misfit where that cannot be known."""
        file = book.path_of(server.config)
        try:
            entries = book.parsed(file, file.read_bytes())
        except FileNotFoundError:
            entries = book.NOTHING
        links = list(book.merged(server.config.links, entries).values())
        book.check(server.config, links)
        return links

    def good_links(self, server: LocalServer) -> list[LinkConfig]:
        """The same, none where that cannot be known."""
        try:
            return self.links(server)
        except (UnreadableBook, Misfit, OSError):
            return []

    def accounts(self, server: LocalServer) -> AccountFileContents:
        """Who may log in; unlike the server's own way to read it, this leaves the file's mode as it is."""
        try:
            return account_file.parse(server.config.accounts_file.read_bytes())
        except FileNotFoundError:
            return account_file.empty()

    def probe(self, host: str, port: int, tls: bool) -> ProbeResult:
        """What answers at an address; each is asked once."""
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


def _tried(load: Callable[[], Result]) -> tuple[Result | None, tuple[Problem, ...]]:
    try:
        return load(), ()
    except ConfigError as wrong:
        return None, wrong.problems


def _as_running(note: pid_file.ServerNote) -> ServerConfig | None:
    try:
        return Choices.parse(note.options).load().config
    except ConfigError:
        return None


def shown(path: Path) -> str:
    """A path as people write it."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)
