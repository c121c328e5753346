"""``culture up`` and ``culture down``: starts and stops everything on this machine."""

import shlex
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from culture.cli import output
from culture.cli.agents.select_agents import load
from culture.cli.local_servers import how_to_connect, nick_of, path_hint, plain_listener, with_running_options
from culture.cli.options import Choices, ConfigFile, DataDir, Host, Name, Port
from culture.cli.output import fail
from culture.cli.server import background, pid_file
from culture.cli.up import first_run
from culture.cli.up.agents import Starting, UpAgents, belongs, launch_agents
from culture.cli.up.first_run import ensure_own_account, free_port, is_free, used_listeners, write_first_config
from culture.cli.up.foreground import ServerRestart, has_terminal, interruptible, stay_in_terminal
from culture.cli.up.shutdown import Shutdown, everybody, holders, say
from culture.cli.web import process
from culture.clients.shared import pidfile as daemons
from culture.config import paths
from culture.config.errors import ConfigError
from culture.config.model import ServerConfig
from culture.lib.process.background import EndedEarly
from culture.lib.process.children import ChildProcesses, Interrupts, Launch
from culture.protocol.names import owner
from culture.protocol.vocabulary import Exit, WellKnownChannel
from culture.server.auth.accounts import Account
from culture.server.errors import StartError
from culture.web.login_links import MINUTES


def up(
    config: ConfigFile = None,
    name: Name = None,
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    agent: Annotated[bool, typer.Option("--agent/--no-agent", help="Start the agents of agents.yaml.")] = True,
    web: Annotated[bool, typer.Option("--web/--no-web", help="Start the web page.")] = True,
    budget: Annotated[
        float | None,
        typer.Option("--budget", metavar="USD", min=0.01, help="Dollars per day for a new agent; else you are asked."),
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Run in the background; `culture down` stops it.")
    ] = False,
) -> None:
    """Start the server, the web page and an agent for this folder, and say how to connect.

    Activity is shown until Ctrl-C, which stops everything. The first run creates ~/.culture with the server's name,
    an account for you, and an agent: Claude, Codex, Copilot or an ACP agent if one is installed and logged in, else a
    guide without a model. In another folder, an agent for that folder is added.
    """
    choices = Choices(config, name, host, port, data_dir)
    is_up = pid_file.running(choices.server_name()) is not None
    if config is None and not is_up:
        write_first_config(choices)
        is_up = pid_file.running(choices.server_name()) is not None
    _refuse_port(choices)
    settings = with_running_options(choices).load().config
    interrupts = Interrupts()
    run = UpRun(settings, ensure_own_account(settings), detach or is_up, ChildProcesses(interrupts.held), interrupts)
    if is_up:
        run.greet("is up already")
        raise typer.Exit(run.begin_beside(web=web, agent=agent, budget=budget))
    with interruptible(interrupts):
        code = run.whole(choices, web=web, agent=agent, budget=budget)
    if code:
        raise typer.Exit(code)


def _elsewhere(choices: Choices, port: int) -> str:
    """Return a sentence for people on how to move the server to another port, such as ``port``.

    ``choices``: the options of the command.
    """
    if choices.config is not None or (first_run.is_own_config(choices) and not first_run.has_single_listener(choices)):
        return (
            f"Write another port, such as {port}, under `listen:` in {choices.config or paths.server_file()} and, "
            f"where the agents use it, under `server:` in {paths.agents_file()}"
        )
    return f"Type `{shlex.join(('culture', 'up', *replace(choices, port=port).arguments))}`"


def _refuse_port(choices: Choices) -> None:
    """End the command if --port contradicts a running server or the file culture.yaml.

    That is if the server runs on another port, or if culture.yaml has several listeners. Nothing is checked without
    --port and for port 0, which means any free port.
    """
    if not choices.port:
        return
    name = choices.server_name()
    note = pid_file.running(name)
    ports = [port for _, port in note.addresses] if note is not None else []
    if ports and choices.port not in ports:
        there = " and ".join(map(str, ports))
        again = shlex.join(("culture", "up", *choices.arguments))
        fail(f"{name} is up already, at port {there}. To move it to {choices.port}: `culture down`, then `{again}`")
    if note is None and first_run.is_own_config(choices) and not first_run.has_single_listener(choices):
        fail(
            f"{paths.server_file()} names several addresses, and --port would replace them by one. "
            f"Write the port under `listen:` there and, for the agents, under `server:` in {paths.agents_file()}; "
            "then type `culture up`",
            Exit.USAGE,
        )


