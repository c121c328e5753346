"""``culture status``: what the agents are doing."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Annotated, Any

import typer

from culture.cli.agent_access import open_to_agents
from culture.cli.agents.agent_report import STOPPED, report
from culture.cli.agents.report_table import table
from culture.cli.agents.select_agents import AgentsFile, load, picked
from culture.cli.agents.sudo import delegated_report
from culture.cli.output import as_json as in_json
from culture.clients.shared import pidfile
from culture.config.agents import AgentConfig, AgentsConfig
from culture.protocol.vocabulary import Exit

_AT_ONCE = 16
_UNKNOWN = "?"


@open_to_agents
def status(
    nick: Annotated[
        str | None, typer.Argument(metavar="NICK", show_default=False, help="Only this one; all without it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything there is to know, for programs.")] = False,
    everywhere: Annotated[
        bool, typer.Option("--all", help="The agents of the whole mesh, as its ledger has them.")
    ] = False,
    config: AgentsFile = None,
) -> None:
    """Show what the agents are doing, and what is waiting for them.

    The daemons are asked, not the agents: it costs nothing, and nothing of it
    appears in a channel. With a NICK the exit code is 1 when it does not run.
    """
    reports = _everywhere(nick) if everywhere else _reports(load(config), nick)
    if as_json:
        typer.echo(in_json(reports if nick is None else reports[0]))
    elif reports:
        typer.echo(table(reports, datetime.now().astimezone()))
    else:
        typer.echo("There are no agents. Add one with `culture agents add <name>`.")
    if nick is not None and reports[0]["state"] == STOPPED:
        raise typer.Exit(Exit.FAILED)


def _everywhere(nick: str | None) -> list[dict[str, Any]]:
    from culture.cli.agents import irc_session, mesh_status  # for this alone

    found = irc_session.run(mesh_status.reports(irc_session.person(None)))
    if nick is None:
        return found
    [name] = picked([each["nick"] for each in found], [nick], everyone=False)
    return [each for each in found if each["nick"] == name]


def _reports(settings: AgentsConfig, nick: str | None) -> list[dict[str, Any]]:
    """Of those in the file, and of those that run though they are no longer in it."""
    known = {agent.nick: agent for agent in settings.agents}
    names = list(dict.fromkeys([*known, *pidfile.all_running()]))
    if nick is not None:
        names = picked(names, [nick], everyone=False)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda name: _report(name, known.get(name)), names))


def _report(nick: str, agent: AgentConfig | None) -> dict[str, Any]:
    if agent is None:
        return report(nick, _UNKNOWN)
    theirs = delegated_report(agent) if agent.user is not None else None
    return theirs or report(nick, agent.agent, str(agent.directory))
