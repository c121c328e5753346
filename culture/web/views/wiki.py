"""The wikis of this machine, to read."""

import asyncio
from datetime import UTC, datetime

from starlette.responses import Response

from culture.config import paths
from culture.web.markdown import address, rendered
from culture.web.page import PageRequest
from culture.web.view import WebView, shown
from culture.wiki.client import LocalWiki
from culture.wiki.errors import NoSuchPage, WikiError
from culture.wiki.pages import Pages, folder_of

_HOME = "home"
_CHANGES, _HITS = 50, 30


async def _wikis(page: PageRequest) -> Response:
    found = await asyncio.to_thread(projects)
    if len(found) == 1:
        return page.go(f"/wiki/{found[0]}")
    return page.show("wikis.html", projects=found)


async def _wiki(page: PageRequest) -> Response:
    project, words = page.words["project"], page.query.get("q", "").strip()
    try:
        wiki = _open(project)
        entries = await wiki.pages()
        hits = await wiki.search(words, _HITS) if words else []
        first = await _first(wiki)
    except WikiError as error:
        return page.refuse(str(error), 404)
    places = {entry.name: address(project, entry.name) for entry in entries}
    lately = sorted(entries, key=lambda entry: entry.time, reverse=True)
    return page.show(
        "wiki.html",
        project=project,
        lately=[(entry, datetime.fromtimestamp(entry.time, UTC)) for entry in lately],
        places=places,
        words=words,
        hits=hits,
        text=await asyncio.to_thread(rendered, first, places) if first else "",
    )


async def _page(page: PageRequest) -> Response:
    project, name = page.words["project"], page.words["name"]
    try:
        wiki = _open(project)
        current = await wiki.read(name, page.query.get("revision", ""))
        entries, changes = await wiki.pages(), await wiki.history(current.name, _CHANGES)
    except WikiError as error:
        return page.refuse(str(error), 404)
    places = {entry.name: address(project, entry.name) for entry in entries}
    return page.show(
        "wikipage.html",
        project=project,
        current=current,
        written=datetime.fromtimestamp(current.time, UTC),
        is_old=bool(changes) and current.revision != changes[0].revision,
        changes=[(change, datetime.fromtimestamp(change.time, UTC)) for change in changes],
        here=address(project, current.name),
        text=await asyncio.to_thread(rendered, current.text, places, current.name.rpartition("/")[0]),
    )


def projects() -> list[str]:
    """The projects that have a wiki here."""
    return sorted(each.name for each in (paths.home() / "wiki").glob("[!.]*") if Pages(each).exists)


def _open(project: str) -> LocalWiki:
    pages = Pages(folder_of(project))
    if not pages.exists:
        raise NoSuchPage(f"there is no wiki called {project}")
    return LocalWiki(pages)


async def _first(wiki: LocalWiki) -> str:
    try:
        return (await wiki.read(_HOME)).text
    except NoSuchPage:
        return ""


VIEW = WebView(
    path="/wiki",
    title="Wiki",
    order=55,
    icon="wiki",
    routes=[shown("/wiki", _wikis), shown("/wiki/{project}", _wiki), shown("/wiki/{project}/{name:path}", _page)],
)
