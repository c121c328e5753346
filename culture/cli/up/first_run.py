"""What `culture up` writes down the first time: the server's name and port, and who the person at the keyboard is."""

import errno
import os
import socket
import sys
from collections.abc import Iterator

import typer

from culture.cli.connect_hints import example_nick
from culture.cli.options import Choices
from culture.config import paths
from culture.config.model import Listen, ServerConfig
from culture.config.peer_uid import user_name
from culture.lib.files import open_private
from culture.protocol.names import short_name, valid_short_name
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import Account, AccountRefused, new_account
from culture.server.auth.local_user import uid_of

FIRST_FILE = """\
# The server's name begins every nick here (spark-ori): choose it once.
name: {name}
"""
OTHER_PORT = """\
# {why}
listen:
  - {{host: 127.0.0.1, port: {port}}}
"""
_NEXT_PORTS = 50


def settle_the_server(choices: Choices) -> None:
    """Write name and port down the first time: data and nicks hang on the name, also when the host is renamed."""
    file = paths.server_file()
    if file.exists():
        return
    choices.load()  # what is wrong is not written down
    name, usual = choices.name or _ask(paths.default_server_name()), Listen()
    text = FIRST_FILE.format(name=name)
    free = usual.port if choices.port is not None else free_port(usual.host, usual.port)
    if free != usual.port:
        text += OTHER_PORT.format(why=f"Port {usual.port} was in use when this file was made.", port=free)
    elif choices.port and choices.host is None:
        text += OTHER_PORT.format(why="The port that was chosen the first time.", port=choices.port)
    with open(open_private(file, os.O_WRONLY | os.O_EXCL), "w", encoding="utf-8") as written:
        written.write(text)
    typer.echo(f"Wrote {file}: this server is called {name}.")
    if free != usual.port:
        typer.echo(f"Port {usual.port} is used by another program, so it listens on {free}.")


def settle_the_person(settings: ServerConfig) -> Account | None:
    """The account of the person at the keyboard, made the first time; None where people have made theirs themselves."""
    store = AccountStore(settings.accounts_file, settings.account_prefix)
    known = [each for each in store.all() if each.kind is UserClass.HUMAN and each.is_active]
    ours = next((each for each in known if each.user is not None and uid_of(each.user) == os.getuid()), None)
    if ours is not None:
        return ours
    nick = example_nick(settings)
    if store.knows_people:
        owner = store.owner_of(nick)
        return owner if owner in known else None
    account = new_account(store.bare(nick), UserClass.HUMAN, user=user_name(os.getuid()))
    try:
        store.add(account)
    except AccountRefused as refused:
        typer.echo(f"You have no account here: {refused}. Make one with `culture account add NAME`.", err=True)
        return None
    return account


def free_port(host: str, first: int) -> int:
    """The first free port from this one on; that one, where none of the next is free."""
    return next((port for port in range(first, first + _NEXT_PORTS) if is_free(host, port)), first)


def is_free(host: str, port: int) -> bool:
    """Whether somebody could listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True


def taken(settings: ServerConfig) -> Iterator[Listen]:
    """The listeners of a server whose place somebody else has."""
    return (each for each in settings.listen if each.port and not is_free(each.host, each.port))


def _ask(proposal: str) -> str:
    """The proposal where it is the host's own name or nobody can be asked, else what the person says."""
    if short_name(socket.gethostname().lower()) == proposal or not sys.stdin.isatty():
        return proposal
    while True:
        name: str = typer.prompt("A short name for this server (a-z, 0-9)", default=proposal)
        if valid_short_name(name):
            return name
        typer.echo("1 to 12 of a-z and 0-9, a letter first.")
