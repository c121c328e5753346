"""Notifies systemd (``Type=notify``) of the server's state."""

import logging
import os
import socket
import time

log = logging.getLogger(__name__)


def notify(*facts: str) -> None:
    """Send states such as ``READY=1`` to systemd; do nothing if systemd did not start us."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as supervisor:
        try:
            # A leading @ stands for the NUL of an abstract name.
            supervisor.connect("\0" + address[1:] if address[0] == "@" else address)
            supervisor.sendall("\n".join(facts).encode())
        except OSError as error:
            # The variable may be left over from a shell that a service started; the server does not depend on it.
            log.warning("cannot tell the supervisor at %s: %s", address, error.strerror)


def reloading() -> None:
    """Tell systemd that a reload has begun; ``notify("READY=1")`` tells that it is over."""
    notify("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")
