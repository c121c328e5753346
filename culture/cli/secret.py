"""Getting a secret from a person or a pipe, never from the command line: there everybody can read it."""

import getpass
import sys

import typer

from culture.server.compare import same_secret

_TRIES = 3


class NoTerminal(Exception):
    """There is nobody to ask."""

    def __init__(self) -> None:
        super().__init__("there is no terminal to ask for the password at; give it with --password-stdin")


def ask_password(name: str, from_stdin: bool) -> str:
    """The password for an account: asked for twice without showing it, or the first line of standard input."""
    if from_stdin:
        return sys.stdin.buffer.readline().decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")
    if not sys.stdin.isatty():
        raise NoTerminal
    for _ in range(_TRIES):
        password = getpass.getpass(f"Password for {name}: ")
        if not password or same_secret(getpass.getpass("Once more: "), password):
            return password
        typer.echo("These were two different passwords.", err=True)
    raise typer.Abort
