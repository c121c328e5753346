"""What `culture up` writes at its first run: server name, port, and the user's account.

Name and port are written down because data and nicks depend on the name, also when the host is renamed, and because
other commands read the port from the files. A port given later with --port replaces the old one in culture.yaml and
agents.yaml.
"""

import errno
import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer

from culture.cli import yaml_edit
from culture.cli.agents.select_agents import load as load_agents
from culture.cli.local_servers import example_nick
from culture.cli.options import Choices
from culture.config import paths
from culture.config.listen_policy import is_loopback
from culture.config.load import load_server
from culture.config.model import Listen, ServerConfig
from culture.config.peer_uid import user_name
from culture.lib.files import open_private
from culture.protocol.names import fold, short_name, valid_short_name
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


def write_first_config(choices: Choices) -> None:
    """Write culture.yaml with the server's name and a free port, if there is no such file.

    ``choices``: options of the command; the name and port in them are used.
    """
    file = paths.server_file()
    if file.exists():
        return
    choices.load()  # a wrong option is not written down
    name, usual = choices.name or _ask(paths.default_server_name()), Listen()
    text = FIRST_FILE.format(name=name)
    free = usual.port if choices.port is not None else free_port(usual.host, usual.port)
    if free != usual.port:
        text += OTHER_PORT.format(why=f"Port {usual.port} was in use when this file was made.", port=free)
    elif choices.port and choices.host is None:
        text += OTHER_PORT.format(why="The port that was chosen the first time.", port=choices.port)
    with open(open_private(file, os.O_WRONLY | os.O_EXCL), "w", encoding="utf-8") as target:
        target.write(text)
    typer.echo(f"Wrote {file}: this server is called {name}.")
    if free != usual.port:
        typer.echo(f"Port {usual.port} is used by another program, so it listens on {free}.")


def ensure_own_account(settings: ServerConfig) -> Account | None:
    """Return the current user's account on the server; make it if no person has an account.

    None if people have accounts but the current user has none, or if the account cannot be made.
    """
    store = AccountStore(settings.accounts_file, settings.account_prefix)
    people = [each for each in store.all() if each.kind is UserClass.HUMAN and each.is_active]
    ours = next((each for each in people if each.user is not None and uid_of(each.user) == os.getuid()), None)
    if ours is not None:
        return ours
    nick = example_nick(settings)
    if store.knows_people:
        owner = store.owner_of(nick)
        return owner if owner in people else None
    account = new_account(store.bare(nick), UserClass.HUMAN, user=user_name(os.getuid()))
    try:
        store.add(account)
    except AccountRefused as refused:
        typer.echo(f"You have no account here: {refused}. Make one with `culture account add NAME`.", err=True)
        return None
    return account


def free_port(host: str, first: int) -> int:
    """Return the first free port from ``first`` on; ``first`` if the next 50 are all in use."""
    return next((port for port in range(first, first + _NEXT_PORTS) if is_free(host, port)), first)


def is_free(host: str, port: int) -> bool:
    """Whether no process uses a port of a host, so that a server could listen on it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True


def used_listeners(settings: ServerConfig) -> Iterator[Listen]:
    """Yield the configured listeners of a server whose port is in use by another process."""
    return (each for each in settings.listen if each.port and not is_free(each.host, each.port))


def _ask(proposal: str) -> str:
    """Return a name for the server: what the person at the terminal types, or else ``proposal``.

    Nothing is asked without a terminal, or if the proposal is the host's own name.
    """
    if short_name(socket.gethostname().lower()) == proposal or not sys.stdin.isatty():
        return proposal
    while True:
        name: str = typer.prompt("A short name for this server (a-z, 0-9)", default=proposal)
        if valid_short_name(name):
            return name
        typer.echo("1 to 12 of a-z and 0-9, a letter first.")


def is_own_config(choices: Choices) -> bool:
    """Whether the options select the server in culture.yaml of the home folder.

    Only this file may be changed without asking the person.
    """
    configured = load_server().config if choices.config is None and paths.server_file().exists() else None
    return configured is not None and (choices.name is None or fold(choices.name) == fold(configured.name))


def has_single_listener(choices: Choices) -> bool:
    """Whether the server in the home folder's culture.yaml is selected and has one listener.

    Only then can --port replace the port in the file.
    """
    return is_own_config(choices) and len(load_server().config.listen) == 1


def write_port(port: int) -> Iterator[Path]:
    """Write a port into culture.yaml, and into agents.yaml if it names this server.

    Yields the changed files.
    """
    old = load_server().config
    if old.listen[0].port != port:
        yield _rewritten(paths.server_file(), lambda document: _listen(document, port), load_server)
    if paths.agents_file().exists() and _is_elsewhere(old, port):
        yield _rewritten(paths.agents_file(), lambda document: _connect(document, port), load_agents)


def _is_elsewhere(old: ServerConfig, port: int) -> bool:
    """Whether agents.yaml names this server with its former port, not with ``port``.

    ``old``: the server's configuration before the change.
    """
    at, listener = load_agents().server, old.listen[0]
    if at.tls != (listener.tls is not None) or not is_loopback(at.host) or at.port == port:
        return False
    return at.port == listener.port if at.name is None else short_name(fold(at.name)) == old.short_name


def _listen(document: Any, port: int) -> None:
    if document.get("listen"):
        document["listen"][0]["port"] = port
    else:
        document["listen"] = [{"host": "127.0.0.1", "port": port}]


def _connect(document: Any, port: int) -> None:
    if document.get("server"):
        document["server"]["port"] = port
    else:
        document["server"] = {"host": "127.0.0.1", "port": port}


def _rewritten(file: Path, change: Callable[[Any], None], load: Callable[[Path], object]) -> Path:
    yaml = yaml_edit.yaml_editor()
    document = yaml.load(file.read_text(encoding="utf-8"))
    document = {} if document is None else document
    change(document)
    yaml_edit.replace(file, yaml_edit.dump(yaml, document), load)
    return file
