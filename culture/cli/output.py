"""Output of commands: errors, confirmation, JSON, and foreign text made safe for its reader."""

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
    """Return for whom output is to be safe: MODEL if an agent runs this command, else TERMINAL."""
    return _reader(os.environ.get(Environment.NICK))


@lru_cache(maxsize=8)
def _reader(nick: str | None) -> Profile:
    return Profile.MODEL if nick or own_agent() else Profile.TERMINAL


def clean(words: str) -> str:
    """Return text of others without characters that could harm its reader; line breaks stay."""
    return text.clean(words, reader())


def one_line(words: str, longest: int | None = None) -> str:
    """Return text of others as one line without harmful characters.

    ``longest``: number of characters after which the line is cut; None: it is not cut.
    """
    line = clean(words).replace("\n", " ").replace("\t", " ")
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1]}…"


def as_json(data: object) -> str:
    """Return data as JSON that is safe to print on a terminal and in a model's prompt."""
    encoded = text.as_json(data)
    return text.clean(encoded, Profile.MODEL) if reader() is Profile.MODEL else encoded


def fail(text: str, code: Exit = Exit.FAILED) -> NoReturn:
    """Print an error on stderr and end the command with an exit code."""
    typer.echo(f"culture: {clean(text)}", err=True)
    raise typer.Exit(code)


def confirm(question: str, is_sure: bool) -> None:
    """Ask the person at the terminal for confirmation; end the command unless they agree.

    ``is_sure``: whether --yes was given; then nothing is asked.
    """
    if is_sure:
        return
    if not sys.stdin.isatty():
        fail(f"{question} There is no terminal to ask at: add --yes.", Exit.USAGE)
    if not typer.confirm(question, err=True):
        typer.echo("Nothing was changed.", err=True)
        raise typer.Exit(Exit.FAILED)


def is_coloured() -> bool:
    """Whether the output may be coloured: it is a terminal and NO_COLOR is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
