"""What there is to look at: each thing is read once, by the first check that asks for it, and nothing is changed."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from culture.cli import pidfile
from culture.cli.agents.known import load
from culture.cli.choices import Choices
from culture.cli.config import check_skills
from culture.cli.connect import reached_by
from culture.cli.doctor.probing import Answer, probe
from culture.cli.doctor.programs import Needed, needed
from culture.cli.doctor.walking import Entry, walked
from culture.cli.team.place import TEAM
from culture.clients.shared import pidfile as daemons
from culture.config import paths
from culture.config.agents import AgentConfig, AgentsConfig, ServerAddress
from culture.config.errors import ConfigError, Problem
from culture.config.exposure import is_loopback
from culture.config.links import Link
from culture.config.load import Loaded, load_team
from culture.config.model import Listen, ServerConfig
from culture.config.peer_uid import user_name
from culture.config.team import TeamConfig
from culture.config.values import Misfit
from culture.federation import book
from culture.federation.book import UnreadableBook
from culture.server.accounts import schema
from culture.server.accounts.schema import Contents

Result = TypeVar("Result")


@dataclass(frozen=True)
class Server:
    """A server of this home folder: as it runs, else as culture.yaml would have it."""

    config: ServerConfig
    note: pidfile.Note | None

    @property
    def listeners(self) -> list[tuple[Listen, str, int]]:
        """Where it listens, each with the host and the port by which this machine reaches it."""
        planned = [(each.host, each.port) for each in self.config.listen]
        places = self.note.addresses if self.note else planned
        found = zip(self.config.listen, places, strict=False)
        return [(listener, reached_by(host), port) for listener, (host, port) in found]


class Scene:
    """This machine, as far as culture is concerned."""

    def __init__(self) -> None:
        self.home = paths.home()
        self._probes: dict[tuple[str, int, bool], Answer] = {}
        self._probing: dict[tuple[str, int, bool], threading.Lock] = {}
        self._lock = threading.Lock()

    @cached_property
    def entries(self) -> list[Entry]:
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
    def servers(self) -> list[Server]:
        """Those that run, and the one that culture.yaml describes."""
        found = {}
        for name in pidfile.all_running():
            note = pidfile.running(name)
            config = _as_running(note) if note else None
            if config is not None:
                found[name] = Server(config, note)
        if self.loaded is not None and paths.server_file().exists():
            found.setdefault(self.loaded.config.name, Server(self.loaded.config, None))
        return list(found.values())

    @cached_property
    def daemons(self) -> dict[str, daemons.DaemonNote]:
        """The daemons that run, by nick."""
        return daemons.all_running()

    @cached_property
    def needed(self) -> list[Needed]:
        """The programs of the agents, and of those that teams would hire."""
        return needed(self.agents, self.teams)

    def server_at(self, address: ServerAddress) -> Server | None:
        """The server of this home folder that has the port of an address on this machine."""
        if not is_loopback(address.host):
            return None
        found = [each for each in self.servers if address.port in {port for _, _, port in each.listeners}]
        return found[0] if found else None

    def links(self, server: Server) -> list[Link]:
        """The links it shall have; UnreadableBook or Misfit where that cannot be known."""
        file = book.path_of(server.config)
        try:
            entries = book.parsed(file, file.read_bytes())
        except FileNotFoundError:
            entries = book.NOTHING
        links = list(book.merged(server.config.links, entries).values())
        book.check(server.config, links)
        return links

    def good_links(self, server: Server) -> list[Link]:
        """The same, none where that cannot be known."""
        try:
            return self.links(server)
        except (UnreadableBook, Misfit, OSError):
            return []

    def accounts(self, server: Server) -> Contents:
        """Who may log in; unlike the server's own way to read it, this leaves the file's mode as it is."""
        try:
            return schema.parse(server.config.accounts_file.read_bytes())
        except FileNotFoundError:
            return schema.empty()

    def probe(self, host: str, port: int, tls: bool) -> Answer:
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


def _as_running(note: pidfile.Note) -> ServerConfig | None:
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
