"""Which agents a command is about: those of agents.yaml, and daemons that still run of others."""

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
    Path | None, typer.Option("--config", metavar="FILE", help="Read this file, not ~/.culture/agents.yaml.")
]
Nick = Annotated[
    str, typer.Argument(metavar="NICK", show_default=False, help="The agent, for example spark-claude, or claude.")
]
Nicks = Annotated[
    list[str] | None,
    typer.Argument(metavar="NICK", show_default=False, help="The agents, for example spark-claude."),
]
Everyone = Annotated[bool, typer.Option("--all", help="All agents of agents.yaml.")]


def load(file: Path | None = None) -> AgentsConfig:
    """What agents.yaml says, with the fields of the installed backends; looking for those is slow and seldom needed."""
    try:
        return load_agents(file).config
    except ConfigError:
        from culture.clients.shared.backends import installed

        fields = {name: kind.fields for name, kind in installed().items()}
        return load_agents(file, {**BACKEND_FIELDS, **fields}).config


def chosen(config: AgentsConfig, nicks: Sequence[str] | None, everyone: bool) -> list[AgentConfig]:
    """The agents that the command line names, with the file's own rules filled in."""
    names = [agent.nick for agent in config.agents]
    if not names:
        fail(f"{paths.agents_file()} names no agents; add one with `culture agents add <name>`")
    found = [config.agent(nick) for nick in picked(names, nicks, everyone)]
    return [agent for agent in found if agent is not None]


def picked(names: Iterable[str], nicks: Sequence[str] | None, everyone: bool) -> list[str]:
    """The names that were given, as they are spelled there; each once."""
    known = {fold(name): name for name in names}
    if everyone == bool(nicks):
        fail("say which agent, or --all", Exit.USAGE)
    if everyone:
        return list(known.values())
    wanted = (fold(meant(nick, known.values())) for nick in nicks or ())
    return list(dict.fromkeys(known[nick] if nick in known else unknown(nick, known.values()) for nick in wanted))


def meant(name: str, among: Iterable[str] | None = None) -> str:
    """The agent that alone has this name behind the server's prefix, as `@guide` calls it in a room; else the name."""
    if is_channel(name):
        return name
    known = list(listed() if among is None else among)
    named = [each for each in known if fold(name_part(each)) == fold(name)]
    return named[0] if len(named) == 1 and fold(name) not in map(fold, known) else name


def unknown(nick: str, known: Collection[str]) -> NoReturn:
    """Say that there is no such agent, and which there are; end."""
    near = nearest(nick, known)
    there = f"there are {', '.join(known)}" if known else "there are none; `culture agents add NAME` adds one"
    fail(f"there is no agent {nick}; {f'did you mean {near}?' if near else there}", Exit.USAGE)


@cache
def listed() -> dict[str, AgentConfig]:
    """The agents of agents.yaml by nick; none, where the file is wrong: what runs can be ended all the same."""
    try:
        return {agent.nick: agent for agent in load().agents}
    except ConfigError:
        return {}
