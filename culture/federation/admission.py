"""Who is let in as a peer: both sides show a name, a secret and where it is asked for a certificate."""

import logging
from typing import TYPE_CHECKING

from culture.config.links import Link as LinkSettings
from culture.federation.link import VERSION, Link, Refusal
from culture.federation.log import Cursor
from culture.federation.peer import Peer
from culture.protocol.message import Message
from culture.protocol.names import short_name
from culture.server.compare import same_secret
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh

log = logging.getLogger(__name__)


class Admission:
    """Asks for it, and shows ours."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host

    def greeting(self, settings: LinkSettings) -> tuple[Message, Message]:
        """Our PASS and SERVER."""
        config = self._host.config
        return (
            Message("PASS", (settings.secret,)),
            Message("SERVER", (config.name, "1", config.description)),
        )

    def admit(self, link: Link, name: str, secret: str, description: str) -> LinkSettings:
        """Who the peer is; raises Refusal, which does not tell a stranger more than that."""
        settings = self._mesh.dialler.wanted.get(short_name(name))
        peer = self._mesh.peer_of(link)
        if settings is None or settings.name != name or not _is_secret(secret, settings):
            log.warning("a link of %s is refused: unknown name or wrong secret", name)
            raise Refusal("Bad name or secret")
        if settings.fingerprint is not None and not same_secret(peer.certificate() or "", settings.fingerprint):
            log.warning("a link of %s is refused: not its certificate", name)
            raise Refusal("Bad certificate")
        if link.is_dialled and link.settings is not None and link.settings.name != name:
            raise Refusal(f"{link.settings.name} was dialled")
        if short_name(name) == self._mesh.own:
            raise Refusal("A server is not linked to itself")
        self._replace(short_name(name), peer)
        return settings

    def _replace(self, name: str, peer: Peer) -> None:
        """Where both sides dial at once, both keep the link that the lesser name dialled; a dead one gives way."""
        present = self._mesh.links.get(name)
        if present is None:
            return
        ours_first = self._mesh.own < name
        keeps = present.link.is_dialled == ours_first
        if present.link.is_dialled != peer.link.is_dialled and keeps and self._is_alive(present):
            raise Refusal(f"{name} is linked already")
        present.link.end("Replaced by a new link")

    def _is_alive(self, peer: Peer) -> bool:
        return bool(self._host.monotonic() - peer.connection.last_active < self._mesh.settings.ping)

    def linked(self, link: Link) -> None:
        """Both sides have shown who they are: say how far each log was read; what we know follows."""
        peer = self._mesh.peer_of(link)
        self._mesh.greeters.discard(peer)
        self._mesh.links[link.peer] = peer
        cursor = self._mesh.log.cursors.get(link.peer, Cursor("*", 0))
        link.send(
            Message(
                "LINK",
                (str(VERSION), self._mesh.log.id, str(self._mesh.log.survived), cursor.log, str(cursor.position)),
            )
        )
        log.info("linked to %s", link.name)


def _is_secret(given: str, settings: LinkSettings) -> bool:
    old = settings.old_secret
    return bool(same_secret(given, settings.secret)) | (old is not None and same_secret(given, old))
