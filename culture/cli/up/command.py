"""``culture up``: everything there is, on this machine, with one command."""

import shlex
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from culture.cli.agents.local_servers import plain_listener
from culture.cli.agents.select_agents import load
from culture.cli.connect_hints import how_to_be_found, how_to_connect, nick_of
from culture.cli.options import Choices, ConfigFile, DataDir, Host, Name, Port
from culture.cli.output import fail
from culture.cli.server import background, pid_file
from culture.cli.server.running_server import as_running
from culture.cli.up import change_port, web_page
from culture.cli.up.agents import Starting, UpAgents, begin, belongs
from culture.cli.up.first_run import free_port, settle_the_person, settle_the_server, taken
from culture.cli.up.server_restart import ServerRestart
from culture.cli.up.shutdown import Shutdown, everybody, holders, say
from culture.cli.up.wait import has_terminal, interruptible, stay
from culture.cli.web import process
from culture.clients.shared import pidfile as daemons
from culture.config import paths
from culture.config.errors import ConfigError
from culture.config.model import ServerConfig
from culture.lib.process.background import EndedEarly
from culture.lib.process.children import ChildProcesses, Interrupts
from culture.protocol.names import owner
from culture.protocol.vocabulary import Exit, WellKnownChannel
from culture.server.auth.accounts import Account


def up(
    config: ConfigFile = None,
    name: Name = None,
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    agent: Annotated[bool, typer.Option("--agent/--no-agent", help="Run the agents of agents.yaml beside it.")] = True,
    web: Annotated[bool, typer.Option("--web/--no-web", help="Show the web page beside it.")] = True,
    budget: Annotated[
        float | None,
        typer.Option("--budget", metavar="USD", min=0.01, help="What a new agent may spend a day; else it is asked."),
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Go on in the background; `culture down` stops it.")
    ] = False,
) -> None:
    """Run the server, the web page and an agent for this folder, and say how to connect.

    What happens is shown until Ctrl-C, which stops everything. The first time,
    ~/.culture is made: the server's name, an account for you, and an agent:
    Claude, Codex, Copilot or one that speaks ACP where it is installed and logged
    in, else the guide, which has no model. In another folder, an agent for that
    one is added to what runs.
    """
    choices = Choices(config, name, host, port, data_dir)
    is_up = pid_file.running(choices.server_name()) is not None
    if config is None and not is_up:
        settle_the_server(choices)
        is_up = pid_file.running(choices.server_name()) is not None
    _refuse_port(choices)
    settings = as_running(choices).load().config
    interrupts = Interrupts()
    run = UpRun(settings, settle_the_person(settings), detach or is_up, ChildProcesses(interrupts.held), interrupts)
    if is_up:
        run.greet("is up already")
        raise typer.Exit(run.begin_beside(web=web, agent=agent, budget=budget))
    with interruptible(interrupts):
        code = run.whole(choices, web=web, agent=agent, budget=budget)
    if code:
        raise typer.Exit(code)


def _elsewhere(choices: Choices, port: int) -> str:
    """How the server comes to another port for good."""
    if choices.config is not None or (change_port.is_settled(choices) and not change_port.has_one_place(choices)):
        return (
            f"Write another port, such as {port}, under `listen:` in {choices.config or paths.server_file()} and, "
            f"where the agents use it, under `server:` in {paths.agents_file()}"
        )
    return f"Type `{shlex.join(('culture', 'up', *replace(choices, port=port).arguments))}`"


def _refuse_port(choices: Choices) -> None:
    """Say why the server cannot be at the port that was chosen; 0 is any, also the one it has."""
    if not choices.port:
        return
    name = choices.server_name()
    note = pid_file.running(name)
    ports = [port for _, port in note.addresses] if note is not None else []
    if ports and choices.port not in ports:
        there = " and ".join(map(str, ports))
        again = shlex.join(("culture", "up", *choices.arguments))
        fail(f"{name} is up already, at port {there}. To have it at {choices.port}: `culture down`, then `{again}`")
    if note is None and change_port.is_settled(choices) and not change_port.has_one_place(choices):
        fail(
            f"{paths.server_file()} names several addresses, and with --port there would be one. Write the port under "
            f"`listen:` there and, for the agents, under `server:` in {paths.agents_file()}; then type `culture up`",
            Exit.USAGE,
        )


