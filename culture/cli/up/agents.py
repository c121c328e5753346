"""The agents that `culture up` starts: those of agents.yaml, and one for the folder it was typed in."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import typer

from culture.cli.agents import agent_login, agents_yaml, daemon_launch
from culture.cli.agents.daemon_launch import DaemonNotStarted
from culture.cli.agents.select_agents import load
from culture.cli.agents.start import AT_ONCE
from culture.clients.shared import pidfile
from culture.clients.shared.backends import found, installed
from culture.clients.shared.programs import Found, Login
from culture.config import paths
from culture.config.agents import AgentsConfig, ServerAddress
from culture.config.model import ServerConfig
from culture.lib.files import private_directory
from culture.lib.process.background import BackgroundProcess
from culture.lib.process.children import Launch
from culture.protocol.names import fold, owner
from culture.protocol.vocabulary import WellKnownChannel
from culture.server.auth.account_store import AccountStore
from culture.server.errors import StartError

IN_ORDER = ("claude", "codex", "copilot", "acp")
USD_PER_DAY = 5.0
TURNS_PER_DAY = 200
"""Beside the money: some programs do not tell what a turn costs."""
_NO_AGENT = ("none", "no")


@dataclass(frozen=True, slots=True)
class Choice:
    """A kind of agent that could begin at once."""

    backend: str
    program: str
    options: Mapping[str, object] = field(default_factory=dict)


def ready() -> Choice | None:
    """The first of those with a model that is installed and logged in; None when there is none."""
    return next(_ready(), None)


def _ready() -> Iterator[Choice]:
    for name in IN_ORDER:
        kind = installed().get(name)
        for program in found(kind) if kind is not None and _may_run(name) else ():
            if program.version is not None and program.login is Login.READY:
                yield Choice(name, program.program, _options(name, program))


def _options(backend: str, program: Found) -> dict[str, object]:
    if backend != "acp":
        return {}
    from culture.clients.acp.quirks import DEFAULT_COMMAND, KNOWN  # for this kind alone

    command = [program.program, *KNOWN[program.program].words]
    return {} if command == list(DEFAULT_COMMAND) else {"acp_command": command}


def _may_run(backend: str) -> bool:
    """Claude Code does not work without asking as root, but in a sandbox."""
    return backend != "claude" or os.geteuid() != 0 or os.environ.get("IS_SANDBOX") == "1"


def ask_budget(what: str, given: float | None) -> float | None:
    """How many dollars a day it may spend: as given, as the person says, else a small sum; None for no agent at all."""
    if given is not None or not sys.stdin.isatty():
        return USD_PER_DAY if given is None else given
    typer.echo(f"\n{what} (none: no agent)")
    while True:
        said: str = typer.prompt("  How many dollars may it spend a day?", default=f"{USD_PER_DAY:g}")
        if said.strip().lower() in _NO_AGENT:
            return None
        try:
            amount = float(said.strip().lstrip("$"))
        except ValueError:
            amount = 0.0
        if 0 < amount < float("inf"):
            return amount
        typer.echo("  A number such as 5 or 0.50, or none.")


SCRIPTED = "scripted"
GUIDE, PARROT = "guide", "parrot"
GREETING = (
    "Welcome, {sender}! I am {nick}, a guide without a model: I follow a playbook. Say `@{nick} what can you do`, and "
    "I show you around."
)
_MOST_NAMES = 100


@dataclass(frozen=True, slots=True)
class UpAgents:
    """A server of this machine, as its agents reach it."""

    server: ServerConfig
    at: ServerAddress

    def add_for(self, folder: Path, usd_per_day: float | None) -> str | None:
        """Write an agent for a folder into agents.yaml, unless one works there; what it is called, None for nobody.

        Where no model is to be had it is the guide, once.
        """
        known = load()
        if self._of_folder(known, folder) is not None or (known.agents and _is_no_project(folder)):
            return None
        choice = ready()
        if choice is None:
            return None if known.agents else self._add_guide()
        nick = self._free_nick(choice.backend, folder)
        place = self._private(nick) if _is_no_project(folder) else folder
        what = f"{nick} is {choice.program}, and works in {place}."
        usd = ask_budget(what, usd_per_day)
        if usd is None:
            return None if known.agents else self._add_guide()
        budget = {"usd_per_day": usd, "turns_per_day": TURNS_PER_DAY}
        further = {"budget": budget, **choice.options}
        file = agents_yaml.add(agents_yaml.NewAgent(nick, choice.backend, place, self._channels, further), self.at)
        typer.echo(f"Wrote {file}: {what} It may spend {usd:g} dollars and {TURNS_PER_DAY} turns a day.")
        return nick

    def to_start(self) -> list[str]:
        """Those of agents.yaml that belong here and do not run, each with an account."""
        store = AccountStore(self.server.accounts_file, self.server.account_prefix)
        return [nick for nick in self._ours(load()) if pidfile.running(nick) is None and _has_login(nick, store)]

    def running(self) -> list[str]:
        """Those that belong here and run."""
        return [nick for nick in self._ours(load()) if pidfile.running(nick) is not None]

    @property
    def _channels(self) -> tuple[str, ...]:
        return tuple(self.server.channels[:1]) or (WellKnownChannel.GENERAL.value,)

    def _ours(self, known: AgentsConfig) -> list[str]:
        return [agent.nick for agent in known.agents if agent.user is None and belongs(agent.nick, self.server)]

    def _of_folder(self, known: AgentsConfig, folder: Path) -> str | None:
        ours = set(self._ours(known))
        return next((each.nick for each in known.agents if each.nick in ours and each.directory == folder), None)

    def _add_guide(self) -> str:
        """The guide, and another one for it to talk to: the loop guard takes two."""
        nick, other = self._nick(GUIDE), self._nick(PARROT)
        short = {"max_hops": 4, "cool_down": "1s"}
        for each, playbook, further in (
            (nick, GUIDE, {"greeting": GREETING, "post_output": "always"}),
            (other, PARROT, {}),
        ):
            options = {"playbook": playbook, **short, **further}
            file = agents_yaml.add(
                agents_yaml.NewAgent(each, SCRIPTED, self._private(each), self._channels, options), self.at
            )
        typer.echo(f"\nWrote {file}: no agent with a model is installed and logged in (`culture backends` shows more),")
        typer.echo(f"so {nick} is here to guide you. It has no model, follows a playbook and costs nothing.")
        typer.echo(f"{other} is a second one, for it to talk to.")
        return nick

    def _free_nick(self, backend: str, folder: Path) -> str:
        """``spark-claude``; where that is somebody, ``spark-claude-shop`` after the folder, then with a number."""
        store = AccountStore(self.server.accounts_file, self.server.account_prefix)
        taken = {fold(agent.nick) for agent in load().agents}
        name = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")
        tries = [backend, f"{backend}-{name}" if name else backend]
        tries += [f"{backend}{number}" for number in range(2, _MOST_NAMES)]
        nicks = (self._nick(each)[: self.server.limits.nick_length].rstrip("-") for each in tries)
        return next(nick for nick in nicks if fold(nick) not in taken and store.owner_of(nick) is None)

    def _nick(self, name: str) -> str:
        return f"{self.server.account_prefix or self.server.short_name}-{name}"

    def _private(self, nick: str) -> Path:
        return private_directory(paths.home() / "work" / nick)


def belongs(nick: str, server: ServerConfig) -> bool:
    """Whether an agent is one of this server's."""
    return not server.account_prefix or fold(owner(nick)) == fold(server.account_prefix)


