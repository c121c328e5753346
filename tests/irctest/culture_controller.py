"""How irctest starts culture: one foreground server per test, on loopback, in a folder of its own."""

import itertools
import json
import os
import random
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from irctest import patma
from irctest.basecontrollers import BaseServerController, DirectoryBasedController
from irctest.cases import BaseServerTestCase
from irctest.runner import NotImplementedByController
from irctest.specifications import Capabilities, OptionalBehaviors

from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.auth.password import PasswordVerifier

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[1]
# Below the ports that the kernel hands out to clients, a stretch for each parallel worker.
FIRST_PORT = 20_000
PORTS_PER_WORKER = 3_000


def ports() -> Iterator[int]:
    """Ports to try in turn, never those of another worker."""
    worker = int(re.sub(r"\D", "", os.environ.get("PYTEST_XDIST_WORKER", "")) or 0) % 4
    first = FIRST_PORT + worker * PORTS_PER_WORKER
    start = random.randrange(PORTS_PER_WORKER)
    return (first + (start + step) % PORTS_PER_WORKER for step in itertools.count())


def is_free(port: int) -> bool:
    """Tell whether a server could listen on ``port`` of the loopback address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


@cache
def verifier(password: str) -> PasswordVerifier:
    """What is kept of a password; it takes long to make, so each one is made once."""
    return PasswordVerifier.of(password)


class CultureController(BaseServerController, DirectoryBasedController):
    """What culture claims to do, and how to run it. Whatever is listed here must work: it turns skips into failures."""

    software_name = "culture"
    _port_wait_interval = 0.01
    supports_sts = False
    supported_sasl_mechanisms = {"PLAIN", "SCRAM-SHA-256"}  # noqa: RUF012  the suite's own type
    extban_mute_char = "m"

    capabilities = frozenset(
        {
            Capabilities.ACCOUNT_NOTIFY,
            Capabilities.ACCOUNT_TAG,
            Capabilities.AWAY_NOTIFY,
            Capabilities.BATCH,
            Capabilities.ECHO_MESSAGE,
            Capabilities.EXTENDED_JOIN,
            Capabilities.EXTENDED_MONITOR,
            Capabilities.LABELED_RESPONSE,
            Capabilities.MESSAGE_REDACTION,
            Capabilities.MESSAGE_TAGS,
            Capabilities.MULTILINE,
            Capabilities.MULTI_PREFIX,
            Capabilities.READ_MARKER,
            Capabilities.SERVER_TIME,
            Capabilities.SETNAME,
        }
    )
    optional_behaviors = frozenset(
        {
            OptionalBehaviors.BAN_EXCEPTION_MODE,
            OptionalBehaviors.CAP_REQ_MINUS,
            OptionalBehaviors.ELIST_C,
            OptionalBehaviors.ELIST_M,
            OptionalBehaviors.ELIST_N,
            OptionalBehaviors.ELIST_T,
            OptionalBehaviors.ELIST_U,
            OptionalBehaviors.INVITE_EXCEPTION_MODE,
            OptionalBehaviors.INVITE_LIST,
            OptionalBehaviors.INVITE_OVERRIDES_LIMIT,
            OptionalBehaviors.METADATA_BEFORE_CONNECT,
            OptionalBehaviors.MULTI_JOIN,
            OptionalBehaviors.MULTI_KICK,
            OptionalBehaviors.MULTI_NAMES_COMMAND,
            OptionalBehaviors.MULTI_PRIVMSG,
            OptionalBehaviors.NO_CTCP,
            OptionalBehaviors.SASL_AFTER_REGISTRATION,
            OptionalBehaviors.SASL_REAUTHENTICATION,
        }
    )
    isupport = {  # noqa: RUF012  the suite's own type
        "ACCOUNTEXTBAN": "a",
        "BOT": "B",
        "CASEMAPPING": "ascii",
        "CHATHISTORY": "1000",
        "ELIST": "CMNTU",
        "EXCEPTS": "e",
        "EXTBAN": ",am",
        "INVEX": "I",
        "MONITOR": "100",
        "MSGREFTYPES": "msgid,timestamp",
        "PREFIX": "(ov)@+",
        "STATUSMSG": "@+",
        "TARGMAX": patma.ANYSTR,
        "UTF8ONLY": None,
        "WHOX": None,
    }

    _ports = ports()
    _last: subprocess.Popen[bytes] | None = None

    def get_hostname_and_port(self) -> tuple[str, int]:
        """Choose where the server listens. The suite's own way binds every interface to find a port."""
        return "127.0.0.1", next(port for port in self._ports if is_free(port))

    def run(
        self,
        hostname: str,
        port: int,
        *,
        password: str | None,
        ssl: bool,
        run_services: bool,
        faketime: str | None,
        websocket_hostname: str | None = None,
        websocket_port: int | None = None,
    ) -> None:
        """Write the configuration and start the server; the suite waits for the port."""
        if self.test_config.account_registration_requires_email:
            raise NotImplementedByController("accounts that need a mail address")
        self._end_leftover()
        self.create_config()
        assert self.directory
        self.hostname, self.port = hostname, port
        settings = self._configuration(ssl)
        if password:
            settings["password"] = password
        if run_services:
            early = self.test_config.account_registration_before_connect
            settings["self_registration"] = "anybody" if early else "inside"
        if websocket_port:
            # The suite's client is no browser and does not log in.
            web = {"host": websocket_hostname, "port": websocket_port, "websocket": {"origins": ["none"]}}
            settings |= {"listen": [*settings["listen"], web], "trusted_network": True}
        config = self.directory / "culture.yaml"
        config.write_text(json.dumps(settings))  # JSON is YAML
        command = [*self._culture(faketime), "server", "start", "--foreground", "--config", str(config)]
        self.proc = self.execute(command, cwd=self.directory, env=self._environment())
        type(self)._last = self.proc
        self._note(self.proc.pid)

    def _culture(self, faketime: str | None) -> list[str]:
        rate = re.search(r"x(\d+)", faketime or "")
        if rate is None:
            return [sys.executable, "-m", "culture"]
        self.faketime_enabled = True
        return [sys.executable, str(HERE / "fast_clock.py"), rate[1]]

    def _environment(self) -> dict[str, str]:
        environment = os.environ | {"PYTHONPATH": str(PROJECT), "CULTURE_HOME": str(self.directory)}
        # The run script spares the suite's folder; our own modules are compiled once, not once per test.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        return environment

    def wait_for_services(self) -> None:
        """The accounts are there with the server."""
        self.wait_for_port()

    def registerUser(self, case: BaseServerTestCase, username: str, password: str | None = None) -> None:
        """Make an account of no particular class, whose user is gone with the last client unless the test needs it."""
        assert self.directory
        kept = verifier(password) if password else None
        AccountStore(self.directory / "accounts.json").add(
            new_account(username, UserClass.UNKNOWN, verifier=kept, always_on=self._stays())
        )

    def _stays(self) -> bool:
        """Whether the test wants users who stay without a client: it says so in the words of ergo alone."""
        asked: dict[str, Any] = {"accounts": {"multiclient": {}}, "server": {}}
        if self.test_config.ergo_config:
            self.test_config.ergo_config(asked)
        return asked["accounts"].get("multiclient", {}).get("always-on") in ("opt-out", "mandatory")

    def _configuration(self, ssl: bool) -> dict[str, Any]:
        assert self.directory
        listen: dict[str, Any] = {"host": self.hostname, "port": self.port}
        if ssl:
            from culture.server.net import certificates

            files = {name: self.directory / f"{name}.pem" for name in ("certificate", "key")}
            certificates.make([self.hostname], 1, **files)
            listen["tls"] = {name: str(path) for name, path in files.items()}
        return {
            "name": "My.Little.Server",
            "description": "test server",
            "nick_prefix": "off",
            "listen": [listen],
            "data_dir": str(self.directory / "data"),
            "accounts_file": str(self.directory / "accounts.json"),
            "channels": [],
            "operators": [{"name": "operuser", "password": "operpassword"}],
            "flood": {"loopback": {"rate": 0}},
            # Loading a model takes longer than a test.
            "history": {"semantic": {"enabled": False}},
        }

    def _end_leftover(self) -> None:
        """End the server of a test whose set-up failed: the suite runs no tear-down after that."""
        left = type(self)._last
        if left is not None and left.poll() is None:
            left.kill()
            left.wait()

    @staticmethod
    def _note(pid: int) -> None:
        """Leave a note of the process, for the run script to end it if nobody else does."""
        if notes := os.environ.get("CULTURE_IRCTEST_PIDS"):
            with open(notes, "a") as file:
                file.write(f"{pid}\n")


def get_irctest_controller_class() -> type[CultureController]:
    """Tell the suite which controller to use."""
    return CultureController
