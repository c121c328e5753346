"""The pages of the wikis on this machine, read-only: overview, search, page with history."""

import asyncio
from datetime import UTC, datetime

from starlette.responses import Response

from culture.config import paths
from culture.web.markdown import address, render
from culture.web.page import PageRequest
from culture.web.view import WebView, get
from culture.wiki.client import LocalWiki
from culture.wiki.errors import NoSuchPage, WikiError
from culture.wiki.pages import Pages, folder_of

_HOME = "home"
_CHANGES, _HITS = 50, 30


async def _wikis(page: PageRequest) -> Response:
    names = await asyncio.to_thread(projects)
    if len(names) == 1:
        return page.go(f"/wiki/{names[0]}")
    return page.show("wikis.html", projects=names)


async def _wiki(page: PageRequest) -> Response:
    project, query = page.path_params["project"], page.query.get("q", "").strip()
    try:
        wiki = _open(project)
        entries = await wiki.pages()
        hits = await wiki.search(query, _HITS) if query else []
        home = await _home_page(wiki)
    except WikiError as error:
        return page.refuse(str(error), 404)
    places = {entry.name: address(project, entry.name) for entry in entries}
    by_time = sorted(entries, key=lambda entry: entry.time, reverse=True)
    return page.show(
        "wiki.html",
        project=project,
        entries=[(entry, datetime.fromtimestamp(entry.time, UTC)) for entry in by_time],
        places=places,
        query=query,
        hits=hits,
        text=await asyncio.to_thread(render, home, places) if home else "",
    )


async def _page(page: PageRequest) -> Response:
    project, name = page.path_params["project"], page.path_params["name"]
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
        text=await asyncio.to_thread(render, current.text, places, current.name.rpartition("/")[0]),
    )


def projects() -> list[str]:
    """Return the names of the projects that have a wiki on this machine, sorted."""
    return sorted(each.name for each in (paths.home() / "wiki").glob("[!.]*") if Pages(each).exists)


def _open(project: str) -> LocalWiki:
    pages = Pages(folder_of(project))
    if not pages.exists:
        raise NoSuchPage(f"There is no wiki called {project}.")
    return LocalWiki(pages)


async def _home_page(wiki: LocalWiki) -> str:
    try:
        return (await wiki.read(_HOME)).text
    except NoSuchPage:
        return ""


VIEW = WebView(
    path="/wiki",
    title="Wiki",
    order=55,
    icon="wiki",
    routes=[get("/wiki", _wikis), get("/wiki/{project}", _wiki), get("/wiki/{project}/{name:path}", _page)],
)
