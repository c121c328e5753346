"""Starts the server in the background, and checks whether and who answers at an address."""

import socket
import sys
from collections.abc import Sequence
from contextlib import suppress

from culture.cli.output import fail
from culture.cli.server import pid_file
from culture.config import paths
from culture.config.agents import ServerAddress
from culture.config.peer_uid import PortHeld, check_peer
from culture.lib.process.background import BackgroundProcess
from culture.lib.process.children import Launch, launch_unrecorded
from culture.server.errors import StartError

PATIENCE = 30.0
"""Seconds that a server or web page may take until it answers."""
_CONNECTING = 1.0


def culture_command(*words: str) -> list[str]:
    """Return the command line that runs ``culture`` with these arguments in a new process."""
    return [sys.executable, "-m", "culture", *words]


def start(server: str, options: Sequence[str], launch: Launch = launch_unrecorded) -> pid_file.ServerNote:
    """Start a server in the background and wait until it answers; return what its pid file says.

    ``server``: its name. ``options``: arguments for the new process. ``launch``: the function that starts it.
    EndedEarly is raised if the process exits before it answers, StartError if that takes too long.
    """
    log = paths.log_file(server)
    command = culture_command("server", "start", "--foreground", *options)
    process = BackgroundProcess(server, command, log, launch=launch)

    def accepting(pid: int) -> pid_file.ServerNote | None:
        note = pid_file.running(server)
        is_ready = note and note.pid == pid and note.addresses and all(map(accepts, note.addresses))
        return note if is_ready else None

    note = process.wait_until(accepting, PATIENCE)
    if note is None:
        process.terminate()
        raise StartError(f"{server} did not accept connections within {PATIENCE:g} s; see {log}")
    return note


def holder(address: ServerAddress) -> PortHeld | None:
    """Return the PortHeld error if another user's process listens at a server's address.

    None if the process is ours, if there is none, or if TLS proves the server's identity.
    """
    if address.tls or address.fingerprint is not None:
        return None
    found = None
    with suppress(OSError):
        for family, kind, number, _, place in socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM):
            with socket.socket(family, kind, number) as trial, suppress(ConnectionError, TimeoutError):
                trial.settimeout(_CONNECTING)
                trial.connect(place)
                try:
                    check_peer(trial, address.user)
                    return None
                except PortHeld as held:
                    found = found or held
    return found


def check_server(address: ServerAddress, file: str = "agents.yaml") -> None:
    """End the command if no server answers, or another user's process has its port.

    ``address``: the server's. ``file``: the file that names it, for the error message.
    """
    if not accepts((address.host, address.port)):
        fail(
            f"no server answers at {address.host} port {address.port}. Start it with `culture server start`, or "
            f"correct `server:` in {file}"
        )
    if held := holder(address):
        fail(str(held))


def accepts(address: tuple[str, int]) -> bool:
    """Whether some process accepts TCP connections at a host and port."""
    try:
        socket.create_connection(address, timeout=_CONNECTING).close()
    except OSError:
        return False
    return True
