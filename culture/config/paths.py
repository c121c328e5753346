"""Where the files of culture live: ~/.culture, or whatever $CULTURE_HOME names."""

import hashlib
import os
import pwd
import re
import socket
from collections.abc import Iterator
from pathlib import Path

from culture.protocol.names import valid_short_name
from culture.protocol.vocabulary import Environment

# The kernel's sun_path holds 104 bytes at the least (108 on Linux), the last of them a NUL.
SOCKET_PATH_LIMIT = 103
_SHARED = Path("/tmp")


def home() -> Path:
    """The folder that holds everything: ``$CULTURE_HOME``, else ``~/.culture``."""
    moved = os.environ.get(Environment.HOME)
    return Path(moved).expanduser().absolute() if moved else Path.home() / ".culture"


def server_file() -> Path:
    """The server's configuration."""
    return home() / "culture.yaml"


def agents_file() -> Path:
    """The agents' configuration."""
    return home() / "agents.yaml"


def accounts_file() -> Path:
    """Who may log in to the servers of this machine."""
    return home() / "accounts.json"


def data_dir(server: str) -> Path:
    """What the server of that name remembers; only one server at a time may hold it."""
    return home() / "data" / server


def pid_file(server: str) -> Path:
    """The note that says which process is the server of that name."""
    return home() / "run" / f"{server}.pid"


def log_file(server: str) -> Path:
    """What a server in the background prints."""
    return home() / "log" / f"{server}.log"


def inbox_file(nick: str) -> Path:
    """What an agent's daemon remembers."""
    return home() / "inbox" / f"{nick}.db"


def team_dir(slug: str) -> Path:
    """What a team is and knows."""
    return home() / "team" / slug


def secret_file(nick: str) -> Path:
    """The token with which an agent logs in."""
    return home() / "secrets" / nick


def tls_file(host: str, kind: str) -> Path:
    """A certificate (``pem``) for a host, or its key (``key``)."""
    return home() / "tls" / f"{re.sub(r'[^A-Za-z0-9.-]', '_', host).lstrip('.') or 'host'}.{kind}"


def agent_socket(nick: str) -> Path:
    """The Unix socket of an agent's daemon: one answer for everyone who asks; ValueError where there can be none.

    It is in ``$XDG_RUNTIME_DIR``, else in ``run`` of the home folder, else, where that path is too long for a socket,
    in a folder of this user under /tmp. Wherever several homes share a folder, the name tells them apart.
    """
    places = _socket_places(nick)
    for path in places:
        if len(os.fsencode(path)) <= SOCKET_PATH_LIMIT:
            return path
    raise ValueError(
        f"{places[-1]} is longer than the {SOCKET_PATH_LIMIT} bytes a Unix socket's path may have: "
        "choose a shorter nick"
    )


def socket_alias(nick: str) -> Path:
    """Where others look for an agent's socket: a symlink to it is there, if nobody else has that name.

    Programs of ours do not follow it.
    """
    return Path(os.environ.get("XDG_RUNTIME_DIR") or _SHARED) / _socket_name(nick)


def earlier_socket(nick: str) -> Path | None:
    """Where a daemon that was started before an upgrade may listen; None where that name is another home's by now."""
    return None if os.environ.get("XDG_RUNTIME_DIR") else _SHARED / _socket_name(nick)


def home_mark() -> str:
    """Eight letters that tell this home folder from others, the same whichever way leads to it."""
    return hashlib.sha256(os.fsencode(os.path.realpath(home()))).hexdigest()[:8]


def agent_sockets() -> Iterator[Path]:
    """The files of this home that look like sockets of agents, whether somebody listens there or not."""
    others = re.compile(r"culture-[0-9a-f]{8}-.*") if _is_default_home() else None
    for place in _socket_places("*"):
        for path in place.parent.glob(place.name):
            if others is None or home_mark() in path.name or not others.fullmatch(path.name):
                yield path


def _socket_places(nick: str) -> list[Path]:
    name = _socket_name(nick)
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    marked = f"culture-{home_mark()}-{nick}.sock"
    return [
        *([Path(runtime) / (name if _is_default_home() else marked)] if runtime else []),
        home() / "run" / name,
        _SHARED / f"culture-{os.geteuid()}" / marked,
    ]


def _socket_name(nick: str) -> str:
    if not nick or "/" in nick or "\0" in nick:
        raise ValueError(f"{nick!r} is no nick")
    return f"culture-{nick}.sock"


def _is_default_home() -> bool:
    """Is the home folder the one that the user has without a word in the environment?"""
    try:
        usual = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        usual = Path.home()
    return os.path.realpath(home()) == os.path.realpath(usual / ".culture")


def leads_out(file: Path, folder: Path) -> bool:
    """Whether a file in a folder is a link to elsewhere: an agent that may write there could have anything read."""
    return folder in file.parents and folder.resolve() not in file.resolve().parents


def default_server_name() -> str:
    """A short server name made from this host's name, else ``culture``."""
    label = made_short(socket.gethostname())
    return label if valid_short_name(label) else "culture"


def made_short(name: str) -> str:
    """The nearest to a short server name that a host's name can be made into."""
    return re.sub(r"[^a-z0-9]", "", name.split(".")[0].lower())[:12]