class UpRun:
    """One run of `culture up`: starts everything, stays in the terminal, and stops it again."""

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
        """Start server, web page and agents, stay in the terminal until a signal, and stop them.

        ``choices``: options that select the server. ``web``, ``agent``: whether to start these. ``budget``: dollars a
        day for a new agent. A server that dies is restarted. Returns the exit code.
        """
        try:
            self._start_server(choices)
            server = ServerRestart(self._settings.name, choices, self._launched, self._interrupts)
            self.greet("is up")
            code = self.begin_beside(web=web, agent=agent, budget=budget)
            if self._in_background:
                return code
            nick = nick_of(self._person, self._settings) if self._person is not None else None
            stay_in_terminal(self._settings, self._in_terminal, nick)
            while (why := server.death()) is not None:
                if not server.restart(why):
                    self._end()
                    return Exit.FAILED
                stay_in_terminal(self._settings, self._in_terminal, nick)
        except KeyboardInterrupt:
            say("")
        except OSError:
            # When a terminal closes, perhaps only another program gets a signal; then nothing can be printed here.
            if not self._in_background and self._launched.all():
                self._end()
            raise
        return self._end()

    def greet(self, how: str) -> None:
        """Print the server's name, its new state ``how`` ("is up"), its pid, and how to stop it."""
        note = pid_file.running(self._settings.name)
        pid = f" (pid {note.pid})" if note else ""
        stops = "`culture down` stops it" if self._in_background else "Ctrl-C stops it"
        typer.echo(f"{self._settings.name} {how}{pid}; {stops}.\n")

    def begin_beside(self, *, web: bool, agent: bool, budget: float | None) -> int:
        """Start web page and agents of a running server, print how to connect, return the exit code.

        ``web``, ``agent``: whether to start these. ``budget``: dollars a day for a new agent.
        """
        note = pid_file.running(self._settings.name)
        addresses = note.addresses if note else ()
        beside_us = ThreadPoolExecutor(1)
        try:
            # It takes a moment, in which the agents can start.
            page = beside_us.submit(_begin_web_page, self._settings, self._launched.launch) if web else None
            typer.echo(how_to_connect(self._settings, addresses, self._person))
            starting = self._begin_agents(addresses, budget) if agent else Starting({})
            is_page_up = page is None or _show_web_link(self._settings, self._person, page)
        finally:
            beside_us.shutdown(wait=False)  # an interrupt does not wait for the page
        if starting.begun:
            typer.echo()
        absent = starting.wait(lambda nick: typer.echo(f"{nick} is here."))
        self._say_hello([nick for nick in starting.begun if nick not in absent])
        typer.echo(path_hint(), nl=False)
        failed = self._wrong or absent or not is_page_up
        return Exit.FAILED if failed and self._in_background else Exit.DONE

    def _start_server(self, choices: Choices) -> None:
        for listener in used_listeners(self._settings):
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
        """Write the value of --port into culture.yaml and agents.yaml, for later commands.

        Nothing is written without --port or if culture.yaml has several listeners.
        """
        if not choices.port or not first_run.has_single_listener(choices):
            return
        files = []
        try:
            for file in first_run.write_port(choices.port):
                typer.echo(f"Wrote {file}: the port is {choices.port} from here on.")
                files.append(file)
        except (ConfigError, OSError) as error:
            typer.echo(f"Could not write port {choices.port} into all files: {error}", err=True)
            self._wrong = True
        behind = [nick for nick in daemons.all_running() if belongs(nick, self._settings)] if files else []
        if behind:
            typer.echo(f"Running agents still use the old port: `culture restart {' '.join(sorted(behind))}`.")

    def _begin_agents(self, addresses: tuple[tuple[str, int], ...], budget: float | None) -> Starting:
        """Start the daemons of the server's agents that do not run, and return without waiting.

        ``addresses``: where the server listens. ``budget``: dollars a day for a new agent.
        """
        at = plain_listener(self._settings, addresses)
        if at is None:
            typer.echo("\nNo agent is started: agents need an address without TLS, or `server:` in agents.yaml.")
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
        return launch_agents(missing, at, self._launched.launch)

    def _nobody_is_ours(self) -> None:
        """Print why no agent is started, if all agents of agents.yaml belong to another server."""
        others = sorted({owner(agent.nick) for agent in load().agents} - {self._settings.account_prefix})
        if others:
            typer.echo(
                f"\nNo agent is started: the agents of {paths.agents_file()} belong to {', '.join(others)}. A second "
                f"server has a folder of its own:\n  CULTURE_HOME=~/{self._settings.short_name} culture up --name "
                f"{self._settings.short_name}"
            )

    def _say_hello(self, nicks: list[str]) -> None:
        """Print how to talk to one of the agents ``nicks``, which have started; nothing if empty."""
        if not nicks:
            return
        folder, channel = Path.cwd().resolve(), next(iter(self._settings.channels), WellKnownChannel.GENERAL.value)
        of_folder = (agent.nick for agent in load().agents if agent.nick in nicks and agent.directory == folder)
        nick = next(of_folder, nicks[0])
        typer.echo(f"Say `@{nick} hello` in {channel}, or type `culture ask {nick} hello`.")

    def _end(self) -> int:
        """Stop all processes that this run has started, the server last; return the exit code."""
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
        """Return whether an agent ran before this command began.

        If it did, a line is printed that it keeps running.
        """
        note = daemons.running(nick)
        is_older = note is not None and note.pid in self._before
        if is_older:
            say(f"{nick} was running before, and keeps running; `culture stop {nick}` stops it.")
        return is_older


