"""The servers of this machine: which one a command is about, and how to connect to it."""

import getpass
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from culture.cli.agents.select_agents import load
from culture.cli.options import Choices
from culture.cli.output import fail
from culture.cli.server import pid_file
from culture.cli.server.background import accepts
from culture.config import paths
from culture.config.agents import ServerAddress
from culture.config.errors import ConfigError
from culture.config.listen_policy import is_loopback
from culture.config.model import ServerConfig
from culture.protocol.names import reserved
from culture.protocol.vocabulary import Exit

if TYPE_CHECKING:
    from culture.server.auth.accounts import Account  # takes long to load


def own_address() -> ServerAddress:
    """Return the address without TLS at which the server of this home folder listens.

    If no server runs, it is the configured address.
    """
    settled = Choices().load().config
    for name in sorted(pid_file.all_running(), key=lambda each: each != settled.name):
        note = pid_file.running(name)
        address = plain_listener(Choices.parse(note.options).load().config, note.addresses) if note else None
        if address is not None:
            return address
    planned = [(each.host, each.port) for each in settled.listen]
    return plain_listener(settled, planned) or ServerAddress(name=settled.name)


def own_server(address: ServerAddress) -> ServerConfig | None:
    """Return the configuration of the server of this home folder that listens at ``address``.

    None if there is no such server.
    """
    if not is_loopback(address.host):
        return None
    for name in pid_file.all_running():
        note = pid_file.running(name)
        if note is not None and any(port == address.port for _, port in note.addresses):
            return Choices.parse(note.options).load().config
    try:
        settled = Choices().load().config
    except ConfigError:
        return None
    is_ours = paths.server_file().exists() and any(each.port == address.port for each in settled.listen)
    # If something answers there while ours does not run, it is not ours.
    return settled if is_ours and not accepts((address.host, address.port)) else None


def server_user() -> str | None:
    """Return the Unix user who runs the server according to agents.yaml; None if it names none."""
    try:
        return load().server.user
    except ConfigError:
        return None


def plain_listener(
    server: ServerConfig, addresses: list[tuple[str, int]] | tuple[tuple[str, int], ...]
) -> ServerAddress | None:
    """Return the address of a server's first listener without TLS and WebSocket, or None.

    ``addresses``: host and port of each configured listener, in the same order.
    """
    for listener, (host, port) in zip(server.listen, addresses, strict=False):
        if listener.tls is None and listener.websocket is None:
            return ServerAddress(name=server.name, host=reached_by(host), port=port)
    return None


_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


def reached_by(host: str) -> str:
    """Return the host by which this machine connects to a listener that is bound to ``host``.

    For ``0.0.0.0`` this is ``127.0.0.1``.
    """
    return _EVERYWHERE.get(host, host)


def how_to_connect(
    settings: ServerConfig, addresses: Sequence[tuple[str, int]], person: "Account | None" = None
) -> str:
    """Return instructions for people on how to connect an IRC client to a server.

    ``addresses``: host and port of its listeners. ``person``: the account to log in with, None if there is none.
    """
    host, port = addresses[0] if addresses else (settings.listen[0].host, settings.listen[0].port)
    host = reached_by(host)
    nick = example_nick(settings) if person is None else nick_of(person, settings)
    channel = settings.channels[0] if settings.channels else "#general"
    place = f"[{host}]" if ":" in host else host
    user = nick.rpartition("-")[2]
    lines = [
        f"Connect with any IRC client to {host} port {port}{_demands(settings)}",
        "",
        f"  weechat '{'irc6' if ':' in host else 'irc'}://{nick}@{place}:{port}/{channel}'",
        f"  irssi -c {host} -p {port} -n {nick}",
        f"  (printf 'NICK {nick}\\r\\nUSER {user} 0 * :{user}\\r\\nJOIN {channel}\\r\\n'; cat) | nc {host} {port}",
        "",
        f"Then say hello (in irssi /join {channel} first).",
        *_login_hint(person, nick),
    ]
    return "\n".join(lines)


def path_hint() -> str:
    """Return the shell line that puts `culture` on the PATH; "" if the shell finds it already."""
    folder = Path(sys.executable).parent
    if shutil.which("culture") or not (folder / "culture").exists():
        return ""
    return f'\nYour shell does not find `culture` yet. In another terminal:\n\n  export PATH="{folder}:$PATH"\n\n'


def example_nick(settings: ServerConfig) -> str:
    """Return an example nick, which the server would accept, for the current user."""
    name = re.sub(r"[^A-Za-z0-9_-]", "", login_name()).lstrip("_-")
    name = "me" if not name or reserved(name) else name
    nick = f"{settings.short_name}-{name}" if settings.nick_prefix == "required" else name
    return nick[: settings.limits.nick_length]


def nick_of(person: "Account", settings: ServerConfig) -> str:
    """Return the main nick of an account, with the server's prefix if the server requires one."""
    return f"{settings.account_prefix}-{person.name}" if settings.account_prefix else person.name


def _login_hint(person: "Account | None", nick: str) -> list[str]:
    """Return lines for people on how to log in to the server.

    ``person``: the account; None: the lines say how to make one. ``nick``: that of the person. There are no lines if
    the server recognizes the person by the Unix user.
    """
    if person is None:
        user = login_name() or str(os.getuid())
        name = nick.rpartition("-")[2]
        return [
            f"You have no account here, so nobody knows that {nick} is a person, and agents may ignore you:",
            f"`culture account add {name} --user {user}` makes one for your own programs on this machine.",
        ]
    if person.user is None:
        return [f"Log in as {person.name}: by SASL, or with {person.name}:<your password> as the server's password."]
    return []


def login_name() -> str:
    """Return the Unix login name of the current user; "" if the user id has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _demands(settings: ServerConfig) -> str:
    prefix = f"; nicks begin with {settings.short_name}-" if settings.nick_prefix == "required" else ""
    return f"{prefix}{'; it asks for a password' if settings.password else ''}:"


def with_running_options(choices: Choices) -> Choices:
    """Return options in which None is replaced by the value with which the selected server runs.

    If the server does not run, they are returned unchanged.
    """
    note = pid_file.running(choices.server_name())
    return choices.over(Choices.parse(note.options)) if note else choices


def require_clear_choice(choices: Choices) -> Choices:
    """Return the options unchanged if they say clearly which server is meant.

    The command ends if they name no server, and a server runs whose name is not the default.
    """
    if choices.name is None and choices.data_dir is None:
        loaded = choices.load()
        guess, living = loaded.config.name, pid_file.all_running()
        if ("name",) not in loaded.sources and living and guess not in living:
            fail(
                f"which server? By this host's name it is {guess}, which does not run; {' and '.join(living)} "
                f"{'does' if len(living) == 1 else 'do'}. Say --name {living[0]}, or write `name: {living[0]}` "
                f"into {choices.config or paths.server_file()}",
                Exit.USAGE,
            )
    return choices
