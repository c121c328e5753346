"""``culture stop`` and ``culture restart``."""

import typer

from culture.cli.agents.select_agents import AgentsFile, Everyone, Nicks, chosen, listed, load, picked
from culture.cli.agents.start import at_once, start_all
from culture.cli.agents.sudo import delegated
from culture.cli.humanize import counted
from culture.cli.output import fail
from culture.clients.shared import ending, pidfile
from culture.clients.shared.ending import Ended
from culture.config import paths
from culture.protocol.vocabulary import Exit


def stop(nicks: Nicks = None, everyone: Everyone = False) -> None:
    """Stop agents, and everything they started.

    What was not answered yet is kept, and comes again at the next start.
    """
    # Those that run, and those of agents.yaml, which may have left something behind.
    names = picked([*pidfile.all_running(), *listed()], nicks, everyone)
    if not names:
        typer.echo("No agent is running.")
    code = max(at_once(stop_one, names), default=Exit.DONE.value)
    if code:
        raise typer.Exit(code)


def restart(nicks: Nicks = None, everyone: Everyone = False, config: AgentsFile = None) -> None:
    """Stop agents and start them again.

    What is wrong in agents.yaml is found before anything is stopped.
    """
    settings = load(config)
    agents = chosen(settings, nicks, everyone)
    for agent in agents:
        if agent.user is None and not agent.directory.is_dir():
            text = f"{agent.nick}: the directory {agent.directory} is not there; make it, or correct it"
            fail(f"{text}. Nothing was stopped", Exit.WRONG_CONFIGURATION)
    if max(at_once(stop_one, [agent.nick for agent in agents])):
        fail("not all have stopped; nothing was started")
    code = start_all(settings, agents, config)
    if code:
        raise typer.Exit(code)


def stop_one(nick: str) -> int:
    """Stop an agent and say how that went; the exit code."""
    code = delegated(nick, "stop")
    if code is not None:
        return code
    how, left = ending.end_now(nick)
    also = f" (ended {counted(left, 'process', 'processes')} that it had left behind)" if left else ""
    if how is Ended.STAYS:
        typer.echo(f"culture: {nick} {how.value}; see {paths.log_file(nick)}", err=True)
        return Exit.FAILED
    typer.echo(f"{nick} {how.value}.{also}")
    return Exit.DONE
