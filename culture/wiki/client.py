"""The client interface of a wiki, and the local client; `remote` has the other one."""

import asyncio
from typing import Protocol

from culture.wiki.pages import Pages
from culture.wiki.types import PageEntry, PageHit, PageRevision, WikiPage, Written


class WikiClient(Protocol):
    """The five operations on a wiki; each raises ``WikiError`` or a subclass if it fails."""

    async def read(self, page: str, revision: str = "") -> WikiPage:
        """Return a page with its present text, or the text that it had at ``revision``.

        ``NoSuchPage`` is raised if the wiki has no such page or the page never had that revision.
        """
        ...

    async def write(self, page: str, text: str, base_revision: str, author: str, message: str = "") -> Written:
        """Write a page, unless it was changed since the author read it: then raise ``Conflict``.

        ``text``: the new text of the whole page. ``base_revision``: the revision that the author has read, empty for a
        new page. ``author``: nick of the author. ``message``: message of the git commit.
        """
        ...

    async def pages(self, under: str = "") -> list[PageEntry]:
        """Return all pages, or those in the folder ``under``: name, revision, size, last author."""
        ...

    async def search(self, words: str, limit: int = 20) -> list[PageHit]:
        """Return at most ``limit`` pages that contain all of the words, the best match first.

        ``words``: the words, separated by spaces; compared without case with the name and text of a page.
        """
        ...

    async def history(self, page: str, limit: int = 20) -> list[PageRevision]:
        """Return at most ``limit`` revisions of a page with author and time, newest first.

        ``NoSuchPage`` is raised if the wiki has no such page.
        """
        ...


class LocalWiki:
    """A ``WikiClient`` for a wiki on this machine; it runs git in a thread of its own."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    async def read(self, page: str, revision: str = "") -> WikiPage:
        """Return a page with its present text, or the text that it had at ``revision``.

        ``NoSuchPage`` is raised if the wiki has no such page or the page never had that revision.
        """
        return await asyncio.to_thread(self._pages.read, page, revision)

    async def write(self, page: str, text: str, base_revision: str, author: str, message: str = "") -> Written:
        """Write a page, unless it was changed since the author read it: then raise ``Conflict``.

        ``text``: the new text of the whole page. ``base_revision``: the revision that the author has read, empty for a
        new page. ``author``: nick of the author. ``message``: message of the git commit.
        """
        return await asyncio.to_thread(self._pages.write, page, text, base_revision, author, message)

    async def pages(self, under: str = "") -> list[PageEntry]:
        """Return all pages, or those in the folder ``under``: name, revision, size, last author."""
        return await asyncio.to_thread(self._pages.pages, under)

    async def search(self, words: str, limit: int = 20) -> list[PageHit]:
        """Return at most ``limit`` pages that contain all of the words, the best match first.

        ``words``: the words, separated by spaces; compared without case with the name and text of a page.
        """
        return await asyncio.to_thread(self._pages.search, words, limit)

    async def history(self, page: str, limit: int = 20) -> list[PageRevision]:
        """Return at most ``limit`` revisions of a page with author and time, newest first.

        ``NoSuchPage`` is raised if the wiki has no such page.
        """
        return await asyncio.to_thread(self._pages.history, page, limit)
