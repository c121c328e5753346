"""Checks of the machine: kernel limits, clocks, versions, and the Unix sockets of daemons."""

import os
import pwd
import resource
import socket
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from culture import __version__
from culture.cli.doctor.inventory import Inventory, display_path
from culture.cli.doctor.runner import Finding, error, hint, warning
from culture.cli.skills import has_other_skill, has_skill
from culture.clients.claude.detect import PLUGIN_MANIFEST
from culture.clients.shared.backends import NoBackend, backend
from culture.clients.shared.skill.call import find_socket
from culture.config import paths
from culture.config.installation import installation, installed_version
from culture.lib.files import PRIVATE_FILE

_NEEDED, _WANTED = 256, 4096
_SOCK_DIAG = 4


def check_descriptors(inventory: Inventory) -> Iterator[Finding]:
    """Report a low limit of open files; a server needs one for each connection."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < _WANTED:
        say = error if most < _NEEDED else warning
        yield say(
            f"a process may have {most} files and connections open",
            "each client and each agent needs some; beyond that nobody can connect",
            f"`ulimit -Hn {_WANTED}` before the start, LimitNOFILE= in a unit, or /etc/security/limits.conf",
        )


def check_kernel(inventory: Inventory) -> Iterator[Finding]:
    """Report features of Linux that culture needs and this machine lacks, such as pidfd."""
    if sys.platform != "linux":
        yield error(f"this is {sys.platform}", "culture is tried on Linux alone", "use Linux, a container or a WSL 2")
        return
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as wrong:
        yield error(
            f"the kernel has no process handles (pidfd_open: {wrong.strerror})",
            "agents and servers could not be stopped reliably",
            "Linux 5.3 or newer; in a container, a newer runtime or another seccomp profile",
        )
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG).close()
    except OSError as wrong:
        yield hint(
            f"the kernel does not tell which user owns a connection (sock_diag: {wrong.strerror})",
            "it is read from /proc instead, which is slower with many connections",
            "a kernel with CONFIG_INET_DIAG, or a container that allows AF_NETLINK",
        )
    if not Path("/proc/self/environ").exists():
        yield error("/proc is not mounted", "an agent's processes could not be found", "mount -t proc proc /proc")


_ODD = 5.0
"""Seconds; a larger difference is no network delay."""
_WRONG = 300.0
"""Seconds; servers refuse times that are further ahead."""


def check_server_clocks(inventory: Inventory) -> Iterator[Finding]:
    """Report servers whose clock differs from the clock of this machine."""
    for name, (host, port, tls) in sorted(_other_servers(inventory).items()):
        ahead = inventory.probe(host, port, tls).ahead
        if ahead is None or abs(ahead) < _ODD:
            continue
        say = error if abs(ahead) >= _WRONG else warning
        yield say(
            f"the clock of {name} is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this machine's",
            "messages are in the wrong order; logins and budgets expire at the wrong time",
            "`timedatectl` on both shows which one is wrong; `timedatectl set-ntp true` puts it right",
        )


def check_file_times(inventory: Inventory) -> Iterator[Finding]:
    """Report files in the home folder whose time is in the future."""
    latest = max(inventory.entries, key=lambda each: each.status.st_mtime, default=None)
    if latest is not None and latest.status.st_mtime > time.time() + _WRONG:
        ahead = latest.status.st_mtime - time.time()
        yield warning(
            f"{display_path(latest.path)} was written {ahead:.0f} s from now",
            "the clock was ahead, or is behind now",
            "`timedatectl` shows the time and whether it is kept right",
        )


def _other_servers(inventory: Inventory) -> dict[str, tuple[str, int, bool]]:
    servers = {}
    if inventory.settings is not None and inventory.settings.agents:
        address = inventory.settings.server
        tls = address.tls or address.fingerprint is not None
        servers[address.name or address.host] = (address.host, address.port, tls)
    for server in inventory.servers:
        for link in inventory.good_links(server):
            if link.endpoint is not None:
                servers[link.name] = (*link.endpoint, link.encrypted)
    return servers


TRIED = (3, 11)
_OLDEST_SQLITE = (3, 35, 0)


def check_python(inventory: Inventory) -> Iterator[Finding]:
    """Report a Python or SQLite that is too old or untested."""
    yield from judge_python(sys.version_info[:3], sqlite3.sqlite_version_info, _options())


def judge_python(python: tuple[int, ...], sqlite: tuple[int, ...], options: frozenset[str]) -> Iterator[Finding]:
    """Report versions of Python and SQLite, or SQLite compile options, that may cause trouble.

    ``options``: the compile options that SQLite has.
    """
    if python[:2] > TRIED:
        yield hint(
            f"Python {_dotted(python)} is newer than what was tried ({_dotted(TRIED)})",
            "if something fails, that may be why",
            f"python{_dotted(TRIED)} -m venv … makes an environment with that one",
        )
    if sqlite < _OLDEST_SQLITE or "ENABLE_FTS5" not in options:
        yield error(
            f"this Python has SQLite {_dotted(sqlite)}{'' if 'ENABLE_FTS5' in options else ' without FTS5'}",
            f"the history needs {_dotted(_OLDEST_SQLITE)} or newer, with FTS5",
            "use the Python of your system's packages, or one of python.org",
        )


def check_skills(inventory: Inventory) -> Iterator[Finding]:
    """Report agents whose program lacks the current IRC instructions."""
    missing: dict[tuple[str, str], list[str]] = {}
    others: dict[tuple[str, str], list[str]] = {}
    for agent in inventory.agents:
        try:
            home = Path(pwd.getpwnam(agent.user).pw_dir) if agent.user is not None else Path.home()
            kind_of_agent, group = backend(agent.agent), (agent.agent, "" if agent.user is None else str(home))
            if not has_skill(kind_of_agent, home):
                missing.setdefault(group, []).append(agent.nick)
            elif has_other_skill(kind_of_agent, home):
                others.setdefault(group, []).append(agent.nick)
        except (KeyError, OSError, NoBackend):
            continue  # reported by other checks, or not ours to see
    for (kind, elsewhere), nicks in missing.items():
        yield hint(
            f"the IRC instructions for {kind} are not installed",
            f"{', '.join(nicks)} know how to send, read and ask only from the help of irc_client",
            f"`culture skills install {kind}{f' --home {elsewhere}' if elsewhere else ''}`",
        )
    for (kind, elsewhere), nicks in others.items():
        yield hint(
            f"the installed IRC instructions for {kind} are of another version",
            f"{', '.join(nicks)} may not know what is new, such as that an answer comes as a prompt",
            f"`culture skills install {kind}{f' --home {elsewhere}' if elsewhere else ''}`",
        )
    if not PLUGIN_MANIFEST.exists() and any(agent.agent == "claude" for agent in inventory.agents):
        yield error(
            f"a file of the installation is not there: {PLUGIN_MANIFEST}",
            "agents of the kind claude start without the IRC instructions",
            f"`{installation().upgrade()}`",
        )


def check_package(inventory: Inventory) -> Iterator[Finding]:
    """Report processes of ours that run another version than the installed one."""
    installed = installed_version()
    if installed not in (None, __version__):
        yield warning(
            f"culture {__version__} runs here, and {installed} is what was installed",
            "the environment was not brought up to date with the files",
            f"`{installation().upgrade()}`",
        )
    for server in inventory.servers:
        if server.note is not None and server.note.version != __version__:
            yield warning(
                f"{server.config.name} runs as culture {server.note.version or 'of an older version'}, "
                f"and {__version__} is installed",
                "it was not started again since the update",
                f"`culture server restart --name {server.config.name}`",
            )


def check_programs(inventory: Inventory) -> Iterator[Finding]:
    """Report programs of agents that are missing, or newer than tested."""
    for need in inventory.needed:
        who = ", ".join(need.users)
        if not any(each.version is not None for each in need.programs):
            remedy = next((each.remedy for each in need.programs if each.remedy), f"`culture backends {need.backend}`")
            yield error(f"what {need.backend} needs is not installed", f"{who} cannot start", remedy)
        for each in need.programs:
            if each.untried:
                yield hint(
                    f"{each.program} {each.version} is newer than what was tried ({each.tried})",
                    f"if {who} fails, that may be why",
                    "`culture backends` shows what is installed",
                )


def _options() -> frozenset[str]:
    connection = sqlite3.connect(":memory:")
    try:
        return frozenset(str(row[0]) for row in connection.execute("PRAGMA compile_options"))
    finally:
        connection.close()


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


_PATIENCE = 1.0
_SHARED = stat.S_IWGRP | stat.S_IWOTH


def check_socket_folder(inventory: Inventory) -> Iterator[Finding]:
    """Report a wrong XDG_RUNTIME_DIR, the folder in which daemons make their sockets."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if not runtime:  # sockets are in the home folder then
        return
    try:
        status = Path(runtime).stat()
    except OSError as wrong:
        yield error(
            f"XDG_RUNTIME_DIR is {runtime}: {wrong.strerror}",
            "the sockets of agents are made there",
            "`loginctl enable-linger` keeps it while you are not logged in; else unset it",
        )
        return
    if status.st_uid not in (0, os.geteuid()):
        yield error(
            f"XDG_RUNTIME_DIR is {runtime}, a folder of another user",
            "it stays so after sudo and su; no socket is made there",
            "`unset XDG_RUNTIME_DIR`, or set it to a folder of your own",
        )
    elif status.st_mode & _SHARED and not status.st_mode & stat.S_ISVTX:
        yield error(
            f"others may write to XDG_RUNTIME_DIR, {runtime}", "no socket is made there", f"chmod 700 {runtime}"
        )


