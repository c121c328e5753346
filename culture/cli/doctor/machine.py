"""What the kernel gives us: descriptors, handles of processes, whose a connection is."""

import os
import pwd
import resource
import socket
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from culture import __version__
from culture.cli.doctor.inventory import Inventory, shown
from culture.cli.doctor.runner import Finding, error, hint, warning
from culture.cli.skills import has_other_skill, has_skill
from culture.clients.claude.detect import PLUGIN_MANIFEST
from culture.clients.shared.backends import NoBackend, backend
from culture.config.installation import installation, installed_version

_NEEDED, _WANTED = 256, 4096
_SOCK_DIAG = 4


def descriptors(scene: Inventory) -> Iterator[Finding]:
    """How many connections and files a server may have: it takes as many as it may."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < _WANTED:
        say = error if most < _NEEDED else warning
        yield say(
            f"a process may have {most} files and connections open",
            "each client and each agent takes some; beyond that nobody gets in",
            f"`ulimit -Hn {_WANTED}` before the start, LimitNOFILE= in a unit, or /etc/security/limits.conf",
        )


def kernel(scene: Inventory) -> Iterator[Finding]:
    """What culture is built on."""
    if sys.platform != "linux":
        yield error(f"this is {sys.platform}", "culture is tried on Linux alone", "use Linux, a container or a WSL 2")
        return
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as wrong:
        yield error(
            f"the kernel gives no handles of processes (pidfd_open: {wrong.strerror})",
            "no agent and no server could be ended with certainty",
            "Linux 5.3 or newer; in a container, a newer runtime or another seccomp profile",
        )
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG).close()
    except OSError as wrong:
        yield hint(
            f"the kernel does not tell whose a connection is (sock_diag: {wrong.strerror})",
            "it is read from /proc instead, which is slower with many connections",
            "a kernel with CONFIG_INET_DIAG, or a container that allows AF_NETLINK",
        )
    if not Path("/proc/self/environ").exists():
        yield error("/proc is not mounted", "an agent's processes could not be found", "mount -t proc proc /proc")


_ODD = 5.0
"""Seconds; more is no mere delay."""
_WRONG = 300.0
"""Servers do not believe times that are so far ahead."""


def servers(scene: Inventory) -> Iterator[Finding]:
    """The server of the agents, and those that this one is linked to."""
    for name, (host, port, tls) in sorted(_elsewhere(scene).items()):
        ahead = scene.probe(host, port, tls).ahead
        if ahead is None or abs(ahead) < _ODD:
            continue
        say = error if abs(ahead) >= _WRONG else warning
        yield say(
            f"the clock of {name} is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this machine's",
            "messages stand in the wrong order, logins and budgets end at the wrong time",
            "`timedatectl` on both shows which one is wrong; `timedatectl set-ntp true` puts it right",
        )


def past(scene: Inventory) -> Iterator[Finding]:
    """Nothing was written in the future."""
    latest = max(scene.entries, key=lambda each: each.status.st_mtime, default=None)
    if latest is not None and latest.status.st_mtime > time.time() + _WRONG:
        ahead = latest.status.st_mtime - time.time()
        yield warning(
            f"{shown(latest.path)} was written {ahead:.0f} s from now",
            "the clock was ahead, or is behind now",
            "`timedatectl` shows the time and whether it is kept right",
        )


def _elsewhere(scene: Inventory) -> dict[str, tuple[str, int, bool]]:
    found = {}
    if scene.settings is not None and scene.settings.agents:
        address = scene.settings.server
        tls = address.tls or address.fingerprint is not None
        found[address.name or address.host] = (address.host, address.port, tls)
    for server in scene.servers:
        for link in scene.good_links(server):
            if link.endpoint is not None:
                found[link.name] = (*link.endpoint, link.encrypted)
    return found


TRIED = (3, 11)
_OLDEST_SQLITE = (3, 35, 0)


def python(scene: Inventory) -> Iterator[Finding]:
    """What everything runs in."""
    yield from of_python(sys.version_info[:3], sqlite3.sqlite_version_info, _options())


def of_python(python: tuple[int, ...], sqlite: tuple[int, ...], options: frozenset[str]) -> Iterator[Finding]:
    """What to say of a Python with such an SQLite."""
    if python[:2] > TRIED:
        yield hint(
            f"Python {_dotted(python)} is newer than what was tried ({_dotted(TRIED)})",
            "should something be odd, that may be why",
            f"python{_dotted(TRIED)} -m venv … makes an environment with that one",
        )
    if sqlite < _OLDEST_SQLITE or "ENABLE_FTS5" not in options:
        yield error(
            f"this Python has SQLite {_dotted(sqlite)}{'' if 'ENABLE_FTS5' in options else ' without FTS5'}",
            f"the history needs {_dotted(_OLDEST_SQLITE)} or newer, with FTS5",
            "use the Python of your system's packages, or one of python.org",
        )


def skills(scene: Inventory) -> Iterator[Finding]:
    """Whether the agents' programs have the irc skill."""
    missing: dict[tuple[str, str], list[str]] = {}
    others: dict[tuple[str, str], list[str]] = {}
    for agent in scene.agents:
        try:
            home = Path(pwd.getpwnam(agent.user).pw_dir) if agent.user is not None else Path.home()
            made, group = backend(agent.agent), (agent.agent, "" if agent.user is None else str(home))
            if not has_skill(made, home):
                missing.setdefault(group, []).append(agent.nick)
            elif has_other_skill(made, home):
                others.setdefault(group, []).append(agent.nick)
        except (KeyError, OSError, NoBackend):
            continue  # told by other checks, or not ours to look at
    for (kind, elsewhere), nicks in missing.items():
        yield hint(
            f"the irc skill of {kind} is not installed",
            f"{', '.join(nicks)} know how to send, read and ask only from the help of irc_client",
            f"`culture skills install {kind}{f' --home {elsewhere}' if elsewhere else ''}`",
        )
    for (kind, elsewhere), nicks in others.items():
        yield hint(
            f"the irc skill of {kind} that is installed is of another version",
            f"{', '.join(nicks)} may not know what is new, such as that an answer comes as a prompt",
            f"`culture skills install {kind}{f' --home {elsewhere}' if elsewhere else ''}`",
        )
    if not PLUGIN_MANIFEST.exists() and any(agent.agent == "claude" for agent in scene.agents):
        yield error(
            f"a file of the installation is not there: {PLUGIN_MANIFEST}",
            "agents of the kind claude start without the irc skill",
            f"`{installation().upgrade()}`",
        )


def package(scene: Inventory) -> Iterator[Finding]:
    """What is installed is what runs."""
    installed = installed_version()
    if installed not in (None, __version__):
        yield warning(
            f"culture {__version__} runs here, and {installed} is what was installed",
            "the environment was not brought up to date with the files",
            f"`{installation().upgrade()}`",
        )
    for server in scene.servers:
        if server.note is not None and server.note.version != __version__:
            yield warning(
                f"{server.config.name} runs as culture {server.note.version or 'of an older version'}, "
                f"and {__version__} is installed",
                "it was not started again since the update",
                f"`culture server restart --name {server.config.name}`",
            )


def backends(scene: Inventory) -> Iterator[Finding]:
    """The programs of the agents that are configured."""
    for need in scene.needed:
        who = ", ".join(need.users)
        if not any(each.version is not None for each in need.programs):
            remedy = next((each.remedy for each in need.programs if each.remedy), f"`culture backends {need.backend}`")
            yield error(f"what {need.backend} needs is not installed", f"{who} cannot start", remedy)
        for each in need.programs:
            if each.untried:
                yield hint(
                    f"{each.program} {each.version} is newer than what was tried ({each.tried})",
                    f"should {who} be odd, that may be why",
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
