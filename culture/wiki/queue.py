"""Writes that wait on disk, in order, while the wiki cannot be written; none is lost."""

import asyncio
import json
import logging
from dataclasses import asdict, dataclass
from pathlib import Path

from culture.lib.files import private_directory, replace_file
from culture.wiki.client import WikiClient
from culture.wiki.errors import NO_ROOM, Conflict, DiskFull, WikiError, WikiUnavailable
from culture.wiki.names import key, page_name
from culture.wiki.pages import check
from culture.wiki.types import PageEntry, PageHit, PageRevision, WikiPage, Written, revision_of

MOST_WAITING = 1000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Write:
    """A write that waits in the queue: the arguments of ``WikiClient.write``."""

    page: str
    text: str
    base_revision: str
    author: str
    message: str


class QueuedWiki:
    """A ``WikiClient`` with a queue on disk for writes while the wiki behind it is unavailable.

    There must be only one object for each queue folder.
    """

    def __init__(self, wiki: WikiClient, folder: Path) -> None:
        self._wiki = wiki
        self._folder = private_directory(folder)
        self._lock = asyncio.Lock()

    @property
    def waiting(self) -> int:
        """Number of writes in the queue on disk."""
        return len(self._files())

    async def read(self, page: str, revision: str = "") -> WikiPage:
        """Return a page with the last text that is queued for it, or else as the wiki has it.

        With ``revision``, only a text of that revision is returned. ``NoSuchPage`` is raised if there is none.
        """
        for write in reversed([_load(file) for file in self._files()]):
            queued = WikiPage(write.page, revision_of(write.text), write.text, write.author)
            if key(queued.name) == key(page_name(page)) and queued.revision.startswith(revision):
                return queued
        return await self._wiki.read(page, revision)

    async def pages(self, under: str = "") -> list[PageEntry]:
        """Return all pages in the wiki, or those in the folder ``under``, without queued writes."""
        return await self._wiki.pages(under)

    async def search(self, words: str, limit: int = 20) -> list[PageHit]:
        """Return at most ``limit`` pages that contain all of the words, the best match first.

        ``words``: separated by spaces. Writes that are still queued are not searched.
        """
        return await self._wiki.search(words, limit)

    async def history(self, page: str, limit: int = 20) -> list[PageRevision]:
        """Return at most ``limit`` revisions of a page, newest first, without queued writes."""
        return await self._wiki.history(page, limit)

    async def write(self, page: str, text: str, base_revision: str, author: str, message: str = "") -> Written:
        """Write a page, after the writes in the queue; queue this one if the wiki is unavailable.

        ``base_revision``: the revision that the author has read, empty for a new page. The result says whether the
        write was ``queued``. ``WikiRefused`` and ``Conflict`` are raised at once; ``WikiUnavailable`` only if the queue
        is full or cannot be stored.
        """
        write = Write(check(page, text, base_revision, author), text, base_revision, author, message)
        async with self._lock:
            await self._drain()
            if not self._files():
                try:
                    return await self._wiki.write(**asdict(write))
                except WikiUnavailable as why:
                    log.warning("the write of %s is queued: %s", write.page, why)
            self._enqueue(write)
        return Written(write.page, revision_of(text), queued=True)

    async def drain(self) -> list[Written]:
        """Write the queued pages in order until the queue is empty or the wiki unavailable.

        Returns the results of the writes. A text in conflict with a newer one is written to a page of its own in the
        folder ``conflicts/``; the file of a refused write is renamed to ``*.refused``.
        """
        async with self._lock:
            return await self._drain()

    async def _drain(self) -> list[Written]:
        done = []
        for file in self._files():
            try:
                done.append(await self._deliver(_load(file)))
            except WikiUnavailable:
                break
            except WikiError as refused:
                aside = _move_aside(file)
                log.error("%s was refused and is not written: %s", aside, refused)
            else:
                file.unlink()
        return done

    async def _deliver(self, write: Write) -> Written:
        try:
            return await self._wiki.write(**asdict(write))
        except Conflict as conflict:
            shortened = write.page.replace("/", ".").encode()[:120].decode(errors="ignore")
            beside = f"conflicts/{shortened}-{revision_of(write.text)}"
            log.warning("%s was changed while a write was queued: its text is at %s", conflict.page, beside)
            return await self._wiki.write(
                beside, write.text, "", write.author, f"For {conflict.page}, which was changed"
            )

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("[0-9]*.json"))

    def _enqueue(self, write: Write) -> None:
        files = self._files()
        if len(files) >= MOST_WAITING:
            raise WikiUnavailable(f"the wiki cannot be written, and {len(files)} writes wait already")
        number = int(files[-1].stem) + 1 if files else 1
        try:
            replace_file(self._folder / f"{number:08}.json", json.dumps(asdict(write)).encode())
        except OSError as error:
            kind = DiskFull if error.errno in NO_ROOM else WikiUnavailable
            raise kind(f"neither the wiki nor {self._folder} can be written: {error.strerror}") from error


def _move_aside(file: Path) -> Path:
    """Rename the queue file of a refused write to ``*.refused``; return the new path.

    The new name contains the revision of the text, so that two refused writes have different names.
    """
    write = _load(file)
    return file.rename(file.with_name(f"{write.page.rpartition('/')[2][:100]}-{revision_of(write.text)}.refused"))


def _load(file: Path) -> Write:
    return Write(**json.loads(file.read_bytes()))