def check_temporary_folder(inventory: Inventory) -> Iterator[Finding]:
    """Report a temporary folder that is not writable or not safe."""
    configured = os.environ.get("TMPDIR")
    place = Path(configured or "/tmp")
    name = f"TMPDIR, {place}," if configured else str(place)
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
        yield error(
            f"{name} cannot be written", "agents' programs and git need it", "`unset TMPDIR`, or make that folder"
        )
        return
    mode = place.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        yield warning(
            f"in {name} everybody may remove the files of everybody",
            "somebody could put files in the place of yours",
            f"chmod +t {place}",
        )


def check_socket_lengths(inventory: Inventory) -> Iterator[Finding]:
    """Report nicks whose socket path is too long for the kernel."""
    for agent in inventory.agents:
        try:
            paths.agent_socket(agent.nick)
        except ValueError as wrong:
            yield error(f"{agent.nick} cannot have a socket", str(wrong), "choose a shorter nick")


def check_sockets(inventory: Inventory) -> Iterator[Finding]:
    """Report daemons' Unix sockets that are missing, another user's, open to others or dead."""
    nicks = {agent.nick for agent in inventory.agents} | inventory.daemons.keys()
    ours = {path: nick for nick in nicks if (path := _socket_of(nick)) is not None}
    sockets = {**{path: "" for path in paths.agent_sockets() if path.lstat().st_uid == os.geteuid()}, **ours}
    for path, nick in sorted(sockets.items()):
        yield from _check_socket(path, nick, nick in inventory.daemons and inventory.daemons[nick].ready)


