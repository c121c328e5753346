"""``culture start``: agents, each in a process of its own."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from culture.cli.agents import agent_login, daemon_launch
from culture.cli.agents.daemon_launch import DaemonNotStarted
from culture.cli.agents.select_agents import AgentsFile, Everyone, Nicks, chosen, load
from culture.cli.agents.sudo import WrongUser, other_user
from culture.cli.output import fail
from culture.cli.server.background import check_server
from culture.clients.shared import pidfile
from culture.config.agents import AgentConfig, AgentsConfig
from culture.config.errors import ConfigError
from culture.protocol.vocabulary import Exit

AT_ONCE = max(4, 2 * (os.cpu_count() or 1))
"""So many daemons start at the same time; more would only wait for each other."""


def start(
    nicks: Nicks = None,
    everyone: Everyone = False,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay in this terminal (one agent); this is what systemd runs.")
    ] = False,
    config: AgentsFile = None,
) -> None:
    """Start agents and return when they are there.

    Each goes on in the background as a process of its own; what it prints is in
    ~/.culture/log/<nick>.log. One that does not start leaves the others.
    """
    if foreground:
        _stay(nicks, everyone, config)
    settings = load(config)
    code = start_all(settings, chosen(settings, nicks, everyone), config)
    if code:
        raise typer.Exit(code)


def start_all(settings: AgentsConfig, agents: Iterable[AgentConfig], file: Path | None = None) -> int:
    """Start these, and say of each how it went; the exit code."""
    ours, theirs, codes = _by_user(agents)
    missing = [agent for agent in ours if not _is_running(agent.nick)]
    _check_server(settings, [*missing, *theirs])
    able = [agent.nick for agent in missing if _prepare(agent.nick, settings)]
    given = [agent for agent in theirs if _prepare(agent.nick, settings)]
    if len(able) + len(given) < len(missing) + len(theirs):
        codes.append(Exit.WRONG_CONFIGURATION)
    codes += at_once(lambda nick: _start(nick, file), able)
    codes += [_hand_over([agent], file) for agent in given]
    return max(codes, key=_severity, default=Exit.DONE)


def _by_user(agents: Iterable[AgentConfig]) -> tuple[list[AgentConfig], list[AgentConfig], list[int]]:
    """Those that run as us, and those that run as somebody else; 78 for each that cannot."""
    ours: list[AgentConfig] = []
    theirs: list[AgentConfig] = []
    codes: list[int] = []
    for agent in agents:
        try:
            (ours if other_user(agent) is None else theirs).append(agent)
        except WrongUser as wrong:
            typer.echo(f"culture: {wrong}", err=True)
            codes.append(Exit.WRONG_CONFIGURATION.value)
    return ours, theirs, codes


def _hand_over(agents: list[AgentConfig], file: Path | None) -> int:
    from culture.cli.agents.sudo_handover import hand_over

    user = other_user(agents[0])
    assert user is not None
    try:
        return hand_over(user, agents, file)
    except WrongUser as wrong:
        typer.echo(f"culture: {agents[0].nick} was not started: {wrong}", err=True)
        return Exit.FAILED


def _prepare(nick: str, settings: AgentsConfig) -> bool:
    """See to the agent's account; False when it cannot have one."""
    try:
        hint = agent_login.prepare(nick, settings.server)
    except agent_login.NoLogin as wrong:
        typer.echo(f"culture: {nick} was not started: {wrong}", err=True)
        return False
    if hint:
        typer.echo(hint, err=True)
    return True


def at_once(do: Callable[[str], int], nicks: Iterable[str]) -> list[int]:
    """Do something for several agents, a few at the same time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(do, nicks))


def _start(nick: str, file: Path | None) -> int:
    try:
        note = daemon_launch.start(nick, file)
    except DaemonNotStarted as failure:
        typer.echo(f"culture: {failure}", err=True)
        return Exit.WRONG_CONFIGURATION if failure.code == Exit.WRONG_CONFIGURATION else Exit.FAILED
    typer.echo(f"{nick} is running (pid {note.pid}).")
    return Exit.DONE


def _stay(nicks: list[str] | None, everyone: bool, file: Path | None) -> None:
    if everyone or not nicks or len(nicks) != 1:
        fail("--foreground runs one agent: say which", Exit.USAGE)
    _prepare_one(nicks[0], file)
    from culture.clients.shared.main import run  # the daemon itself, which the other commands do without

    raise typer.Exit(run(nicks[0], file))


def _prepare_one(nick: str, file: Path | None) -> None:
    """The account; what is wrong with the file the daemon says by itself."""
    try:
        settings = load(file)
    except ConfigError:
        return
    agent = settings.agent(nick)
    if agent is None:
        return
    try:
        if other_user(agent) is not None:
            fail(f"{agent.nick} runs as {agent.user}: let systemd start it as that user", Exit.WRONG_CONFIGURATION)
    except WrongUser as wrong:
        fail(str(wrong), Exit.WRONG_CONFIGURATION)
    if not _prepare(agent.nick, settings):
        raise typer.Exit(Exit.WRONG_CONFIGURATION)


def _is_running(nick: str) -> bool:
    note = pidfile.running(nick)
    if note is not None:
        typer.echo(f"{nick} is running already (pid {note.pid}).")
    return note is not None


def _check_server(settings: AgentsConfig, missing: list[AgentConfig]) -> None:
    """Nobody has to wait to hear that there is no server."""
    if missing:
        check_server(settings.server)


def _severity(code: int) -> int:
    """What went wrong for good counts more than what may get better."""
    return {Exit.DONE.value: 0, Exit.FAILED.value: 1}.get(code, 2)
