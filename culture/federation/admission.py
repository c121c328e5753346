"""Who is let in as a peer: both sides show a name, a secret and where it is asked for a certificate."""

import logging
from typing import TYPE_CHECKING

from culture.config.links import LinkConfig as LinkSettings
from culture.config.listen_policy import is_loopback
from culture.federation.codec import LATER
from culture.federation.codec.fields import number
from culture.federation.codec.messages import OPEN_TAG
from culture.federation.core import Refusal
from culture.federation.dialling import TOO_MANY
from culture.federation.link import OLDEST, VERSION, Link
from culture.federation.peer import Peer
from culture.federation.trust import is_vouched_for
from culture.lib.ratelimit import SlidingWindow
from culture.lib.secret_compare import same_secret
from culture.protocol.message import Message
from culture.protocol.names import short_name
from culture.server.net.connection_limits import group_of
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh

log = logging.getLogger(__name__)

CAPS = tuple(sorted({*LATER.values(), OPEN_TAG}))
"""What we can beyond version 1 of the protocol, as LINK says it."""


class Admission:
    """Asks for it, and shows ours."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host
        self._failures = SlidingWindow()

    @property
    def caps(self) -> str:
        """What we can beyond version 1 of the protocol, as it is said and kept."""
        return ",".join(CAPS)

    def greeting(self, link: Link) -> tuple[Message, Message]:
        """Our PASS and SERVER."""
        config = self._host.config
        return (
            Message("PASS", (link.shows,)),
            Message("SERVER", (config.name, "1", config.description)),
        )

    def admit(self, link: Link, name: str, secret: str) -> LinkSettings:
        """Who the peer is; raises Refusal, which does not tell a stranger more than that."""
        peer, short = self._mesh.peer_of(link), short_name(name)
        settings = self._mesh.dialler.wanted.get(short)
        if short == self._mesh.own:
            raise Refusal("A server is not linked to itself")
        self._check_tries(peer, short, settings)
        shown = _matching(secret, settings)
        if settings is None or settings.name != name or shown is None:
            self._fail(peer, short, "unknown name or wrong secret")
            raise Refusal("Bad name or secret")
        if settings.fingerprint is None and self._is_elsewhere(peer):
            self._fail(peer, short, "from another machine, and no fingerprint of it is configured")
            raise Refusal("This link needs a certificate")
        if settings.encrypted and not peer.is_encrypted:
            self._fail(peer, short, "without TLS")
            raise Refusal("This link needs TLS")
        if settings.fingerprint is not None and not same_secret(peer.certificate() or "", settings.fingerprint):
            shown = f"another certificate, SHA-256 {peer.certificate()}" if peer.certificate() else "no certificate"
            self._fail(peer, short, f"it showed {shown}")
            raise Refusal("Bad certificate")
        if link.settings is not None and link.settings.name != name:
            raise Refusal(f"{link.settings.name} was dialled")
        if self._mesh.dialler.is_held(short):
            raise Refusal("An operator ended this link; it may be made again in a minute")
        if not link.is_dialled:
            link.shows = shown  # what it knows; it may not have heard of a newer one
        return settings

    def _is_elsewhere(self, peer: Peer) -> bool:
        """Did it come from another machine, over a network that nobody vouches for?"""
        return bool(peer.address) and not is_loopback(peer.address) and not self._host.config.trusted_network

    def _check_tries(self, peer: Peer, name: str, settings: LinkSettings | None) -> None:
        limits = self._host.config.limits
        who = _who(peer, name, settings)
        if who and self._failures.count(who, limits.failed_logins_period, self._host.now()) >= limits.failed_logins:
            raise Refusal(f"{TOO_MANY} with a bad name, secret or certificate, try again in a minute")

    def _fail(self, peer: Peer, name: str, why: str) -> None:
        """Count it by address and name, so that one wrong peer locks out no other; log the first."""
        settings = self._mesh.dialler.wanted.get(name)
        who = _who(peer, name, settings)
        if settings is not None and settings.endpoint is None:
            self._mesh.dialler.problems[name] = f"it tried from {peer.address}, and was refused: {why}"
        now, period = self._host.now(), self._host.config.limits.failed_logins_period
        if not who or not self._failures.count(who, period, now):
            log.warning("a link of %s from %s is refused: %s", name[:64], peer.address or "the address dialled", why)
        if who:
            self._failures.add(who, now)

    def forget_tries(self) -> None:
        """Let go of what no longer counts."""
        self._failures.prune(self._host.config.limits.failed_logins_period, self._host.now())

    def admitted(self, link: Link) -> None:
        """Both sides have shown who they are: say what we speak, and which server we are."""
        kept = self._mesh.log
        link.send(Message("LINK", (str(VERSION), kept.id, self._host.ids.epoch, str(OLDEST), self.caps)))

    def agreed(self, link: Link, version: int, words: tuple[str, ...]) -> None:
        """The peer has said what it speaks and which server of its name it is: from here on it is linked."""
        oldest = number(words[2]) if len(words) > 2 else version
        if version < OLDEST or oldest > VERSION:
            link.is_foreign = True
            log.warning("%s speaks version %d of the protocol, we speak %d", link.name, version, VERSION)
            raise Refusal(f"Version {version} of the protocol is not spoken here: {OLDEST} to {VERSION} are")
        link.identity = (words[0], words[1] if len(words) > 1 else "")
        link.caps = frozenset(words[3].split(",")).intersection(CAPS) if len(words) > 3 else frozenset()
        peer = self._mesh.peer_of(link)
        present = self._mesh.links.get(link.peer)
        if present is not None:
            self._check_present(present, link)
        self._check_name(link)
        self._mesh.greeters.pop(peer, None)
        self._mesh.links[link.peer] = peer
        self._mesh.dialler.problems.pop(link.peer, None)
        peer.decided.set()
        if present is not None:
            present.link.end("Replaced by a new link")
        log.info("linked to %s", link.name)

    def _check_present(self, present: Peer, link: Link) -> None:
        """Where both sides dial at once, both keep the link that the lesser name dialled; a dead one gives way."""
        if present.link.identity != link.identity:
            raise Refusal(f"Another server called {link.peer} is linked already")
        keeps = present.link.is_dialled == (self._mesh.own < link.peer)
        is_alive = self._host.monotonic() - present.connection.last_active < self._mesh.settings.ping
        if present.link.is_dialled != link.is_dialled and keeps and is_alive:
            raise Refusal(f"{link.name} is linked already")

    def _check_name(self, link: Link) -> None:
        """The name may be in the mesh already, behind another peer: then only as the same server."""
        known, there = self._mesh.known.get(link.peer), self._host.network.servers.get(link.peer)
        if known is None or there is None or not is_vouched_for(self._mesh, link.peer):
            return  # who has no say does not keep others out by saying that they are behind it
        if there.name != link.name or (link.identity[1] and known.epoch != link.identity[1]):
            log.warning("a link of %s is refused: another server of that name is in the mesh", link.name)
            raise Refusal(f"Another server called {link.peer} is in the mesh already")


def _matching(given: str, settings: LinkSettings | None) -> str | None:
    """Which of our secrets it is; all are compared."""
    if settings is None:
        return None
    found = [secret for secret in (settings.old_secret, settings.secret) if secret and same_secret(given, secret)]
    return found[-1] if found else None


def _who(peer: Peer, name: str, settings: LinkSettings | None) -> tuple[str, str] | None:
    """Who tries: an address under a name, all names that nobody has being one; whom we dialled we know."""
    return (group_of(peer.address) or "", name if settings is not None else "*") if peer.address else None
