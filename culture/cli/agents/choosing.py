"""Which agent works in a folder: of those that are installed and logged in the first, and what it may spend."""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import typer

from culture.clients.shared.backends import found, installed
from culture.clients.shared.programs import Found, Login

IN_ORDER = ("claude", "codex", "copilot", "acp")
USD_PER_DAY = 5.0
TURNS_PER_DAY = 200
"""Beside the money: some programs do not tell what a turn costs."""
_NO_AGENT = ("none", "no")


@dataclass(frozen=True, slots=True)
class Choice:
    """A kind of agent that could begin at once."""

    backend: str
    program: str
    options: Mapping[str, object] = field(default_factory=dict)


def ready() -> Choice | None:
    """The first of those with a model that is installed and logged in; None when there is none."""
    return next(_ready(), None)


def _ready() -> Iterator[Choice]:
    for name in IN_ORDER:
        kind = installed().get(name)
        for program in found(kind) if kind is not None and _may_run(name) else ():
            if program.version is not None and program.login is Login.READY:
                yield Choice(name, program.program, _options(name, program))


def _options(backend: str, program: Found) -> dict[str, object]:
    if backend != "acp":
        return {}
    from culture.clients.acp.quirks import DEFAULT_COMMAND, KNOWN  # for this kind alone

    command = [program.program, *KNOWN[program.program].words]
    return {} if command == list(DEFAULT_COMMAND) else {"acp_command": command}


def _may_run(backend: str) -> bool:
    """Claude Code does not work without asking as root, but in a sandbox."""
    return backend != "claude" or os.geteuid() != 0 or os.environ.get("IS_SANDBOX") == "1"


def ask_budget(what: str, given: float | None) -> float | None:
    """How many dollars a day it may spend: as given, as the person says, else a small sum; None for no agent at all."""
    if given is not None or not sys.stdin.isatty():
        return USD_PER_DAY if given is None else given
    typer.echo(f"\n{what} (none: no agent)")
    while True:
        said: str = typer.prompt("  How many dollars may it spend a day?", default=f"{USD_PER_DAY:g}")
        if said.strip().lower() in _NO_AGENT:
            return None
        try:
            amount = float(said.strip().lstrip("$"))
        except ValueError:
            amount = 0.0
        if 0 < amount < float("inf"):
            return amount
        typer.echo("  A number such as 5 or 0.50, or none.")
