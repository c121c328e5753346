"""How each link is, for the command line: a file that the server writes while it runs."""

import asyncio
import json
import logging
import os
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culture.config.model import ServerConfig
from culture.lib.files import replace_file
from culture.lib.secret_compare import same_secret

if TYPE_CHECKING:  # the command line asks only where the file is
    from culture.federation.link import Link
    from culture.federation.mesh import Mesh
    from culture.server.skill import Host

log = logging.getLogger(__name__)

_SAMPLES = 600


def path_of(config: ServerConfig) -> Path:
    """Where it is."""
    return config.data_dir / "federation" / "status.json"


class Status:
    """Writes it when something in it changed."""

    def __init__(self, mesh: "Mesh", host: "Host") -> None:
        self._mesh = mesh
        self._host = host
        self._path = path_of(host.config)
        self._last = b""
        self._samples: dict[str, deque[tuple[float, int]]] = {}
        """How far each peer was told our log, a second ago, two seconds ago …"""
        self._is_failing = False

    async def write(self, figures: list[dict[str, Any]]) -> None:
        """Put the figures where the command line finds them."""
        data = json.dumps({"pid": os.getpid(), "links": figures}).encode()
        if data == self._last:
            return
        try:
            await asyncio.to_thread(self._replace, data)
            self._last, self._is_failing = data, False
        except OSError as error:
            if not self._is_failing:
                log.warning("cannot write %s: %s", self._path, error.strerror)
            self._is_failing = True

    def remove(self) -> None:
        """The server ends."""
        self._path.unlink(missing_ok=True)

    def figures(self) -> list[dict[str, Any]]:
        """One entry for each link that shall be."""
        from culture.federation.link import Stage  # is loaded where there is a mesh

        dialler, held = self._mesh.dialler, self._mesh.log
        entries = []
        for name, settings in dialler.wanted.items():
            entry: dict[str, Any] = {"name": settings.name, "address": settings.address, "trust": settings.trust}
            entry["channels"] = list(settings.channels)
            peer = self._mesh.links.get(name)
            if peer is None:
                is_dialled = settings.endpoint is not None
                entry |= {"state": "dialling" if is_dialled else "waiting", "problem": dialler.problems.get(name)}
            else:
                link = peer.link
                entry |= {
                    "state": "linked" if link.stage is Stage.LIVE else "syncing",
                    "since": peer.since,
                    "behind": max(0, held.position - max(link.acked, 0)) if link.acked else None,
                    "queued": peer.connection.waiting,
                    "acknowledged": link.acked,
                    "lag": self._lag(name, link),
                    "secret": "old" if same_secret(link.shows, settings.old_secret) else "present",
                }
            entry["private"] = len(held.held.get(name, ()))
            entries.append(entry)
        return entries

    def _lag(self, name: str, link: "Link") -> int:
        """For how many seconds the peer has not got something on disk that it was told."""
        now, samples = self._host.monotonic(), self._samples.setdefault(name, deque(maxlen=_SAMPLES))
        while samples and samples[0][1] <= link.acked:
            samples.popleft()
        if link.sent > link.acked and (not samples or samples[-1][1] != link.sent):
            samples.append((now, link.sent))
        return int(now - samples[0][0]) if samples else 0

    def _replace(self, data: bytes) -> None:
        replace_file(self._path, data, durable=False, runtime=self._host.runtime)
