"""Which sandbox a new agent, or a new team, is to have: as the option says, else as the person at the terminal does."""

import shutil
import sys
from enum import StrEnum
from typing import Annotated

import typer

from culture.cli.output import fail
from culture.clients.shared.sandbox.bubblewrap import PROGRAM, obstacle
from culture.protocol.vocabulary import Exit

_QUESTION = "Run it in a sandbox? It sees its folder and reaches its model, not your home, and no other host"


class SandboxKind(StrEnum):
    """Values of ``--sandbox``; ``user`` is left out, as it needs ``user:``, which is written by hand."""

    NONE = "none"
    BWRAP = "bwrap"


SandboxOption = Annotated[
    SandboxKind | None,
    typer.Option(
        "--sandbox",
        show_default=False,
        help="bwrap: it sees its folder and the hosts you list (docs/clients/sandbox.md); none: all that you can.",
    ),
]


def choose_sandbox(given: SandboxKind | None) -> SandboxKind | None:
    """The sandbox to write down; None writes nothing. Without bubblewrap nobody is asked."""
    if given is SandboxKind.BWRAP and (why := obstacle()):
        fail(f"--sandbox bwrap: {why}", Exit.FAILED)
    if given is not None or not sys.stdin.isatty() or shutil.which(PROGRAM) is None or obstacle():
        return given
    return SandboxKind.BWRAP if typer.confirm(_QUESTION, default=False, err=True) else None
