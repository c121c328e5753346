"""Which links there shall be: what culture.yaml and the command line say, looked at again and again."""

import logging
from typing import TYPE_CHECKING

from culture.config.links import LinkConfig as Settings
from culture.config.values import Misfit
from culture.federation import book
from culture.federation.book import Book, Entries, UnreadableBook
from culture.lib.files import FileStamp, file_stamp
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh

log = logging.getLogger(__name__)

_SECRETS = {"secret", "old_secret"}


class Standing:
    """Takes up what changed, at the price of one stat."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host
        self._book = Book(book.path_of(host.config), runtime=host.runtime)
        self._stamp: FileStamp | None = None
        self._entries: Entries = book.NOTHING
        self._configured: tuple[Settings, ...] | None = None

    def look(self) -> None:
        """Have the links that are wanted now, and no other; none until the log is open."""
        if not self._mesh.log.is_open:
            return
        stamp, configured = file_stamp(self._book.path), self._host.config.links
        if stamp == self._stamp and configured is self._configured:
            return
        self._stamp, self._configured = stamp, configured
        try:
            entries = self._book.read()
            links = book.merged(configured, entries)
            book.check(self._host.config, links.values())
        except (UnreadableBook, Misfit, OSError) as error:
            self._host.tell_operators(f"the links stay as they were: {error}")
            if self._mesh.dialler.wanted or self._entries is not book.NOTHING:
                return
            links = book.merged(configured, book.NOTHING)
        else:
            self._entries = entries
        self._have(links)

    def _have(self, links: dict[str, Settings]) -> None:
        wanted = self._mesh.dialler.wanted
        for name in [name for name in wanted if name not in links]:
            self._mesh.dialler.unwant(name)
            self._end(name, "This link was taken away")
            log.info("%s is not to be linked any more", name)
        for name, settings in links.items():
            before = wanted.get(name)
            if before == settings:
                continue
            if before is not None and _differs(before, settings):
                self._mesh.dialler.unwant(name)
                self._end(name, "This link was changed")
            self._mesh.dialler.want(settings)

    def _end(self, name: str, reason: str) -> None:
        greeting = [peer for peer in self._mesh.greeters if peer.link.peer == name]
        for peer in [*greeting, *filter(None, [self._mesh.links.get(name)])]:
            peer.link.end(reason)


def _differs(one: Settings, other: Settings) -> bool:
    """In more than the secrets? Whoever has shown one of them stays, unless its secret is good no longer."""
    is_replaced = one.secret not in (other.secret, other.old_secret)
    return is_replaced or one.model_dump(exclude=_SECRETS) != other.model_dump(exclude=_SECRETS)