@dataclass(frozen=True, slots=True)
class Starting:
    """Agents whose daemons were launched, by nick."""

    begun: Mapping[str, BackgroundProcess]

    def wait(self, here: Callable[[str], None]) -> list[str]:
        """Wait for them; ``here`` is told of each that is there. Those that are not, are explained and returned."""

        broken_off = Event()

        def came(nick: str) -> bool:
            return _came(self.begun[nick], here, broken_off)

        pool = ThreadPoolExecutor(AT_ONCE)
        try:
            there = dict(zip(self.begun, pool.map(came, self.begun), strict=True))
        except KeyboardInterrupt:
            broken_off.set()  # how it goes on with them, nobody is told
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        return [nick for nick, is_there in there.items() if not is_there]


def begin(nicks: Iterable[str], at: ServerAddress, how: Launch) -> Starting:
    """Launch agents, all at once."""
    return Starting({nick: daemon_launch.launch(nick, at=at, how=how) for nick in nicks})


def _came(process: BackgroundProcess, here: Callable[[str], None], broken_off: Event) -> bool:
    nick = process.name
    try:
        daemon_launch.until_ready(process)
        daemon_launch.until_at_work(process)
    except DaemonNotStarted as failure:
        if broken_off.is_set():
            return False
        typer.echo(f"\n{failure}", err=True)
        typer.echo(f"`culture doctor` finds what is wrong; then `culture start {nick}`.", err=True)
        return False
    here(nick)
    return True


def _has_login(nick: str, store: AccountStore) -> bool:
    try:
        agent_login.ensure(nick, store)
    except (agent_login.NoLogin, StartError) as wrong:
        typer.echo(f"{nick} is not started: {wrong}", err=True)
        return False
    return True


def _is_no_project(folder: Path) -> bool:
    """The home folder and the root of the disk hold everything, and are nothing to let an agent loose on."""
    return folder in (Path.home(), Path(folder.anchor), paths.home())