class UpRun:
    """One `culture up`: what it begins, and how that ends."""

    def __init__(
        self,
        settings: ServerConfig,
        person: Account | None,
        in_background: bool,
        launched: ChildProcesses,
        interrupts: Interrupts | None = None,
    ) -> None:
        self._interrupts = interrupts or Interrupts()
        self._settings = settings
        self._person = person
        self._in_background = in_background
        self._launched = launched
        self._in_terminal = has_terminal()
        self._wrong = False
        self._before = holders(settings.name)

    def whole(self, choices: Choices, *, web: bool, agent: bool, budget: float | None) -> int:
        """From the start of the server to its end, or until it can go on alone; the exit code."""
        try:
            self._start_server(choices)
            server = ServerRestart(self._settings.name, choices, self._launched, self._interrupts)
            self.greet("is up")
            code = self.begin_beside(web=web, agent=agent, budget=budget)
            if self._in_background:
                return code
            nick = nick_of(self._person, self._settings) if self._person is not None else None
            stay(self._settings, self._in_terminal, nick)
            while (why := server.death()) is not None:
                if not server.restart(why):
                    self._end()
                    return Exit.FAILED
                stay(self._settings, self._in_terminal, nick)
        except KeyboardInterrupt:
            say("")
        except OSError:
            # A terminal that closes may tell another program alone; then what is said here has nowhere to go.
            if not self._in_background and self._launched.all():
                self._end()
            raise
        return self._end()

    def greet(self, how: str) -> None:
        """Say that it is there."""
        note = pid_file.running(self._settings.name)
        pid = f" (pid {note.pid})" if note else ""
        stops = "`culture down` stops it" if self._in_background else "Ctrl-C stops it"
        typer.echo(f"{self._settings.name} {how}{pid}; {stops}.\n")

    def begin_beside(self, *, web: bool, agent: bool, budget: float | None) -> int:
        """Begin what belongs to the server, and say how to reach everything; the exit code."""
        note = pid_file.running(self._settings.name)
        addresses = note.addresses if note else ()
        beside_us = ThreadPoolExecutor(1)
        try:
            # It takes a moment, in which the agents can begin as well.
            page = beside_us.submit(web_page.begin, self._settings, self._launched.launch) if web else None
            typer.echo(how_to_connect(self._settings, addresses, self._person))
            starting = self._begin_agents(addresses, budget) if agent else Starting({})
            shown = page is None or web_page.tell(self._settings, self._person, page)
        finally:
            beside_us.shutdown(wait=False)  # whoever interrupts does not wait for the page
        if starting.begun:
            typer.echo()
        absent = starting.wait(lambda nick: typer.echo(f"{nick} is here."))
        self._say_hello([nick for nick in starting.begun if nick not in absent])
        typer.echo(how_to_be_found(), nl=False)
        failed = self._wrong or absent or not shown
        return Exit.FAILED if failed and self._in_background else Exit.DONE

    def _start_server(self, choices: Choices) -> None:
        for listener in taken(self._settings):
            other = free_port(listener.host, listener.port + 1)
            fail(
                f"port {listener.port} of {listener.host} is used by another program. {_elsewhere(choices, other)}, "
                f"or end that program (`ss -ltnp 'sport = :{listener.port}'` shows it)"
            )
        try:
            background.start(self._settings.name, choices.arguments, self._launched.launch)
        except EndedEarly as early:
            typer.echo(early.text, err=True)
            wrong = early.code is Exit.WRONG_CONFIGURATION
            hint = "`culture config check` shows what is wrong." if wrong else "`culture doctor` looks for the reason."
            typer.echo(hint, err=True)
            raise typer.Exit(early.code) from None
        self._write_port_down(choices)

    def _write_port_down(self, choices: Choices) -> None:
        """What starts an agent alone, and looks for what is wrong, reads it in the files."""
        if not choices.port or not change_port.has_one_place(choices):
            return
        files = []
        try:
            for file in change_port.take_over(choices.port):
                typer.echo(f"Wrote {file}: the port is {choices.port} from here on.")
                files.append(file)
        except (ConfigError, OSError) as error:
            typer.echo(f"Port {choices.port} is not written down everywhere: {error}", err=True)
            self._wrong = True
        behind = [nick for nick in daemons.all_running() if belongs(nick, self._settings)] if files else []
        if behind:
            typer.echo(f"Agents that run still look for the old one: `culture restart {' '.join(sorted(behind))}`.")

    def _begin_agents(self, addresses: tuple[tuple[str, int], ...], budget: float | None) -> Starting:
        """Begin to start the agents that do not run."""
        at = plain_listener(self._settings, addresses)
        if at is None:
            typer.echo("\nNo agent is started: it would need an address without TLS, or `server:` in agents.yaml.")
            return Starting({})
        place, folder = UpAgents(self._settings, at), Path.cwd().resolve()
        try:
            added = place.add_for(folder, budget)
            running, missing = place.running(), place.to_start()
        except (ConfigError, OSError) as error:
            typer.echo(f"\nNo agent is started: {error}\nCorrect the file, then type `culture up` again.", err=True)
            self._wrong = True
            return Starting({})
        if not running and not missing:
            self._nobody_is_ours()
        for nick in running:
            typer.echo(f"{nick} is running already.")
        if added is not None and running:
            typer.echo(f"{added} joins them.")
        return begin(missing, at, self._launched.launch)

    def _nobody_is_ours(self) -> None:
        """Say why there is no agent, where agents.yaml has those of another server alone."""
        others = sorted({owner(agent.nick) for agent in load().agents} - {self._settings.account_prefix})
        if others:
            typer.echo(
                f"\nNo agent is started: those of {paths.agents_file()} belong to {', '.join(others)}. A second server "
                f"has a folder of its own:\n  CULTURE_HOME=~/{self._settings.short_name} culture up --name "
                f"{self._settings.short_name}"
            )

    def _say_hello(self, here: list[str]) -> None:
        """What to say to one of those who came; however many there are, it is told once."""
        if not here:
            return
        folder, channel = Path.cwd().resolve(), next(iter(self._settings.channels), WellKnownChannel.GENERAL.value)
        of_folder = (agent.nick for agent in load().agents if agent.nick in here and agent.directory == folder)
        nick = next(of_folder, here[0])
        typer.echo(f"Say `@{nick} hello` in {channel}, or type `culture ask {nick} hello`.")

    def _end(self) -> int:
        """End what belongs to the server, and it last."""
        end = Shutdown()
        end.early(self._launched.all(), self._settings.name)
        end.agents(nick for nick in everybody() if belongs(nick, self._settings) and not self._ran_before(nick))
        page = process.running(self._settings.name)
        if page is not None and page.pid not in self._before:
            end.page(self._settings.name)
        end.server(self._settings.name)
        end.look()
        for line in end.left:
            say(f"culture: still running: {line}", err=True)
        if not any(line.startswith(f"{self._settings.name} ") for line in end.ended):
            say(f"{self._settings.name} has stopped.")
        return Exit.FAILED if end.left else Exit.DONE

    def _ran_before(self, nick: str) -> bool:
        """Whether an agent is none that was begun here, which is told."""
        note = daemons.running(nick)
        is_older = note is not None and note.pid in self._before
        if is_older:
            say(f"{nick} ran before, and goes on; `culture stop {nick}` ends it.")
        return is_older
