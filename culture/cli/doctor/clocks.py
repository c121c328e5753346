"""Whether the clocks agree: this machine's with that of every server it talks to, and with its own past."""

import time
from collections.abc import Iterator

from culture.cli.doctor.finding import Finding, error, warning
from culture.cli.doctor.scene import Scene, shown

_ODD = 5.0
"""Seconds; more is no mere delay."""
_WRONG = 300.0
"""Servers do not believe times that are so far ahead."""


def servers(scene: Scene) -> Iterator[Finding]:
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


def past(scene: Scene) -> Iterator[Finding]:
    """Nothing was written in the future."""
    latest = max(scene.entries, key=lambda each: each.status.st_mtime, default=None)
    if latest is not None and latest.status.st_mtime > time.time() + _WRONG:
        ahead = latest.status.st_mtime - time.time()
        yield warning(
            f"{shown(latest.path)} was written {ahead:.0f} s from now",
            "the clock was ahead, or is behind now",
            "`timedatectl` shows the time and whether it is kept right",
        )


def _elsewhere(scene: Scene) -> dict[str, tuple[str, int, bool]]:
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
