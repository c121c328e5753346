"""``culture agents``: which agents there are."""

from pathlib import Path
from typing import Annotated

import typer

from culture.cli.agent_access import open_to_agents
from culture.cli.agents import agent_login, agents_yaml, service
from culture.cli.agents.local_servers import own_address
from culture.cli.agents.sandbox_choice import SandboxOption, choose_sandbox
from culture.cli.agents.select_agents import AgentsFile, Nick, load, picked
from culture.cli.agents.stop import stop_one
from culture.cli.options import AsJson
from culture.cli.output import as_json as in_json
from culture.cli.output import confirm, fail
from culture.clients.shared.backends import NoBackend, backend
from culture.config import paths
from culture.config.agents import AgentConfig, AgentsConfig
from culture.protocol.names import fold, owner, short_name, valid_nick
from culture.protocol.vocabulary import Exit, WellKnownChannel

group = typer.Typer(help="Say which agents there are on this machine.", no_args_is_help=True)


@group.command()
def add(
    name: Annotated[
        str, typer.Argument(metavar="NAME", show_default=False, help="Its name, for example build: spark-build.")
    ],
    kind: Annotated[str, typer.Option("--backend", metavar="BACKEND", help="What runs it.")] = "claude",
    directory: Annotated[Path, typer.Option("--directory", metavar="FOLDER", help="Where it works.")] = Path("."),
    channel: Annotated[
        list[str] | None,
        typer.Option("--channel", metavar="CHANNEL", help="A channel to be in; may be repeated.  [default: #general]"),
    ] = None,
    sandbox: SandboxOption = None,
) -> None:
    """Add an agent to ~/.culture/agents.yaml.

    The first one makes the file. What else is in it stays as it is, comments included.
    """
    try:
        known = backend(kind)
    except NoBackend as unknown:
        fail(str(unknown), Exit.USAGE)
    folder = directory.expanduser().absolute().resolve()
    if not folder.is_dir():
        fail(f"{folder} is no folder: make it first")
    settings = load()
    server = settings.server if "server" in settings.model_fields_set else own_address()
    nick = _nick(name, settings)
    if not valid_nick(nick):
        fail(f"{name!r} cannot be a name: letters, digits, - and _, no spaces; for example build", Exit.USAGE)
    _refuse_second(nick, settings)
    chosen = choose_sandbox(sandbox)
    further = {"sandbox": chosen.value} if chosen is not None else {}
    entry = agents_yaml.NewAgent(nick, kind, folder, tuple(channel or [WellKnownChannel.GENERAL.value]), further)
    file = agents_yaml.add(entry, server)
    typer.echo(f"{entry.nick} ({kind}) is in {file}. Start it with `culture start {entry.nick}`.")
    if known.skill_folders and not known.loads_skill:
        typer.echo(f"Once for all of them: `culture skills install {kind}` teaches {kind} to use IRC.")


@group.command()
def remove(
    nick: Nick, yes: Annotated[bool, typer.Option("--yes", help="Do not ask before it is taken out.")] = False
) -> None:
    """Take an agent out of ~/.culture/agents.yaml.

    It is stopped, and its account on this machine's server is revoked. Its folder and what it
    heard and said stay, and so does what else is in the file.
    """
    settings = load()
    [name] = picked([agent.nick for agent in settings.agents], [nick], everyone=False)
    for system in (False, True):
        if (service.unit_folder(system) / service.agent_unit(name)).exists():
            fail(f"systemd runs {name}: `culture service uninstall {name}{' --system' * system}` first")
    confirm(f"Stop {name}, take it out of agents.yaml and revoke its account?", yes)
    if stop_one(name):
        fail(f"{name} has not stopped, and stays in agents.yaml")
    agent = settings.agent(name)
    file = agents_yaml.remove(name)
    typer.echo(f"{name} is no longer in {file}.")
    if agent_login.withdraw(name, settings.server):
        typer.echo(f"Its account is revoked; `culture account passwd {name}` would let it in again.")
    else:
        host = settings.server.host
        typer.echo(f"Its account, if it has one, is on {host}: type there `culture account revoke {name}`.")
    if agent is not None:
        typer.echo(f"What it heard and said stays in {paths.inbox_file(name)}, its work in {agent.directory}.")


@group.command("list")
@open_to_agents
def list_agents(config: AgentsFile = None, as_json: AsJson = False) -> None:
    """Show the agents of agents.yaml; `culture status` shows what they do."""
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
    """Before anything is written: what the file with both would say is of a line that nobody finds in it."""
    there = next((agent.nick for agent in settings.agents if fold(agent.nick) == fold(nick)), None)
    if there is not None:
        fail(
            f"{there} is in {paths.agents_file()} already: `culture start {there}` starts it. To add it anew, type "
            f"`culture agents remove {there}` first"
        )


def _nick(name: str, settings: AgentsConfig) -> str:
    """The name with the server's prefix, unless it has it already."""
    first = next((owner(agent.nick) for agent in settings.agents), "")
    prefix = short_name(settings.server.name or "") or first or short_name(own_address().name or "")
    return name if not prefix or fold(owner(name)) == fold(prefix) else f"{prefix}-{name}"
