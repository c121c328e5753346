"""Where the files of culture are: in ~/.culture, or the folder that $CULTURE_HOME names."""

import hashlib
import os
import pwd
import re
import socket
from collections.abc import Iterator
from pathlib import Path

from culture.protocol.names import valid_short_name
from culture.protocol.vocabulary import Environment

# The kernel's sun_path holds at least 104 bytes (108 on Linux) with the final NUL.
SOCKET_PATH_LIMIT = 103
_SHARED = Path("/tmp")


def home() -> Path:
    """Return the folder for all files of culture: ``$CULTURE_HOME``, else ``~/.culture``."""
    moved = os.environ.get(Environment.HOME)
    return Path(moved).expanduser().absolute() if moved else Path.home() / ".culture"


def server_file() -> Path:
    """Return the path of the server's configuration, culture.yaml."""
    return home() / "culture.yaml"


def agents_file() -> Path:
    """Return the path of the agents' configuration, agents.yaml."""
    return home() / "agents.yaml"


def accounts_file() -> Path:
    """Return the path of the accounts file of this machine's servers."""
    return home() / "accounts.json"


def data_dir(server: str) -> Path:
    """Return the data folder of a server, which one running server at a time may use."""
    return home() / "data" / server


def pid_file(server: str) -> Path:
    """Return the path of a server's pid file."""
    return home() / "run" / f"{server}.pid"


def log_file(server: str) -> Path:
    """Return the path of the log of a server that runs in the background."""
    return home() / "log" / f"{server}.log"


def inbox_file(nick: str) -> Path:
    """Return the path of the database of an agent's daemon."""
    return home() / "inbox" / f"{nick}.db"


def team_dir(slug: str) -> Path:
    """Return the folder with the files of the team whose project has this short name (``slug``)."""
    return home() / "team" / slug


def secret_file(nick: str) -> Path:
    """Return the path of the file with the token that an agent logs in with."""
    return home() / "secrets" / nick


def tls_file(host: str, kind: str) -> Path:
    """Return the path of a host's certificate (kind ``pem``) or its key (``key``)."""
    return home() / "tls" / f"{re.sub(r'[^A-Za-z0-9.-]', '_', host).lstrip('.') or 'host'}.{kind}"


def agent_socket(nick: str) -> Path:
    """Return the path of an agent daemon's Unix socket; each program of this user gets the same.

    It is in ``$XDG_RUNTIME_DIR``, else in ``run`` of the home folder, else, if that path is too long for a socket, in a
    folder of this user under /tmp. Where several homes share a folder, the name tells them apart. Raises ValueError if
    even the last path is too long.
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
    """Return the path of a symlink to an agent's socket, for programs that are not ours.

    The symlink is missing if a file of another user has this path; our own programs do not follow it.
    """
    return Path(os.environ.get("XDG_RUNTIME_DIR") or _SHARED) / _socket_name(nick)


def earlier_socket(nick: str) -> Path | None:
    """Return the path where a daemon from before an upgrade of culture may listen.

    None if a daemon of another home folder may listen there.
    """
    return None if os.environ.get("XDG_RUNTIME_DIR") else _SHARED / _socket_name(nick)


def home_mark() -> str:
    """Return eight hex digits that identify the home folder, whichever path leads to it."""
    return hashlib.sha256(os.fsencode(os.path.realpath(home()))).hexdigest()[:8]


def agent_sockets() -> Iterator[Path]:
    """Yield the paths that look like sockets of this home's agents, whether in use or not."""
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
        raise ValueError(f"{nick!r} is not a nick")
    return f"culture-{nick}.sock"


def _is_default_home() -> bool:
    """Return whether the home folder of culture is the default one, ``~/.culture``."""
    try:
        usual = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        usual = Path.home()
    return os.path.realpath(home()) == os.path.realpath(usual / ".culture")


def leads_out(file: Path, folder: Path) -> bool:
    """Return whether a file is a symlink that leads out of ``folder``.

    By such a link an agent could have any file read.
    """
    return folder in file.parents and folder.resolve() not in file.resolve().parents


def default_server_name() -> str:
    """Return a short server name made from the name of this machine; ``culture`` if that fails."""
    label = made_short(socket.gethostname())
    return label if valid_short_name(label) else "culture"


def made_short(name: str) -> str:
    """Return a host name reduced to what a short server name may have: letters and digits."""
    return re.sub(r"[^a-z0-9]", "", name.split(".")[0].lower())[:12]
