"""Reads secrets from a terminal, a pipe or a file, never from arguments: others see those."""

import getpass
import os
import secrets
import sys
from pathlib import Path

import typer

from culture.cli.output import fail
from culture.lib.files import PRIVATE_FILE
from culture.lib.secret_compare import same_secret
from culture.protocol.vocabulary import Exit

_TRIES = 3
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class NoTerminal(Exception):
    """There is no terminal to ask for a password."""

    def __init__(self) -> None:
        super().__init__("there is no terminal to ask for the password at; give it with --password-stdin")


def ask_password(name: str, from_stdin: bool) -> str:
    """Return a password for the account ``name``: typed twice, or a line of standard input.

    NoTerminal is raised if it has to be typed and there is no terminal.
    """
    if from_stdin:
        return sys.stdin.buffer.readline().decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")
    if not sys.stdin.isatty():
        raise NoTerminal
    for _ in range(_TRIES):
        password = getpass.getpass(f"Password for {name}: ")
        if not password or same_secret(getpass.getpass("Once more: "), password):
            return password
        typer.echo("The passwords differ.", err=True)
    raise typer.Abort


def link_secret(peer: str, file: Path | None, from_stdin: bool, new: Path | None) -> str:
    """Return the secret of a link to the server ``peer``.

    It is read from ``file``, from standard input or from the terminal. ``new``: a file into which a new random secret
    is written, which is then returned.
    """
    if new is not None:
        return _made(new)
    try:
        if file is not None:
            if is_open_to_others(file):
                typer.echo(
                    f"Other users of this machine can read {file}: delete it when both sides have the secret.", err=True
                )
            return file.read_text(encoding="utf-8").partition("\n")[0].strip()
        if from_stdin:
            return sys.stdin.readline().strip()
    except OSError as error:
        fail(f"the secret cannot be read: {file or 'standard input'}: {error.strerror}")
    except UnicodeDecodeError:
        fail(f"the secret cannot be read: {file or 'standard input'} is no text")
    if not sys.stdin.isatty():
        fail(
            "there is no terminal to ask for the secret at; give --secret-file, --secret-stdin or --new-secret",
            Exit.USAGE,
        )
    return getpass.getpass(f"Secret of the link to {peer}: ").strip()


def is_open_to_others(file: Path) -> bool:
    """Whether users other than its owner may access a file; False if there is no such file."""
    try:
        return bool(file.stat().st_mode & 0o077)
    except OSError:
        return False


def _made(file: Path) -> str:
    secret = secrets.token_urlsafe(32)
    if file.exists():
        fail(f"{file} exists already: choose another name, or use its secret with --secret-file")
    try:
        with os.fdopen(os.open(file, _NEW, PRIVATE_FILE), "w", encoding="utf-8") as target:
            target.write(f"{secret}\n")
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror}")
    typer.echo(
        f"The secret is in {file}: copy it to the other side, use it, then delete the file on both sides.", err=True
    )
    return secret
