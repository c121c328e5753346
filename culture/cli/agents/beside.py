"""The agents that `culture up` starts: those of agents.yaml, and one for the folder it was typed in."""

import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import typer

from culture.cli.agents import choosing, filing, launching, login
from culture.cli.agents.known import load
from culture.cli.agents.launching import NotStarted
from culture.cli.agents.start import AT_ONCE
from culture.cli.launched import Launch
from culture.clients.shared import pidfile
from culture.config import paths
from culture.config.agents import AgentsConfig, ServerAddress
from culture.config.model import ServerConfig
from culture.protocol.names import fold, owner
from culture.protocol.vocabulary import Channel
from culture.server.accounts.store import AccountStore
from culture.server.errors import StartError

SCRIPTED = "scripted"
GUIDE, PARROT = "guide", "parrot"
GREETING = (
    "Welcome, {sender}! I am {nick}, a guide without a model: I follow a playbook. Say `@{nick} what can you do`, and "
    "I show you around."
)
_MOST_NAMES = 100


@dataclass(frozen=True, slots=True)
class Beside:
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
        choice = choosing.ready()
        if choice is None:
            return None if known.agents else self._add_guide()
        nick = self._free_nick(choice.backend, folder)
        place = self._private(nick) if _is_no_project(folder) else folder
        what = f"{nick} is {choice.program}, and works in {place}."
        usd = choosing.ask_budget(what, usd_per_day)
        if usd is None:
            return None if known.agents else self._add_guide()
        budget = {"usd_per_day": usd, "turns_per_day": choosing.TURNS_PER_DAY}
        further = {"budget": budget, **choice.options}
        file = filing.add(filing.Entry(nick, choice.backend, place, self._channels, further), self.at)
        typer.echo(f"Wrote {file}: {what} It may spend {usd:g} dollars and {choosing.TURNS_PER_DAY} turns a day.")
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
        return tuple(self.server.channels[:1]) or (Channel.GENERAL.value,)

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
            file = filing.add(filing.Entry(each, SCRIPTED, self._private(each), self._channels, options), self.at)
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
        return paths.private_directory(paths.home() / "work" / nick)


def belongs(nick: str, server: ServerConfig) -> bool:
    """Whether an agent is one of this server's."""
    return not server.account_prefix or fold(owner(nick)) == fold(server.account_prefix)


@dataclass(frozen=True, slots=True)
class Starting:
    """Agents that were launched, each with how long its log was before."""

    processes: "Mapping[str, subprocess.Popen[bytes]]"
    begun: Mapping[str, int]

    def wait(self, here: Callable[[str], None]) -> list[str]:
        """Wait for them; ``here`` is told of each that is there. Those that are not, are explained and returned."""

        broken_off = Event()

        def came(nick: str) -> bool:
            return _came(nick, self.processes[nick], self.begun[nick], here, broken_off)

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
    begun = {nick: launching.size(paths.log_file(nick)) for nick in nicks}
    return Starting({nick: launching.launch(nick, at=at, how=how) for nick in begun}, begun)


def _came(
    nick: str, process: "subprocess.Popen[bytes]", begun: int, here: Callable[[str], None], broken_off: Event
) -> bool:
    try:
        launching.until_ready(nick, process, begun)
        launching.until_at_work(nick, begun)
    except NotStarted as failure:
        if broken_off.is_set():
            return False
        typer.echo(f"\n{failure}", err=True)
        typer.echo(f"`culture doctor` finds what is wrong; then `culture start {nick}`.", err=True)
        return False
    here(nick)
    return True


def _has_login(nick: str, store: AccountStore) -> bool:
    try:
        login.ensure(nick, store)
    except (login.NoLogin, StartError) as wrong:
        typer.echo(f"{nick} is not started: {wrong}", err=True)
        return False
    return True


def _is_no_project(folder: Path) -> bool:
    """The home folder and the root of the disk hold everything, and are nothing to let an agent loose on."""
    return folder in (Path.home(), Path(folder.anchor), paths.home())
