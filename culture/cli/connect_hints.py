"""Lines that somebody can copy to be on the server a moment later."""

import getpass
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from culture.config.model import ServerConfig
from culture.protocol.names import reserved

if TYPE_CHECKING:
    from culture.server.auth.accounts import Account  # takes long to load

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


def reached_by(host: str) -> str:
    """The address by which this machine reaches a listener on it."""
    return _EVERYWHERE.get(host, host)


def how_to_connect(
    settings: ServerConfig, addresses: Sequence[tuple[str, int]], person: "Account | None" = None
) -> str:
    """How to reach the server with the clients people have, as this person; without one under a nick it accepts."""
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


def how_to_be_found() -> str:
    """What to type so that the shell finds the commands that are named here; nothing where it does."""
    folder = Path(sys.executable).parent
    if shutil.which("culture") or not (folder / "culture").exists():
        return ""
    return f'\nYour shell does not find `culture` yet. In another terminal:\n\n  export PATH="{folder}:$PATH"\n\n'


def example_nick(settings: ServerConfig) -> str:
    """A nick for the person at the keyboard that the server's prefix rule accepts."""
    name = re.sub(r"[^A-Za-z0-9_-]", "", _login()).lstrip("_-")
    name = "me" if not name or reserved(name) else name
    nick = f"{settings.short_name}-{name}" if settings.nick_prefix == "required" else name
    return nick[: settings.limits.nick_length]


def nick_of(person: "Account", settings: ServerConfig) -> str:
    """The first nick of an account."""
    return f"{settings.account_prefix}-{person.name}" if settings.account_prefix else person.name


def _login_hint(person: "Account | None", nick: str) -> list[str]:
    """What it takes to be known as a person; nothing where it is enough to come as this user of the machine."""
    if person is None:
        user = _login() or str(os.getuid())
        name = nick.rpartition("-")[2]
        return [
            f"You have no account here, so nobody knows that {nick} is a person, and agents need not listen to you:",
            f"`culture account add {name} --user {user}` makes one for your own programs on this machine.",
        ]
    if person.user is None:
        return [f"Log in as {person.name}: by SASL, or with {person.name}:<your password> as the server's password."]
    return []


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _demands(settings: ServerConfig) -> str:
    prefix = f"; nicks begin with {settings.short_name}-" if settings.nick_prefix == "required" else ""
    return f"{prefix}{'; it asks for a password' if settings.password else ''}:"
