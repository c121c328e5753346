"""Servers that cannot be reached any more: their users are gone until the way is whole again."""

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from culture.federation.trust import owner_of
from culture.server.core.state import User
from culture.server.events import Left, Unlinked
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh

log = logging.getLogger(__name__)

Ends = tuple[str, str]
_AT_ONCE = 500  # users who go in one turn: nobody shall wait long, and no queue fill up


class Splits:
    """Lets their users go, those behind one broken link together."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host

    def lose(self, lost: Mapping[str, Ends]) -> None:
        """These servers are gone, each behind a link between these two."""
        users: dict[Ends, list[User]] = {ends: [] for ends in lost.values()}
        for user in self._host.network.users.values():
            ends = lost.get(owner_of(user.nick))
            if ends is not None:
                users[ends].append(user)
        for server in lost:
            there = self._host.network.servers.get(server)
            if there is not None:
                self._host.publish(Unlinked(self._host.stamp(), there.name))
                log.info("%s cannot be reached any more", there.name)
        for ends, gone in users.items():
            self._let_go(ends, gone)

    def _let_go(self, ends: Ends, users: list[User]) -> None:
        own, name = self._mesh.own, self._mesh.topology.name
        shown = tuple(self._host.config.name if end == own else name(end) for end in ends)
        self._go(shown, users[:_AT_ONCE])
        if len(users) > _AT_ONCE:
            self._host.start(self._go_on(shown, users[_AT_ONCE:]))

    async def _go_on(self, shown: tuple[str, ...], users: list[User]) -> None:
        for start in range(0, len(users), _AT_ONCE):
            await asyncio.sleep(0)
            with self._host.turn(), self._mesh.applying():
                self._go(shown, users[start : start + _AT_ONCE])

    def _go(self, shown: tuple[str, ...], users: list[User]) -> None:
        """Only who is still the same and whose server did not come back meanwhile."""
        network = self._host.network
        batch = self._host.batch("netsplit", *shown)
        with self._host.within(batch):
            for user in users:
                if network.user(user.nick) is user and owner_of(user.nick) not in network.servers:
                    self._host.publish(Left(self._host.stamp(), user.source, " ".join(shown)))
        batch.close()
