"""``culture agents``: entries of agents.yaml; ``culture backends``: installed backends."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from culture.cli import output
from culture.cli.agent_access import open_to_agents
from culture.cli.agents import agent_login, agents_yaml, service
from culture.cli.agents.agents_yaml import SandboxOption, choose_sandbox
from culture.cli.agents.lifecycle import stop_one
from culture.cli.agents.select_agents import AgentsFile, Nick, load, select_nicks
from culture.cli.local_servers import own_address
from culture.cli.options import AsJson
from culture.cli.output import as_json as in_json
from culture.cli.output import confirm, fail
from culture.clients.shared.backends import NoBackend, backend, found, installed
from culture.clients.shared.programs import Found
from culture.clients.shared.turn import Backend
from culture.config import paths
from culture.config.agents import AgentConfig, AgentsConfig
from culture.protocol.names import fold, owner, short_name, valid_nick
from culture.protocol.vocabulary import Exit, WellKnownChannel

group = typer.Typer(help="Manage the agents of this machine.", no_args_is_help=True)


@group.command()
def add(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", show_default=False, help="Name, for example build; its nick is then spark-build."
        ),
    ],
    kind: Annotated[str, typer.Option("--backend", metavar="BACKEND", help="Backend that runs it.")] = "claude",
    directory: Annotated[Path, typer.Option("--directory", metavar="FOLDER", help="Folder to work in.")] = Path("."),
    channel: Annotated[
        list[str] | None,
        typer.Option("--channel", metavar="CHANNEL", help="Channel to join; may be repeated.  [default: #general]"),
    ] = None,
    sandbox: SandboxOption = None,
) -> None:
    """Add an agent to ~/.culture/agents.yaml.

    The file is created if needed. Its other entries and comments are kept.
    """
    try:
        kind_of_agent = backend(kind)
    except NoBackend as unknown:
        fail(str(unknown), Exit.USAGE)
    folder = directory.expanduser().absolute().resolve()
    if not folder.is_dir():
        fail(f"{folder} is not a folder: create it first")
    settings = load()
    server = settings.server if "server" in settings.model_fields_set else own_address()
    nick = _nick(name, settings)
    if not valid_nick(nick):
        fail(f"{name!r} cannot be a name: letters, digits, - and _, no spaces; for example build", Exit.USAGE)
    _refuse_second(nick, settings)
    sandbox_kind = choose_sandbox(sandbox)
    further = {"sandbox": sandbox_kind.value} if sandbox_kind is not None else {}
    entry = agents_yaml.NewAgent(nick, kind, folder, tuple(channel or [WellKnownChannel.GENERAL.value]), further)
    file = agents_yaml.add(entry, server)
    typer.echo(f"{entry.nick} ({kind}) is in {file}. Start it with `culture start {entry.nick}`.")
    if kind_of_agent.skill_folders and not kind_of_agent.loads_skill:
        typer.echo(f"Run once: `culture skills install {kind}` teaches {kind} to use IRC.")


@group.command()
def remove(
    nick: Nick, yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False
) -> None:
    """Remove an agent from ~/.culture/agents.yaml.

    The agent is stopped, and its account on this machine's server is revoked. Its folder, its messages and the rest
    of the file are kept.
    """
    settings = load()
    [name] = select_nicks([agent.nick for agent in settings.agents], [nick], everyone=False)
    for system in (False, True):
        if (service.unit_folder(system) / service.agent_unit(name)).exists():
            fail(f"systemd runs {name}: `culture service uninstall {name}{' --system' * system}` first")
    confirm(f"Stop {name}, remove it from agents.yaml and revoke its account?", yes)
    if stop_one(name):
        fail(f"{name} has not stopped, and stays in agents.yaml")
    agent = settings.agent(name)
    file = agents_yaml.remove(name)
    typer.echo(f"{name} is no longer in {file}.")
    if agent_login.revoke_account(name, settings.server):
        typer.echo(f"Its account is revoked; `culture account passwd {name}` activates it again.")
    else:
        host = settings.server.host
        typer.echo(f"Its account, if it has one, is on {host}: type there `culture account revoke {name}`.")
    if agent is not None:
        typer.echo(f"Its messages are kept in {paths.inbox_file(name)}, its work in {agent.directory}.")


@group.command("list")
@open_to_agents
def list_agents(config: AgentsFile = None, as_json: AsJson = False) -> None:
    """List the agents of agents.yaml; `culture status` shows what they do."""
    agents = load(config).agents
    if as_json:
        typer.echo(in_json([_entry(agent) for agent in agents]))
        return
    if not agents:
        typer.echo("There are no agents. Add one with `culture agents add <name>`.")
    width = max((len(agent.nick) for agent in agents), default=0)
    for agent in agents:
        who = f"  as {agent.user}" if agent.user else ""
        typer.echo(f"{agent.nick:<{width}}  {agent.agent:<8}  {agent.directory}  {' '.join(agent.channels)}{who}")


def _entry(agent: AgentConfig) -> dict[str, object]:
    return {
        "nick": agent.nick,
        "backend": agent.agent,
        "directory": str(agent.directory),
        "channels": list(agent.channels),
        "user": agent.user,
    }


def _refuse_second(nick: str, settings: AgentsConfig) -> None:
    """End the command with an error if agents.yaml already has an agent with this nick."""
    there = next((agent.nick for agent in settings.agents if fold(agent.nick) == fold(nick)), None)
    if there is not None:
        fail(
            f"{there} is in {paths.agents_file()} already: `culture start {there}` starts it. To add it anew, type "
            f"`culture agents remove {there}` first"
        )


def _nick(name: str, settings: AgentsConfig) -> str:
    """Return the nick of an agent: ``name`` with the server's name before it (``spark-build``).

    A name that has the prefix already is returned unchanged.
    """
    first = next((owner(agent.nick) for agent in settings.agents), "")
    prefix = short_name(settings.server.name or "") or first or short_name(own_address().name or "")
    return name if not prefix or fold(owner(name)) == fold(prefix) else f"{prefix}-{name}"


_HEADINGS = ("BACKEND", "PROGRAM", "VERSION", "LOGIN", "TO TYPE")
_NOTHING = "-"


@open_to_agents
def backends(
    name: Annotated[
        str | None, typer.Argument(metavar="BACKEND", show_default=False, help="Show only this backend.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the kinds of agents: what is installed, whether it is logged in, and what to type.

    No model is asked and nothing is started. Of a key or token only the name of its variable or file is shown. With a
    BACKEND the exit code is 1 when something it needs is missing.
    """
    rows = [(kind.name, each) for kind in _chosen(name) for each in _programs(kind)]
    if as_json:
        typer.echo(in_json([_fields(*row) for row in rows]))
    else:
        typer.echo(_table([_HEADINGS, *(_row(*row) for row in rows)]))
    if name is not None and not any(each.ready for _, each in rows):
        raise typer.Exit(Exit.FAILED)


def _chosen(name: str | None) -> list[Backend]:
    if name is None:
        return [kind for _, kind in sorted(installed().items())]
    try:
        return [backend(name)]
    except NoBackend as unknown:
        fail(str(unknown), Exit.USAGE)


def _programs(kind: Backend) -> Sequence[Found]:
    """Return the programs found for a backend.

    If there are none, or the search fails, the result is one entry with the backend's name that says so.
    """
    try:
        return found(kind) or (Found(kind.name),)
    except Exception as error:
        return (Found(kind.name, remedy=f"what is installed could not be found out: {type(error).__name__}"),)


def _fields(name: str, program: Found) -> dict[str, object]:
    return {"backend": name, **asdict(program), "ready": program.ready, "untried": program.untried}


def _row(name: str, program: Found) -> tuple[str, ...]:
    if program.version is None:
        return name, program.program, "not installed", _NOTHING, program.remedy or _NOTHING
    version = f"{program.version} (newer than tried)" if program.untried else program.version
    login = f"{program.login} ({program.how})" if program.how else program.login.value
    return name, program.program, version, login, program.remedy or _NOTHING


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(output.clean(line.rstrip()) for line in lines)