def down() -> None:
    """Stop everything that runs here: teams, agents, web pages, servers.

    It prints what it stopped, and checks that nothing is left: the exit code is 1 when something is. Unanswered
    messages are kept and delivered at the next start.
    """
    end = Shutdown()
    end.teams()
    end.agents(everybody())
    servers = pid_file.all_running()
    for name in servers:
        end.page(name)
    for name in servers:
        end.server(name)
    end.look()
    end.view()
    if end.left:
        typer.echo("culture: this is still running:", err=True)
        for line in end.left:
            typer.echo(f"  {output.clean(line)}", err=True)
        raise typer.Exit(Exit.FAILED)
    typer.echo("Nothing is left running." if end.ended else "Nothing was running.")


_LAST_LINES = 3


def _begin_web_page(settings: ServerConfig, launch: Launch) -> process.WebNote:
    """Start the web page unless it runs; return what its pid file says once it answers.

    If its port is taken, the next free one is used. ``launch``: the function that starts the process.
    """
    note = process.running(settings.name)
    if note is not None:
        return note
    host, port = settings.web.host, settings.web.port
    free = port if not port or is_free(host, port) else free_port(host, port)
    return process.start(settings.name, ["--name", settings.name, "--port", str(free)], launch)


def _show_web_link(settings: ServerConfig, person: Account | None, page: "Future[process.WebNote]") -> bool:
    """Print the login link of the web page; return False if the page did not start.

    ``page``: result of ``_begin_web_page``. ``person``: account to log in, None if there is none.
    """
    try:
        note = page.result()
    except (EndedEarly, StartError, ConfigError, OSError) as error:
        why = "\n".join(str(error).splitlines()[-_LAST_LINES:])
        typer.echo(f"\nThe web page did not start: {why}\nCorrect that, then type `culture web start`.", err=True)
        return False
    if settings.web.port not in (0, note.port):
        typer.echo(f"\nPort {settings.web.port} is used by another program, so the web page is on {note.port}.")
    if person is None:
        typer.echo(f"\nWeb page: {note.url}; `culture web link ACCOUNT` prints a link that logs somebody in.")
    else:
        typer.echo(
            f"\nWeb page; the link logs you in, once, within {MINUTES} minutes (`culture web link` makes another):"
        )
        typer.echo(f"\n  {process.link(settings, person.name)}")
    return True
