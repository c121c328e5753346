"""The servers that are compared: how each is started, found ready, and ended."""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
START_TIMEOUT = 20.0
STOP_TIMEOUT = 15.0
CULTURE_COMMAND = (
    "{python} -m culture server start --foreground --config {config} --name spark --host 127.0.0.1 --port {port} "
    "--data-dir {run}"
)
# Debian puts daemons where a user's PATH may not look.
SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])


class NotStarted(Exception):
    """A server did not come up; the text says why."""


@dataclass(frozen=True, slots=True)
class Server:
    """A kind of server; ``command`` is given the port and a scratch folder."""

    name: str
    command: Callable[[int, Path], list[str]]
    version_command: tuple[str, ...]
    concurrency: int
    """Connections to open at once: what this server registers fastest with."""
    nick_prefix: str = ""

    def version(self) -> str:
        """What the server says it is."""
        answer = subprocess.run(self.version_command, cwd=HERE.parent, capture_output=True, text=True, check=False)
        return (answer.stdout.strip().splitlines() or ["unknown"])[0]


@dataclass(frozen=True, slots=True)
class Running:
    """A server that accepts connections."""

    port: int
    pid: int
    folder: Path


def culture(template: str = CULTURE_COMMAND) -> Server:
    """Our server; ``template`` may name ``{python}``, ``{config}``, ``{port}`` and ``{run}``."""

    def command(port: int, run: Path) -> list[str]:
        config = HERE / "peers" / "culture.yaml"
        return [word.format(python=sys.executable, port=port, run=run, config=config) for word in shlex.split(template)]

    return Server("culture", command, (sys.executable, "-m", "culture", "--version"), 256, "spark-")


def _peer(name: str, arguments: tuple[str, ...], concurrency: int) -> Server | None:
    program = shutil.which(name, path=SEARCH_PATH)
    if program is None:
        return None

    def command(port: int, run: Path) -> list[str]:
        template = (HERE / "peers" / f"{name}.conf").read_text(encoding="utf-8")
        config = run / f"{name}.conf"
        config.write_text(template.replace("@PORT@", str(port)).replace("@RUN@", str(run)), encoding="utf-8")
        return [program, *arguments, str(config)]

    return Server(name, command, (program, "--version"), concurrency)


def peers() -> list[Server]:
    """The peers that are installed."""
    found = [
        _peer("ngircd", ("-n", "-f"), 8),
        # InspIRCd registers clients on a timer of one second: all that came in between at once.
        _peer("inspircd", ("--runasroot", "--nofork", "--config"), 1000),
    ]
    return [server for server in found if server is not None]


def on_core(core: int | None) -> list[str]:
    """What goes before a command that is to stay on one core."""
    return [] if core is None else ["taskset", "--cpu-list", str(core)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _wait_ready(process: subprocess.Popen[bytes], command: list[str], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while not _accepts(port):
        if process.poll() is not None or time.monotonic() > deadline:
            tail = log.read_text(encoding="utf-8", errors="replace")[-2000:]
            state = "still starting" if process.returncode is None else f"exit status {process.returncode}"
            raise NotStarted(f"{shlex.join(command)}: {state}\n{tail}")
        time.sleep(0.02)


def end(process: subprocess.Popen[bytes]) -> None:
    """Stop a process that was started in a session of its own, and all it started."""
    for kind, patience in ((signal.SIGTERM, STOP_TIMEOUT), (signal.SIGKILL, None)):
        if process.poll() is not None:
            break
        os.killpg(process.pid, kind)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue


@contextmanager
def running(server: Server, core: int | None = None) -> Iterator[Running]:
    """A fresh process of ``server`` on a free port, gone afterwards together with its files."""
    with tempfile.TemporaryDirectory(prefix="culture-bench-") as folder:
        run = Path(folder)
        run.chmod(0o755)  # ngircd gives up root before it reads
        port, log = _free_port(), run / "output.log"
        command = [*on_core(core), *server.command(port, run)]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=HERE.parent,
                env={**os.environ, "CULTURE_HOME": folder},  # the user's own settings have no part in this
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            _wait_ready(process, command, port, log)
            yield Running(port, process.pid, run)
        finally:
            end(process)
