"""What all the scripts have in common: the commands as rows, and where nicks come from."""

from collections.abc import Iterator
from typing import NamedTuple

from culture.cli.command_tree import CommandNode

NICKS = r"""sed -n 's/.*nick["'\'']*: *["'\'']*\([A-Za-z0-9_-]*\).*/\1/p' """
"""Prints the nicks of an agents.yaml."""
FILE = "${CULTURE_HOME:-$HOME/.culture}/agents.yaml"


class CommandRow(NamedTuple):
    """One command: the words that lead to it, and what it is."""

    path: str
    node: CommandNode


def rows(node: CommandNode, path: str = "") -> Iterator[CommandRow]:
    """Every command and group, the outermost first."""
    yield CommandRow(path, node)
    for name, inner in node.inner.items():
        yield from rows(inner, f"{path} {name}".lstrip())
