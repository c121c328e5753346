"""Ending a command that cannot do what it was asked for, or that nobody agreed to."""

import sys
from typing import NoReturn

import typer

from culture.cli import output
from culture.protocol.vocabulary import Exit


def fail(text: str, code: Exit = Exit.FAILED) -> NoReturn:
    """Say why, and end."""
    typer.echo(f"culture: {output.shown(text)}", err=True)
    raise typer.Exit(code)


def confirm(question: str, is_sure: bool) -> None:
    """Go on when the person at the terminal agrees, or said so before with ``--yes``."""
    if is_sure:
        return
    if not sys.stdin.isatty():
        fail(f"{question} Nobody is there to be asked: add --yes.", Exit.USAGE)
    if not typer.confirm(question, err=True):
        typer.echo("Nothing was changed.", err=True)
        raise typer.Exit(Exit.FAILED)
