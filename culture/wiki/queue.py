"""Writes that wait on disk while the wiki cannot be written, in their order; none is lost, none overwrites another."""

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
    """A write that waits."""

    page: str
    text: str
    base_revision: str
    author: str
    message: str


class QueuedWiki:
    """Writes to a wiki, now or as soon as it can be written; one of these per folder."""

    def __init__(self, wiki: WikiClient, folder: Path) -> None:
        self._wiki = wiki
        self._folder = private_directory(folder)
        self._one_at_a_time = asyncio.Lock()

    @property
    def waiting(self) -> int:
        """How many writes wait."""
        return len(self._files())

    async def read(self, page: str, revision: str = "") -> WikiPage:
        """The page as it will be: the newest text of ours that waits, else what the wiki has."""
        for write in reversed([_loaded(file) for file in self._files()]):
            found = WikiPage(write.page, revision_of(write.text), write.text, write.author)
            if key(found.name) == key(page_name(page)) and found.revision.startswith(revision):
                return found
        return await self._wiki.read(page, revision)

    async def pages(self, under: str = "") -> list[PageEntry]:
        """The pages that the wiki has."""
        return await self._wiki.pages(under)

    async def search(self, words: str, limit: int = 20) -> list[PageHit]:
        """What the wiki finds."""
        return await self._wiki.search(words, limit)

    async def history(self, page: str, limit: int = 20) -> list[PageRevision]:
        """Who wrote it when, as far as the wiki knows."""
        return await self._wiki.history(page, limit)

    async def write(self, page: str, text: str, base_revision: str, author: str, message: str = "") -> Written:
        """Write, or keep it for later when the wiki cannot be written; Conflict and Refused come at once."""
        write = Write(check(page, text, base_revision, author), text, base_revision, author, message)
        async with self._one_at_a_time:
            await self._drain()
            if not self._files():
                try:
                    return await self._wiki.write(**asdict(write))
                except WikiUnavailable as why:
                    log.warning("%s waits to be written: %s", write.page, why)
            self._keep(write)
        return Written(write.page, revision_of(text), queued=True)

    async def drain(self) -> list[Written]:
        """Write what waits, as far as it goes; a text whose page others changed meanwhile gets a page beside it."""
        async with self._one_at_a_time:
            return await self._drain()

    async def _drain(self) -> list[Written]:
        done = []
        for file in self._files():
            try:
                done.append(await self._delivered(_loaded(file)))
            except WikiUnavailable:
                break
            except WikiError as refused:
                aside = _put_aside(file)
                log.error("%s stays unwritten: %s", aside, refused)
            else:
                file.unlink()
        return done

    async def _delivered(self, write: Write) -> Written:
        try:
            return await self._wiki.write(**asdict(write))
        except Conflict as conflict:
            shortened = write.page.replace("/", ".").encode()[:120].decode(errors="ignore")
            beside = f"conflicts/{shortened}-{revision_of(write.text)}"
            log.warning("%s was changed by others while a text for it waited: it is at %s", conflict.page, beside)
            return await self._wiki.write(
                beside, write.text, "", write.author, f"For {conflict.page}, which was changed"
            )

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("[0-9]*.json"))

    def _keep(self, write: Write) -> None:
        files = self._files()
        if len(files) >= MOST_WAITING:
            raise WikiUnavailable(f"the wiki cannot be written, and {len(files)} writes wait already")
        number = int(files[-1].stem) + 1 if files else 1
        try:
            replace_file(self._folder / f"{number:08}.json", json.dumps(asdict(write)).encode())
        except OSError as error:
            kind = DiskFull if error.errno in NO_ROOM else WikiUnavailable
            raise kind(f"neither the wiki nor {self._folder} can be written: {error.strerror}") from error


def _put_aside(file: Path) -> Path:
    """Under a name that no other text has: numbers begin anew when nothing waits."""
    write = _loaded(file)
    return file.rename(file.with_name(f"{write.page.rpartition('/')[2][:100]}-{revision_of(write.text)}.refused"))


def _loaded(file: Path) -> Write:
    return Write(**json.loads(file.read_bytes()))
