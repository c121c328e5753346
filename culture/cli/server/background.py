"""Starting what stays when the command line is gone: the server first of all."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from culture.cli.output import fail
from culture.cli.server import pid_file
from culture.cli.up.child_processes import Launch, plainly
from culture.config import paths
from culture.config.agents import ServerAddress
from culture.config.peer_uid import PortHeld, check_peer
from culture.protocol.vocabulary import Exit
from culture.server.errors import StartError

PATIENCE = 30.0
"""How long a server, or its page, may take until it answers."""
STEP = 0.02
_CONNECTING = 1.0
LAST_LINES = 20
T = TypeVar("T")


class EndedEarly(Exception):
    """What was started ended before it was there; ``text`` is what it said, ``code`` how it ended."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.text = text
        self.code = Exit.WRONG_CONFIGURATION if code == Exit.WRONG_CONFIGURATION else Exit.FAILED


class Begun:
    """A `culture` with these words, as a process of its own that prints to a log."""

    def __init__(self, name: str, words: Sequence[str], log: Path, launch: Launch = plainly) -> None:
        self._name = name
        self._log = log
        fd = paths.open_private(log, os.O_WRONLY | os.O_APPEND)
        try:
            self._before = os.fstat(fd).st_size
            self._process = launch(name, lambda: _process(words, fd))
        finally:
            os.close(fd)

    def until(self, ready: Callable[[int], T | None], patience: float) -> T | None:
        """What ``ready`` knows of its pid, as soon as it knows it; None when that takes longer than this."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise EndedEarly(self._said(), self._process.returncode)
            found = ready(self._process.pid)
            if found is not None:
                return found
            time.sleep(STEP)
        return None

    def end(self) -> None:
        """Have it end after all."""
        self._process.terminate()

    def _said(self) -> str:
        with self._log.open("rb") as text:
            # It may have been put aside meanwhile.
            text.seek(self._before if self._log.stat().st_size >= self._before else 0)
            lines = text.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-LAST_LINES:]) or f"{self._name} ended at once; see {self._log}"


def _process(words: Sequence[str], output: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "culture", *words],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


def start(server: str, options: Sequence[str], launch: Launch = plainly) -> pid_file.ServerNote:
    """Run the server as a process of its own and return as soon as it accepts connections."""
    log = paths.log_file(server)
    begun = Begun(server, ["server", "start", "--foreground", *options], log, launch)

    def accepting(pid: int) -> pid_file.ServerNote | None:
        note = pid_file.running(server)
        is_ready = note and note.pid == pid and note.addresses and all(map(accepts, note.addresses))
        return note if is_ready else None

    note = begun.until(accepting, PATIENCE)
    if note is None:
        begun.end()
        raise StartError(f"{server} did not accept connections within {PATIENCE:g} s; see {log}")
    return note


def holder(address: ServerAddress) -> PortHeld | None:
    """The other user of this machine who holds the port of a server, where its certificate would not tell."""
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
    """End the command where nobody, or another user of this machine, is where the server should be."""
    if not accepts((address.host, address.port)):
        fail(
            f"no server answers at {address.host} port {address.port}. Start it with `culture server start`, or "
            f"correct `server:` in {file}"
        )
    if held := holder(address):
        fail(str(held))


def accepts(address: tuple[str, int]) -> bool:
    """Whether somebody answers at an address."""
    try:
        socket.create_connection(address, timeout=_CONNECTING).close()
    except OSError:
        return False
    return True
