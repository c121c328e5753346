"""A wiki as a program uses it: the contract, and the wiki of this machine; `remote` has the other one."""

import asyncio
from typing import Protocol

from culture.wiki.pages import Pages
from culture.wiki.types import PageEntry, PageHit, PageRevision, WikiPage, Written


class WikiClient(Protocol):
    """The five things to do with a wiki; each raises a WikiError when it cannot be done."""

    async def read(self, page: str, revision: str = "") -> WikiPage:
        """The page as it is, or as it was at that revision."""
        ...

    async def write(self, page: str, text: str, base_revision: str, author: str, message: str = "") -> Written:
        """Write on top of a revision, or raise Conflict."""
        ...

    async def pages(self, under: str = "") -> list[PageEntry]:
        """The pages, or those in a folder."""
        ...

    async def search(self, words: str, limit: int = 20) -> list[PageHit]:
        """The pages with all these words."""
        ...

    async def history(self, page: str, limit: int = 20) -> list[PageRevision]:
        """Who wrote it when."""
        ...


class LocalWiki:
    """A wiki on this machine; git works beside the loop."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    async def read(self, page: str, revision: str = "") -> WikiPage:
        """The page as it is, or as it was at that revision."""
        return await asyncio.to_thread(self._pages.read, page, revision)

    async def write(self, page: str, text: str, base_revision: str, author: str, message: str = "") -> Written:
        """Write on top of a revision, or raise Conflict."""
        return await asyncio.to_thread(self._pages.write, page, text, base_revision, author, message)

    async def pages(self, under: str = "") -> list[PageEntry]:
        """The pages, or those in a folder."""
        return await asyncio.to_thread(self._pages.pages, under)

    async def search(self, words: str, limit: int = 20) -> list[PageHit]:
        """The pages with all these words."""
        return await asyncio.to_thread(self._pages.search, words, limit)

    async def history(self, page: str, limit: int = 20) -> list[PageRevision]:
        """Who wrote it when."""
        return await asyncio.to_thread(self._pages.history, page, limit)
