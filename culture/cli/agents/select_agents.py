"""Turns NICK arguments into agents: those of agents.yaml, and daemons that still run."""

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from culture.cli.output import fail
from culture.config import paths
from culture.config.agents import BACKEND_FIELDS, AgentConfig, AgentsConfig
from culture.config.errors import ConfigError
from culture.config.load import load_agents
from culture.protocol.names import fold, is_channel, name_part, nearest
from culture.protocol.vocabulary import Exit

AgentsFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Read this file instead of ~/.culture/agents.yaml.")
]
Nick = Annotated[
    str, typer.Argument(metavar="NICK", show_default=False, help="Agent, for example spark-claude or claude.")
]
Nicks = Annotated[
    list[str] | None,
    typer.Argument(metavar="NICK", show_default=False, help="Agents, for example spark-claude."),
]
Everyone = Annotated[bool, typer.Option("--all", help="All agents of agents.yaml.")]


def load(file: Path | None = None) -> AgentsConfig:
    """Load agents.yaml, or ``file``; ConfigError if it is invalid.

    Only if the file has fields that we do not know are the installed backends asked, since searching them is slow.
    """
    try:
        return load_agents(file).config
    except ConfigError:
        from culture.clients.shared.backends import installed

        fields = {name: kind.fields for name, kind in installed().items()}
        return load_agents(file, {**BACKEND_FIELDS, **fields}).config


def select_agents(config: AgentsConfig, nicks: Sequence[str] | None, everyone: bool) -> list[AgentConfig]:
    """Return the agents that a command line names, with the defaults of agents.yaml filled in.

    ``nicks``: the nicks that were typed. ``everyone``: whether --all was typed. The command ends if no agent is named,
    or one that agents.yaml does not have.
    """
    names = [agent.nick for agent in config.agents]
    if not names:
        fail(f"{paths.agents_file()} names no agents; add one with `culture agents add <name>`")
    agents = [config.agent(nick) for nick in select_nicks(names, nicks, everyone)]
    return [agent for agent in agents if agent is not None]


def select_nicks(names: Iterable[str], nicks: Sequence[str] | None, everyone: bool) -> list[str]:
    """Return the nicks that a command line names, spelled as in ``names``, each once.

    ``names``: the existing nicks. ``nicks``: those that were typed. ``everyone``: whether --all was typed. The command
    ends if a typed nick does not exist or none is named.
    """
    spelling = {fold(name): name for name in names}
    if everyone == bool(nicks):
        fail("name an agent, or use --all", Exit.USAGE)
    if everyone:
        return list(spelling.values())
    folded = (fold(resolve_nick(nick, spelling.values())) for nick in nicks or ())
    return list(
        dict.fromkeys(
            spelling[nick] if nick in spelling else fail_unknown_agent(nick, spelling.values()) for nick in folded
        )
    )


def resolve_nick(name: str, among: Iterable[str] | None = None) -> str:
    """Return the full nick for a short one (``claude``) if just one agent has it, else ``name``.

    ``among``: the nicks to choose from, by default those of agents.yaml.
    """
    if is_channel(name):
        return name
    nicks = list(configured_agents() if among is None else among)
    matches = [each for each in nicks if fold(name_part(each)) == fold(name)]
    return matches[0] if len(matches) == 1 and fold(name) not in map(fold, nicks) else name


def fail_unknown_agent(nick: str, nicks: Collection[str]) -> NoReturn:
    """End the command with the error that no agent has this nick, and suggest a similar one.

    ``nicks``: the nicks that exist.
    """
    near = nearest(nick, nicks)
    there = f"there are {', '.join(nicks)}" if nicks else "there are none; `culture agents add NAME` adds one"
    fail(f"there is no agent {nick}; {f'did you mean {near}?' if near else there}", Exit.USAGE)


@cache
def configured_agents() -> dict[str, AgentConfig]:
    """Return the agents of agents.yaml by nick.

    The dict is empty if the file is invalid, so that running agents can still be stopped.
    """
    try:
        return {agent.nick: agent for agent in load().agents}
    except ConfigError:
        return {}
