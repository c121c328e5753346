"""The client interface of a wiki, and the local client; `remote` has the other one."""

import asyncio
from typing import Protocol

from culture.wiki.pages import Pages
from culture.wiki.types import PageEntry, PageHit, PageRevision, WikiPage, Written


class WikiClient(Protocol):
    """The five operations on a wiki; each raises ``WikiError`` or a subclass if it fails."""

    async def read(self, page: str, revision: str = "") -> WikiPage:
        """Return a page, as it is now or, with ``revision``, as it was at that revision."""
        ...

    async def write(self, page: str, text: str, base_revision: str, author: str, message: str = "") -> Written:
        """Write a page on top of a revision, or raise ``Conflict`` if the page was changed since.

        ``base_revision``: the revision that the author has read; empty for a new page.
        """
        ...

    async def pages(self, under: str = "") -> list[PageEntry]:
        """Return all pages, or with ``under`` those in that folder."""
        ...

    async def search(self, words: str, limit: int = 20) -> list[PageHit]:
        """Return at most ``limit`` pages that contain all of the words, the best match first."""
        ...

    async def history(self, page: str, limit: int = 20) -> list[PageRevision]:
        """Return at most ``limit`` revisions of a page with author and time, newest first."""
        ...


class LocalWiki:
    """A wiki on this machine as a ``WikiClient``; git runs in a thread."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    async def read(self, page: str, revision: str = "") -> WikiPage:
        """Return a page, as it is now or, with ``revision``, as it was at that revision."""
        return await asyncio.to_thread(self._pages.read, page, revision)

    async def write(self, page: str, text: str, base_revision: str, author: str, message: str = "") -> Written:
        """Write a page on top of a revision, or raise ``Conflict`` if the page was changed since."""
        return await asyncio.to_thread(self._pages.write, page, text, base_revision, author, message)

    async def pages(self, under: str = "") -> list[PageEntry]:
        """Return all pages, or with ``under`` those in that folder."""
        return await asyncio.to_thread(self._pages.pages, under)

    async def search(self, words: str, limit: int = 20) -> list[PageHit]:
        """Return at most ``limit`` pages that contain all of the words, the best match first."""
        return await asyncio.to_thread(self._pages.search, words, limit)

    async def history(self, page: str, limit: int = 20) -> list[PageRevision]:
        """Return at most ``limit`` revisions of a page with author and time, newest first."""
        return await asyncio.to_thread(self._pages.history, page, limit)