def _socket_of(nick: str) -> Path | None:
    try:
        return find_socket(nick)
    except ValueError:
        return None


def _check_socket(path: Path, nick: str, runs: bool) -> Iterator[Finding]:
    try:
        status = path.lstat()
    except FileNotFoundError:
        if runs:
            yield error(
                f"{nick} runs, and its socket {path} is not there",
                "it was removed, or the daemon was started with another XDG_RUNTIME_DIR; the agent cannot use IRC",
                f"`culture restart {nick}`",
            )
        return
    if not stat.S_ISSOCK(status.st_mode):
        kind = "a symlink" if stat.S_ISLNK(status.st_mode) else "no socket"
        yield error(f"{path} is {kind}", "culture never makes that; no daemon can start", f"ls -l {path}; rm {path}")
    elif status.st_uid != os.geteuid():
        yield error(
            f"{path} belongs to another user",
            "another user could pose as your agent",
            "`export XDG_RUNTIME_DIR=` a folder of your own",
        )
    elif stat.S_IMODE(status.st_mode) & 0o077:
        yield warning(
            f"others can connect to {path}", "they can make the agent do things", f"chmod 600 {path}", _shut(path)
        )
    elif not _answers(path):
        yield hint(
            f"no daemon answers at {path}",
            "a killed daemon left it behind; the next start removes it",
            f"rm {path}",
            _remove(path),
        )


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
        trial.settimeout(_PATIENCE)
        try:
            trial.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True  # busy, or the path is too long: reported elsewhere
    return True


def _shut(path: Path) -> Callable[[], None]:
    return lambda: path.chmod(PRIVATE_FILE)


def _remove(path: Path) -> Callable[[], None]:
    def mend() -> None:
        if not _answers(path):
            path.unlink()

    return mend
