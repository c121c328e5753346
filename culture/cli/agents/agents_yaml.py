"""Adds agents to agents.yaml and removes them; everything else in the file stays as it is."""

import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from culture.cli.agents.select_agents import load
from culture.cli.output import fail
from culture.cli.yaml_edit import dump, replace, yaml_editor
from culture.clients.shared.sandbox.bubblewrap import PROGRAM, obstacle
from culture.config import paths
from culture.config.agents import ServerAddress
from culture.config.yaml_document import parse
from culture.protocol.names import fold
from culture.protocol.vocabulary import Exit

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
    """The fields of an agent that is to be added to agents.yaml."""

    nick: str
    backend: str
    directory: Path
    channels: tuple[str, ...]
    further: Mapping[str, object] = field(default_factory=dict)
    """More settings of the entry, such as its budget."""


def add(entry: NewAgent, server: ServerAddress) -> Path:
    """Add an agent to agents.yaml and return the file's path.

    A missing file is created, with ``server`` as the server of its agents. ConfigError is raised, and nothing written,
    if the file would be invalid.
    """
    file = paths.agents_file()
    replace(file, _with(entry, _text(file) or FIRST.format(server=server)), load)
    return file


def remove(nick: str) -> Path:
    """Remove an agent from agents.yaml and return the file's path.

    ConfigError is raised, and nothing written, if the file would be invalid without it.
    """
    file = paths.agents_file()
    replace(file, _without(nick, file, _text(file)), load)
    return file


def _text(file: Path) -> str:
    """Return the text of agents.yaml, or "" if there is no file; ConfigError if it is invalid."""
    load()
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _with(entry: NewAgent, text: str) -> str:
    from ruamel.yaml.comments import CommentedMap, CommentedSeq
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    yaml = yaml_editor()
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
    return dump(yaml, document)


def _without(nick: str, file: Path, text: str) -> str:
    """Return the text of agents.yaml without the entry of the agent ``nick``.

    A list written in brackets is formatted anew; otherwise the other lines stay as they are.
    """
    document = parse(file, text)
    agents: Any = document.data["agents"]
    number = next(at for at, each in enumerate(agents) if fold(each["nick"]) == fold(nick))
    lines = text.splitlines(keepends=True)
    first = _dash(lines, document.lines["agents", number] - 1)
    if first is None:
        yaml = yaml_editor()
        anew = yaml.load(text)
        del anew["agents"][number]
        return dump(yaml, anew)
    del lines[first : _end(lines, first)]
    if len(agents) == 1:
        key = document.lines["agents",] - 1
        lines[key] = re.sub(r"^([^:]*:)", r"\1 []", lines[key], count=1)
    return "".join(lines)


def _dash(lines: list[str], at: int) -> int | None:
    """Return the index of the line with the dash that begins the YAML list entry at line ``at``.

    None if the dash is neither on that line nor alone on the line before.
    """
    if lines[at].lstrip().startswith("-"):
        return at
    return at - 1 if at and lines[at - 1].strip() == "-" else None


def _end(lines: list[str], first: int) -> int:
    """Return the index of the line after the YAML list entry that begins at line ``first``.

    Comments between two entries belong to the later one.
    """
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


_QUESTION = "Run it in a sandbox? It can use its folder and its model, but neither your home folder nor other hosts"


class SandboxKind(StrEnum):
    """Values of the option ``--sandbox``.

    The kind ``user`` is missing, since it needs more settings.
    """

    NONE = "none"
    BWRAP = "bwrap"


SandboxOption = Annotated[
    SandboxKind | None,
    typer.Option(
        "--sandbox",
        show_default=False,
        help="bwrap: its folder and the hosts you list (docs/clients/sandbox.md); none: all that you can access.",
    ),
]


def choose_sandbox(option: SandboxKind | None) -> SandboxKind | None:
    """Return the sandbox of a new agent: the option, or what the person at the terminal chooses.

    None means no sandbox. The command ends if the chosen sandbox cannot be made on this machine.
    """
    if option is SandboxKind.BWRAP and (why := obstacle()):
        fail(f"--sandbox bwrap: {why}", Exit.FAILED)
    if option is not None or not sys.stdin.isatty() or shutil.which(PROGRAM) is None or obstacle():
        return option
    return SandboxKind.BWRAP if typer.confirm(_QUESTION, default=False, err=True) else None
