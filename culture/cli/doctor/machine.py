"""What the kernel gives us: descriptors, handles of processes, whose a connection is."""

import os
import resource
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from culture.cli.doctor.finding import Finding, error, hint, warning
from culture.cli.doctor.scene import Scene

_NEEDED, _WANTED = 256, 4096
_SOCK_DIAG = 4


def descriptors(scene: Scene) -> Iterator[Finding]:
    """How many connections and files a server may have: it takes as many as it may."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < _WANTED:
        say = error if most < _NEEDED else warning
        yield say(
            f"a process may have {most} files and connections open",
            "each client and each agent takes some; beyond that nobody gets in",
            f"`ulimit -Hn {_WANTED}` before the start, LimitNOFILE= in a unit, or /etc/security/limits.conf",
        )


def kernel(scene: Scene) -> Iterator[Finding]:
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
