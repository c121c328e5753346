"""``culture backends``: the kinds of agents, and what of them is installed."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from culture.cli import output
from culture.cli.agent_access import open_to_agents
from culture.cli.output import as_json as in_json
from culture.cli.output import fail
from culture.clients.shared.backends import NoBackend, backend, found, installed
from culture.clients.shared.programs import Found
from culture.clients.shared.turn import Backend
from culture.protocol.vocabulary import Exit

_HEADINGS = ("BACKEND", "PROGRAM", "VERSION", "LOGIN", "TO TYPE")
_NOTHING = "-"


@open_to_agents
def backends(
    name: Annotated[
        str | None, typer.Argument(metavar="BACKEND", show_default=False, help="Only this one; all without it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same for programs.")] = False,
) -> None:
    """Show the kinds of agents: what is installed, whether it has a login, and what to type.

    Nobody is asked and nothing is started; of a key or a token only the name of
    the variable or the file is shown. With a BACKEND the exit code is 1 when
    something is missing that it needs.
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
    """What is there; a backend of somebody else's that cannot tell leaves the others."""
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
    return "\n".join(output.shown(line.rstrip()) for line in lines)
