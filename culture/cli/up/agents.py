"""The agents that `culture up` starts: those of agents.yaml, and one for the current folder."""

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
from culture.cli.agents.lifecycle import AT_ONCE
from culture.cli.agents.select_agents import load
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
"""Limit beside the dollars, since some programs do not report their cost."""
_NO_AGENT = ("none", "no")


@dataclass(frozen=True, slots=True)
class Choice:
    """A backend that could be used at once: its name, its program, and settings for the agent."""

    backend: str
    program: str
    options: Mapping[str, object] = field(default_factory=dict)


def ready_backend() -> Choice | None:
    """Return the first backend with a model whose program is installed and logged in, or None."""
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
    from culture.clients.acp.quirks import DEFAULT_COMMAND, KNOWN  # only this kind needs it

    command = [program.program, *KNOWN[program.program].words]
    return {} if command == list(DEFAULT_COMMAND) else {"acp_command": command}


def _may_run(backend: str) -> bool:
    """Whether the current user can run a backend; Claude Code refuses root outside of a sandbox."""
    return backend != "claude" or os.geteuid() != 0 or os.environ.get("IS_SANDBOX") == "1"


def ask_budget(what: str, option: float | None) -> float | None:
    """Return how many dollars a day a new agent may spend, or None if the person wants no agent.

    ``option``: the value of --budget; without it the person is asked, or without a terminal the default is used.
    ``what``: a sentence about the agent, which is printed before.
    """
    if option is not None or not sys.stdin.isatty():
        return USD_PER_DAY if option is None else option
    typer.echo(f"\n{what} (none: no agent)")
    while True:
        answer: str = typer.prompt("  How many dollars may it spend a day?", default=f"{USD_PER_DAY:g}")
        if answer.strip().lower() in _NO_AGENT:
            return None
        try:
            amount = float(answer.strip().lstrip("$"))
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
    """The agents of agents.yaml that belong to one server, and the server's address."""

    server: ServerConfig
    at: ServerAddress

    def add_for(self, folder: Path, usd_per_day: float | None) -> str | None:
        """Add an agent for a folder to agents.yaml and return its nick; None if none is added.

        None is added if an agent works in the folder already. ``usd_per_day``: the new agent's budget, None to ask the
        person for it. If no backend with a model can be used, or the person wants no such agent, a scripted guide is
        added to an agents.yaml that has no agents.
        """
        settings = load()
        if self._of_folder(settings, folder) is not None or (settings.agents and _is_no_project(folder)):
            return None
        choice = ready_backend()
        if choice is None:
            return None if settings.agents else self._add_guide()
        nick = self._free_nick(choice.backend, folder)
        place = self._private(nick) if _is_no_project(folder) else folder
        what = f"{nick} is {choice.program}, and works in {place}."
        usd = ask_budget(what, usd_per_day)
        if usd is None:
            return None if settings.agents else self._add_guide()
        budget = {"usd_per_day": usd, "turns_per_day": TURNS_PER_DAY}
        further = {"budget": budget, **choice.options}
        file = agents_yaml.add(agents_yaml.NewAgent(nick, choice.backend, place, self._channels, further), self.at)
        typer.echo(f"Wrote {file}: {what} It may spend {usd:g} dollars and {TURNS_PER_DAY} turns a day.")
        return nick

    def to_start(self) -> list[str]:
        """Return the nicks of the server's agents that do not run and can log in."""
        store = AccountStore(self.server.accounts_file, self.server.account_prefix)
        return [nick for nick in self._ours(load()) if pidfile.running(nick) is None and _has_login(nick, store)]

    def running(self) -> list[str]:
        """Return the nicks of the server's agents whose daemons run."""
        return [nick for nick in self._ours(load()) if pidfile.running(nick) is not None]

    @property
    def _channels(self) -> tuple[str, ...]:
        return tuple(self.server.channels[:1]) or (WellKnownChannel.GENERAL.value,)

    def _ours(self, settings: AgentsConfig) -> list[str]:
        return [agent.nick for agent in settings.agents if agent.user is None and belongs(agent.nick, self.server)]

    def _of_folder(self, settings: AgentsConfig, folder: Path) -> str | None:
        ours = set(self._ours(settings))
        return next((each.nick for each in settings.agents if each.nick in ours and each.directory == folder), None)

    def _add_guide(self) -> str:
        """Add two scripted agents to agents.yaml: a guide, and one that shows the loop guard.

        Returns the nick of the guide.
        """
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
        typer.echo(f"so {nick} guides you. It has no model, follows a playbook and costs nothing.")
        typer.echo(f"{other} is a second scripted agent, for it to talk to.")
        return nick

    def _free_nick(self, backend: str, folder: Path) -> str:
        """Return an unused nick for an agent, such as ``spark-claude``.

        If that is used, it has the folder's name or a number after it.
        """
        store = AccountStore(self.server.accounts_file, self.server.account_prefix)
        used = {fold(agent.nick) for agent in load().agents}
        name = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")
        tries = [backend, f"{backend}-{name}" if name else backend]
        tries += [f"{backend}{number}" for number in range(2, _MOST_NAMES)]
        nicks = (self._nick(each)[: self.server.limits.nick_length].rstrip("-") for each in tries)
        return next(nick for nick in nicks if fold(nick) not in used and store.owner_of(nick) is None)

    def _nick(self, name: str) -> str:
        return f"{self.server.account_prefix or self.server.short_name}-{name}"

    def _private(self, nick: str) -> Path:
        return private_directory(paths.home() / "work" / nick)


def belongs(nick: str, server: ServerConfig) -> bool:
    """Whether an agent belongs to a server: its nick begins with the server's prefix.

    On a server whose nicks have no prefix, every agent does.
    """
    return not server.account_prefix or fold(owner(nick)) == fold(server.account_prefix)


@dataclass(frozen=True, slots=True)
class Starting:
    """Agents whose daemons have been started but may not be ready, with their processes by nick."""

    begun: Mapping[str, BackgroundProcess]

    def wait(self, on_ready: Callable[[str], None]) -> list[str]:
        """Wait until each agent is ready or has failed; return the nicks of those that failed.

        ``on_ready`` is called with the nick of each agent that is ready; for the others the reason is printed.
        """

        broken_off = Event()

        def came(nick: str) -> bool:
            return _wait_for(self.begun[nick], on_ready, broken_off)

        pool = ThreadPoolExecutor(AT_ONCE)
        try:
            there = dict(zip(self.begun, pool.map(came, self.begun), strict=True))
        except KeyboardInterrupt:
            broken_off.set()  # report nothing further
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        return [nick for nick, is_there in there.items() if not is_there]


def launch_agents(nicks: Iterable[str], at: ServerAddress, how: Launch) -> Starting:
    """Start the daemons of agents and return without waiting until they are ready.

    ``at``: address of their server. ``how``: the function that starts a process.
    """
    return Starting({nick: daemon_launch.launch(nick, at=at, how=how) for nick in nicks})


def _wait_for(process: BackgroundProcess, on_ready: Callable[[str], None], broken_off: Event) -> bool:
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
    on_ready(nick)
    return True


def _has_login(nick: str, store: AccountStore) -> bool:
    try:
        agent_login.ensure_account(nick, store)
    except (agent_login.NoLogin, StartError) as wrong:
        typer.echo(f"{nick} is not started: {wrong}", err=True)
        return False
    return True


def _is_no_project(folder: Path) -> bool:
    """Whether a folder is one in which no agent works: the root, or a home folder.

    The home folders are the user's and culture's own.
    """
    return folder in (Path.home(), Path(folder.anchor), paths.home())
