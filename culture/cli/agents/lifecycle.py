"""``culture start``, ``stop``, ``restart``, ``pause``, ``resume``: agents as processes."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from culture.cli.agents import agent_login, daemon_launch
from culture.cli.agents.daemon_launch import DaemonNotStarted
from culture.cli.agents.select_agents import (
    AgentsFile,
    Everyone,
    Nick,
    Nicks,
    configured_agents,
    load,
    select_agents,
    select_nicks,
)
from culture.cli.agents.sudo import WrongUser, other_user, run_as_owner
from culture.cli.humanize import counted
from culture.cli.output import fail
from culture.cli.server.background import check_server
from culture.clients.shared import ending, pidfile
from culture.clients.shared.ending import Ended
from culture.clients.shared.skill.call import CallFailed, call
from culture.config import paths
from culture.config.agents import AgentConfig, AgentsConfig
from culture.config.errors import ConfigError
from culture.protocol.vocabulary import Exit

AT_ONCE = max(4, 2 * (os.cpu_count() or 1))
"""Number of daemons that start in parallel; more would only wait for each other."""


def start(
    nicks: Nicks = None,
    everyone: Everyone = False,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Run one agent in this terminal; systemd uses this.")
    ] = False,
    config: AgentsFile = None,
) -> None:
    """Start agents, and return when they are ready.

    Each runs in the background as a process of its own, and prints to ~/.culture/log/<nick>.log. If one does not
    start, the others still do.
    """
    if foreground:
        _stay(nicks, everyone, config)
    settings = load(config)
    code = start_all(settings, select_agents(settings, nicks, everyone), config)
    if code:
        raise typer.Exit(code)


def start_all(settings: AgentsConfig, agents: Iterable[AgentConfig], file: Path | None = None) -> int:
    """Start those of the agents that do not run, print the result of each, return the exit code.

    ``file``: agents.yaml, if not the usual one.
    """
    ours, theirs, codes = _by_user(agents)
    missing = [agent for agent in ours if not _is_running(agent.nick)]
    _check_server(settings, [*missing, *theirs])
    able = [agent.nick for agent in missing if _prepare(agent.nick, settings)]
    handed_over = [agent for agent in theirs if _prepare(agent.nick, settings)]
    if len(able) + len(handed_over) < len(missing) + len(theirs):
        codes.append(Exit.WRONG_CONFIGURATION)
    codes += run_parallel(lambda nick: _start(nick, file), able)
    codes += [_hand_over([agent], file) for agent in handed_over]
    return max(codes, key=_severity, default=Exit.DONE)


def _by_user(agents: Iterable[AgentConfig]) -> tuple[list[AgentConfig], list[AgentConfig], list[int]]:
    """Split agents into those that run as the current user and those that run as another user.

    The third list has the exit code 78 (wrong configuration) for each agent whose user is wrong; the reason is printed.
    """
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
    from culture.cli.agents.sudo import hand_over

    user = other_user(agents[0])
    assert user is not None
    try:
        return hand_over(user, agents, file)
    except WrongUser as wrong:
        typer.echo(f"culture: {agents[0].nick} was not started: {wrong}", err=True)
        return Exit.FAILED


def _prepare(nick: str, settings: AgentsConfig) -> bool:
    """Make sure that an agent can log in; if it cannot, print why and return False."""
    try:
        hint = agent_login.prepare_login(nick, settings.server)
    except agent_login.NoLogin as wrong:
        typer.echo(f"culture: {nick} was not started: {wrong}", err=True)
        return False
    if hint:
        typer.echo(hint, err=True)
    return True


def run_parallel(do: Callable[[str], int], nicks: Iterable[str]) -> list[int]:
    """Call ``do`` for several nicks in parallel; return its exit codes in the same order."""
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
    from culture.clients.shared.main import run  # the daemon itself, which only this needs

    raise typer.Exit(run(nicks[0], file))


def _prepare_one(nick: str, file: Path | None) -> None:
    """Make sure that an agent that is to run in this terminal can log in; else end the command.

    ``file``: agents.yaml, None for the usual one. An invalid agents.yaml is ignored, since the daemon reports it.
    """
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
    """End the command if no server answers; do nothing if no agents are ``missing``.

    ``missing``: the agents that are to be started.
    """
    if missing:
        check_server(settings.server)


def _severity(code: int) -> int:
    """Return a rank to compare exit codes by: 0 success, 1 temporary, 2 permanent failure."""
    return {Exit.DONE.value: 0, Exit.FAILED.value: 1}.get(code, 2)


def stop(nicks: Nicks = None, everyone: Everyone = False) -> None:
    """Stop agents, and every process they started.

    Unanswered messages are kept and delivered at the next start.
    """
    # Agents of agents.yaml that do not run may have left processes behind.
    names = select_nicks([*pidfile.all_running(), *configured_agents()], nicks, everyone)
    if not names:
        typer.echo("No agent is running.")
    code = max(run_parallel(stop_one, names), default=Exit.DONE.value)
    if code:
        raise typer.Exit(code)


def restart(nicks: Nicks = None, everyone: Everyone = False, config: AgentsFile = None) -> None:
    """Stop agents and start them again.

    agents.yaml is checked before anything is stopped.
    """
    settings = load(config)
    agents = select_agents(settings, nicks, everyone)
    for agent in agents:
        if agent.user is None and not agent.directory.is_dir():
            text = f"{agent.nick}: the directory {agent.directory} is not there; make it, or correct it"
            fail(f"{text}. Nothing was stopped", Exit.WRONG_CONFIGURATION)
    if max(run_parallel(stop_one, [agent.nick for agent in agents])):
        fail("not all have stopped; nothing was started")
    code = start_all(settings, agents, config)
    if code:
        raise typer.Exit(code)


def stop_one(nick: str) -> int:
    """Stop an agent and all its processes, print the result, and return the exit code."""
    code = run_as_owner(nick, "stop")
    if code is not None:
        return code
    how, left = ending.end_now(nick)
    also = f" (ended {counted(left, 'process', 'processes')} that it had left behind)" if left else ""
    if how is Ended.STAYS:
        typer.echo(f"culture: {nick} {how.value}; see {paths.log_file(nick)}", err=True)
        return Exit.FAILED
    typer.echo(f"{nick} {how.value}.{also}")
    return Exit.DONE


_PATIENCE = 10.0


def pause(nick: Nick) -> None:
    """Pause an agent.

    A turn that has begun is finished. Later messages are kept, and their senders are told.
    """
    name = _tell(nick, "pause")
    typer.echo(f"{name} is paused; messages to it wait. `culture resume {name}` continues.")


def resume(
    nick: Nick,
    reason: Annotated[str, typer.Option(help="Reason; the agent reads it with its next prompt.")] = "",
) -> None:
    """Resume an agent that was paused, or parked after too many crashes."""
    typer.echo(f"{_tell(nick, 'resume', reason)} goes on.")


def _tell(nick: str, word: str, reason: str = "") -> str:
    [name] = select_nicks([*configured_agents(), *pidfile.all_running()], [nick], everyone=False)
    code = run_as_owner(name, word, *([f"--reason={reason}"] if reason else []))
    if code is not None:
        raise typer.Exit(code)
    try:
        call(name, word, {"reason": reason} if reason else {}, patience=_PATIENCE)
    except CallFailed as failure:
        fail(str(failure))
    return name
