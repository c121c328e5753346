"""Ending a command that cannot do what it was asked for, or that nobody agreed to."""

import os
import sys
from functools import lru_cache
from typing import NoReturn

import typer

from culture.config.process_owner import own_agent
from culture.protocol import text
from culture.protocol.text import Profile
from culture.protocol.vocabulary import Environment, Exit


def reader() -> Profile:
    """MODEL for a command that an agent runs, else TERMINAL."""
    return _reader(os.environ.get(Environment.NICK))


@lru_cache(maxsize=8)
def _reader(nick: str | None) -> Profile:
    return Profile.MODEL if nick or own_agent() else Profile.TERMINAL


def shown(words: str) -> str:
    """The text in its lines, cleaned for whoever reads the output."""
    return text.clean(words, reader())


def as_json(data: object) -> str:
    """The data as JSON that a terminal shows and does not obey, and in which no model finds a frame."""
    made = text.as_json(data)
    return text.clean(made, Profile.MODEL) if reader() is Profile.MODEL else made


def fail(text: str, code: Exit = Exit.FAILED) -> NoReturn:
    """Say why, and end."""
    typer.echo(f"culture: {shown(text)}", err=True)
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


def is_coloured() -> bool:
    """Whether standard output is a terminal, and NO_COLOR is not set (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
