"""The process that serves the web page of a server: its pid file, its start and its end."""

import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from culture.cli.local_servers import plain_listener, reached_by, server_user
from culture.cli.server import background, certificate, pid_file
from culture.cli.server.background import PATIENCE
from culture.cli.web import account as webaccount
from culture.config import listen_policy, paths
from culture.config.model import ServerConfig
from culture.lib.files import LockTaken
from culture.lib.process import pid_file as lib_pid_file
from culture.lib.process.background import BackgroundProcess
from culture.lib.process.children import Launch, launch_unrecorded
from culture.lib.process.pid_file import PidFile, ProcessNote
from culture.server.auth.accounts import AccountRefused, AccountsError
from culture.server.errors import StartError
from culture.transport import Address
from culture.web.login_links import MINUTES, link_path, make_link
from culture.web.site import WebSettings, data_folder

log = logging.getLogger(__name__)

GRACE = 10.0


@dataclass(frozen=True)
class WebNote(ProcessNote):
    """The contents of a running web page's pid file; without a url it does not answer yet."""

    url: str = ""
    port: int = 0
    problem: str = ""
    """Why the page is not connected to its server; empty if it is."""


def _file(server: str) -> Path:
    return paths.home() / "run" / f"{server}.page"


def log_file(server: str) -> Path:
    """Return the path of the log file of a server's web page, if that runs in the background."""
    return paths.log_file(f"{server}.web")


def running(server: str) -> WebNote | None:
    """Return what the pid file of a server's running web page says; None if it does not run."""
    return lib_pid_file.running(_file(server), WebNote)


@contextmanager
def held(server: str) -> Iterator[PidFile[WebNote]]:
    """Hold the pid file of a server's web page during the block, as its process.

    ``StartError`` is raised if another process holds it.
    """
    file = PidFile(_file(server), WebNote(os.getpid(), time.time()))
    try:
        file.acquire()
    except LockTaken as taken:
        other = WebNote.parse(taken.note)
        pid = f" (pid {other.pid})" if other else ""
        raise StartError(
            f"the web page of {server} is running already{pid}; `culture web status` shows where"
        ) from None
    try:
        yield file
    finally:
        file.release()


def start(server: str, options: Sequence[str], launch: Launch = launch_unrecorded) -> WebNote:
    """Start a server's web page in the background and wait; return what its pid file says.

    ``server``: the server's name. ``options``: arguments for the new process. ``launch``: the function that starts it.
    EndedEarly is raised if the process exits before it answers, StartError if that takes too long.
    """
    log = log_file(server)
    command = background.culture_command("web", "serve", *options)
    process = BackgroundProcess(f"The web page of {server}", command, log, launch=launch)

    def answering(pid: int) -> WebNote | None:
        note = running(server)
        return note if note and note.pid == pid and note.url else None

    note = process.wait_until(answering, PATIENCE)
    if note is None:
        process.terminate()
        raise StartError(f"the web page of {server} did not answer within {PATIENCE:g} s; see {log}")
    return note


def end(server: str) -> bool | None:
    """Stop a server's web page; return whether its process exited, None if it did not run."""
    return lib_pid_file.end(_file(server), WebNote, GRACE)


def settings_of(config: ServerConfig, host: str | None = None, port: int | None = None) -> WebSettings:
    """Return the settings of a server's web page; its account is made if missing.

    ``host``, ``port``: override those in ``config``. ``StartError`` is raised if others could read the page's traffic,
    AccountRefused if the account cannot be used.
    """
    said = {key: value for key, value in (("host", host), ("port", port)) if value is not None}
    web = config.web.model_copy(update=said)
    if web.is_exposed and not (web.tls or config.trusted_network):
        raise StartError(listen_policy.unprotected(web.host))
    changed = config.model_copy(update={"web": web})
    token = webaccount.ensure_token(changed)
    login_version = webaccount.login_version(changed)
    folder = data_folder(changed)
    return WebSettings(
        changed,
        _address(changed),
        webaccount.NAME,
        token,
        folder,
        web.port,
        login_version,
        lambda: _renewed_token(changed),
    )


def _renewed_token(config: ServerConfig) -> str | None:
    try:
        return webaccount.ensure_token(config)
    except (AccountRefused, AccountsError, OSError) as error:
        log.error("cannot renew the token of the web page's account: %s", error)
        return None


def _address(config: ServerConfig) -> Address:
    """Return the address at which the web page connects to its server.

    It is that of the running server, else the configured one. ``StartError`` is raised if no listener can be used.
    """
    note = pid_file.running(config.name)
    addresses = note.addresses if note and note.addresses else tuple((each.host, each.port) for each in config.listen)
    found = plain_listener(config, addresses)
    if found is not None:
        return Address(found.host, found.port, user=server_user())
    for listener, (host, port) in zip(config.listen, addresses, strict=False):
        if listener.tls is not None and listener.websocket is None:
            return Address(reached_by(host), port, True, certificate.fingerprint_of(listener.tls.certificate))
    raise StartError(
        f"{config.name} listens for WebSocket alone, and the web page needs an address for IRC under listen:"
    )


def link(config: ServerConfig, account: str, minutes: int = MINUTES) -> str:
    """Return a URL of the web page that logs an account in once, within ``minutes``."""
    note = running(config.name)
    token = make_link(data_folder(config), account, minutes)
    url = note.url if note and note.url else _planned(config)
    return f"{url}{link_path(token)}"


def _planned(config: ServerConfig) -> str:
    return WebSettings(config, Address(""), "", "", data_folder(config), config.web.port, lambda _: None).url
