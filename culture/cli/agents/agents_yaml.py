"""Writing agents into agents.yaml, and taking them out, without touching what else is there."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from culture.cli.agents.select_agents import load
from culture.cli.yaml_edit import dumped, replace, round_trip
from culture.config import paths
from culture.config.agents import ServerAddress
from culture.config.yaml_document import parse
from culture.protocol.names import fold

FIRST = """\
# The agents on this machine; every key is explained in docs/clients/configuration.md.
# `culture config check` says what is wrong with this file.

# The server they connect to; every nick begins with its name.
server:
  name: {server.name}
  host: {server.host}
  port: {server.port}

# Who may answer an agent's question: people always, other agents never.
trust: {{humans: always, agents: never}}

agents: []
"""


@dataclass(frozen=True)
class NewAgent:
    """A new agent."""

    nick: str
    backend: str
    directory: Path
    channels: tuple[str, ...]
    further: Mapping[str, object] = field(default_factory=dict)
    """What else is to stand under it, such as its budget."""


def add(entry: NewAgent, server: ServerAddress) -> Path:
    """Add an agent to the file, made with this server when there is none; ConfigError says what cannot be."""
    file = paths.agents_file()
    replace(file, _with(entry, _text(file) or FIRST.format(server=server)), load)
    return file


def remove(nick: str) -> Path:
    """Take an agent that is there out of the file; ConfigError when the rest cannot be without it."""
    file = paths.agents_file()
    replace(file, _without(nick, file, _text(file)), load)
    return file


def _text(file: Path) -> str:
    """What the file says, which must be right before anything is added to it."""
    load()
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _with(entry: NewAgent, text: str) -> str:
    from ruamel.yaml.comments import CommentedMap, CommentedSeq
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    yaml = round_trip()
    document = yaml.load(text)
    if document is None:
        document = CommentedMap()
    channels = CommentedSeq(map(DoubleQuotedScalarString, entry.channels))
    channels.fa.set_flow_style()
    if not document.get("agents"):
        document["agents"] = CommentedSeq()
    document["agents"].append(
        CommentedMap(
            nick=entry.nick, agent=entry.backend, directory=str(entry.directory), channels=channels, **entry.further
        )
    )
    return dumped(yaml, document)


def _without(nick: str, file: Path, text: str) -> str:
    """The text without the agent's own lines; a list in brackets is written anew."""
    document = parse(file, text)
    agents: Any = document.data["agents"]
    number = next(at for at, each in enumerate(agents) if fold(each["nick"]) == fold(nick))
    lines = text.splitlines(keepends=True)
    first = _dash(lines, document.lines["agents", number] - 1)
    if first is None:
        yaml = round_trip()
        anew = yaml.load(text)
        del anew["agents"][number]
        return dumped(yaml, anew)
    del lines[first : _end(lines, first)]
    if len(agents) == 1:
        key = document.lines["agents",] - 1
        lines[key] = re.sub(r"^([^:]*:)", r"\1 []", lines[key], count=1)
    return "".join(lines)


def _dash(lines: list[str], at: int) -> int | None:
    """The line with the dash of an entry that has lines of its own."""
    if lines[at].lstrip().startswith("-"):
        return at
    return at - 1 if at and lines[at - 1].strip() == "-" else None


def _end(lines: list[str], first: int) -> int:
    """Behind the last line of an entry; what is noted between it and the next belongs to the next."""
    depth = _indent(lines[first])
    end = first + 1
    for at in range(first + 1, len(lines)):
        if not lines[at].strip() or lines[at].lstrip().startswith("#"):
            continue
        if _indent(lines[at]) <= depth:
            break
        end = at + 1
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
