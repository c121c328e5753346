"""Starting a server that stays when the command line is gone."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from culture.cli import pidfile
from culture.config import paths
from culture.server.errors import StartError

PATIENCE = 30.0
STEP = 0.02
LAST_LINES = 20


class EndedEarly(Exception):
    """The server ended before it accepted anybody; ``text`` is what it said, ``code`` how it ended."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


def start(server: str, options: Sequence[str]) -> pidfile.Note:
    """Run the server as a process of its own and return as soon as it accepts connections."""
    log = paths.log_file(server)
    fd = paths.open_private(log, os.O_WRONLY | os.O_APPEND)
    try:
        before = os.fstat(fd).st_size
        process = subprocess.Popen(
            [sys.executable, "-m", "culture", "server", "start", "--foreground", *options],
            stdin=subprocess.DEVNULL,
            stdout=fd,
            stderr=fd,
            start_new_session=True,
        )
    finally:
        os.close(fd)
    return _ready(server, process, log, before)


def _ready(server: str, process: subprocess.Popen[bytes], log: Path, before: int) -> pidfile.Note:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise EndedEarly(_said(log, before), process.returncode)
        note = pidfile.running(server)
        if note and note.pid == process.pid and note.addresses and all(map(accepts, note.addresses)):
            return note
        time.sleep(STEP)
    process.terminate()
    raise StartError(f"{server} did not accept connections within {PATIENCE:g} s; see {log}")


def accepts(address: tuple[str, int]) -> bool:
    """Whether somebody answers at an address."""
    try:
        socket.create_connection(address, timeout=1).close()
    except OSError:
        return False
    return True


def _said(log: Path, before: int) -> str:
    with log.open("rb") as text:
        text.seek(before)
        lines = text.read().decode(errors="replace").splitlines()
    return "\n".join(lines[-LAST_LINES:])
