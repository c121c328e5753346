"""A real PostgreSQL for the tests: Debian's, on a free port of loopback, started once and stopped at the end."""

import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE

_numbers = count(1)
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",  # nobody pulls the plug of a test
    "max_connections": "40",
    "shared_buffers": "16MB",
    "autovacuum": "off",
    "deadlock_timeout": "100ms",
}
# Loopback is let in, but for those whose name says that they have a password.
_ACCESS = """\
local all all trust
host all keyed 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
"""


class Postgres:
    """One server in a folder of its own, which runs as somebody who is not root."""

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        self._user = _unprivileged()
        self._folder = Path(tempfile.mkdtemp(prefix="culture-postgres-"))
        if self._user:
            shutil.chown(self._folder, self._user)
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()
        self._data = self._folder / "data"
        self._run(
            "initdb", "-D", str(self._data), "-U", "culture", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"
        )
        (self._data / "pg_hba.conf").write_text(_ACCESS)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {**_SETTINGS, "port": str(self.port), "unix_socket_directories": str(self._folder)}
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                # Whatever becomes of the tests, the server does not outlive them.
                ["setpriv", "--pdeathsig", "QUIT", self._binaries / "postgres", "-D", self._data, *options],
                stdout=log,
                stderr=log,
                user=self._user,
                cwd=self._folder,
            )
        end = time.monotonic() + PATIENCE
        while self._ask("postgres", "SELECT 1").returncode != 0:
            assert time.monotonic() < end and self._process.poll() is None, (self._folder / "log").read_text()

    def kill(self) -> None:
        """End it at once, as if its machine had."""
        self._end(signal.SIGQUIT)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def remove(self) -> None:
        """Stop it, and leave nothing behind."""
        self._end(signal.SIGQUIT)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
        self._process = None

    def url(self, database: str, user: str = "culture") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def sql(self, database: str, statement: str) -> str:
        """What the server answers to a statement."""
        done = self._ask(database, statement)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    @contextmanager
    def database(self) -> Iterator[str]:
        """The name of a database with nothing in it, for as long as it is wanted."""
        name = f"history{next(_numbers)}"
        self.sql("postgres", f"CREATE DATABASE {name}")
        try:
            yield name
        finally:
            if not self.is_running:
                self.start()
            self.sql("postgres", f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def corner(self) -> Iterator[str]:
        """The address of a schema with nothing in it, which is made faster than a database."""
        name = f"corner{next(_numbers)}"
        self.sql("postgres", f"CREATE SCHEMA {name}")
        try:
            yield f"{self.url('postgres')}?search_path={name}"
        finally:
            self.sql("postgres", f"DROP SCHEMA {name} CASCADE")

    def _ask(self, database: str, statement: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._binaries / "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", statement, self.url(database)],
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "PGCONNECT_TIMEOUT": "5"},
        )

    def _run(self, program: str, *args: str) -> None:
        subprocess.run(
            [self._binaries / program, *args], check=True, capture_output=True, user=self._user, cwd=self._folder
        )


def postgres() -> Postgres:
    """The server of this run of the tests; where PostgreSQL is not installed, the test skips."""
    binaries = _installed()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed")
    return _started(binaries)


@cache
def _started(binaries: Path) -> Postgres:
    server = Postgres(binaries)
    atexit.register(server.remove)
    server.start()
    return server


@cache
def _installed() -> Path | None:
    """Where the newest server's programs are."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    return max(found, key=lambda path: float(path.parent.name), default=None)


def _unprivileged() -> str | None:
    """Whom to run as: PostgreSQL refuses to be root."""
    if os.geteuid() != 0:
        return None
    names = {each.pw_name for each in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
