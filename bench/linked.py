"""Two linked servers, and clients that talk to them one line at a time."""

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from secrets import token_hex

from bench.servers import CULTURE_COMMAND, Running, Server, running

PATIENCE = 60.0
_LOOK_AGAIN = 0.01
_COMMAND = CULTURE_COMMAND.replace("--name spark", "--name {name}")


class Talker:
    """A client that waits for each answer."""

    def __init__(self, port: int, nick: str) -> None:
        self.nick = nick
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._read = b""
        self.send(f"NICK {nick}\r\nUSER bench 0 * :Bench")
        self.until(" 001 ")
        self.ask("PING in", " PONG ")

    def send(self, line: str) -> None:
        """Send a line."""
        self.socket.sendall(line.encode() + b"\r\n")

    def line(self) -> str:
        """The next line; PINGs are answered on the way."""
        while True:
            line, end, rest = self._read.partition(b"\r\n")
            if not end:
                more = self.socket.recv(1 << 16)
                if not more:
                    raise SystemExit(f"{self.nick} was dropped")
                self._read += more
                continue
            self._read = rest
            if not line.startswith(b"PING"):
                return line.decode()
            self.socket.sendall(line.replace(b"PING", b"PONG", 1) + b"\r\n")

    def until(self, part: str) -> list[str]:
        """Everything up to the line with this in it, that line last."""
        got = [self.line()]
        while part not in got[-1]:
            got.append(self.line())
        return got

    def ask(self, line: str, end: str) -> list[str]:
        """Send a line; everything up to the end of the answer."""
        self.send(line)
        return self.until(end)

    def close(self) -> None:
        """Leave."""
        self.socket.close()


def waiting(history: bool, secret: str) -> AbstractContextManager[Running]:
    """spark, which thor may link to."""
    return _server("spark", history, {"name": "thor", "secret": secret})


def dialling(history: bool, secret: str, port: int) -> AbstractContextManager[Running]:
    """thor, which links to spark on this port."""
    return _server("thor", history, {"name": "spark", "secret": secret, "address": f"127.0.0.1:{port}"})


@contextmanager
def pair(history: bool) -> Iterator[tuple[Running, Running]]:
    """Both; the link takes a moment more."""
    secret = token_hex(16)
    with waiting(history, secret) as spark, dialling(history, secret, spark.port) as thor:
        yield spark, thor


def _server(name: str, history: bool, link: dict[str, str]) -> AbstractContextManager[Running]:
    settings = {
        "flood": {"loopback": {"rate": 0}},
        "urlindex": {"enabled": False},
        "history": {"enabled": history, "semantic": {"enabled": False}},
        "links": [link],
    }

    def command(port: int, run: Path) -> list[str]:
        config = run / "culture.yaml"
        config.write_text(json.dumps(settings), encoding="utf-8")
        words = {"python": sys.executable, "name": name, "port": port, "run": run / "data", "config": config}
        return [word.format(**words) for word in _COMMAND.split()]

    return running(Server("culture", command, (sys.executable, "-m", "culture", "--version"), 256, f"{name}-"))


def wait_for(fact: Callable[[], bool], text: str) -> None:
    """Wait until this is so."""
    deadline = time.monotonic() + PATIENCE
    while not fact():
        if time.monotonic() > deadline:
            raise SystemExit(f"after {PATIENCE:g} s still not: {text}")
        time.sleep(_LOOK_AGAIN)


def sees(talker: Talker, nick: str) -> bool:
    """Whether somebody's server knows this nick."""
    return nick in talker.ask(f"ISON {nick}", " 303 ")[-1].rpartition(":")[2].split()


def cpu(target: Running) -> float:
    """Seconds that a server has computed so far."""
    fields = Path(f"/proc/{target.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
