"""The pages of the wikis on this machine, read-only, as safe HTML: overview, search, history.

Markdown is rendered without raw HTML and images; links lead to wiki pages or http(s) addresses only.
"""

import asyncio
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape
from starlette.responses import Response

from culture.config import paths
from culture.protocol.text import Profile, clean
from culture.web.page import PageRequest
from culture.web.view import WebView, get
from culture.wiki.client import LocalWiki
from culture.wiki.errors import NoSuchPage, WikiError
from culture.wiki.pages import Pages, folder_of

_SUFFIX = ".md"
_HOME = "home"
_CHANGES, _HITS = 50, 30


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("image", _image)
    parser.add_render_rule("code_inline", _code)
    return parser


def render(text: str, pages: Mapping[str, str], near: str = "") -> Markup:
    """Return the Markdown text of a wiki page as safe HTML.

    ``pages``: addresses of all pages by name. ``near``: folder of this page, to which relative links refer.
    """
    parser = _parser()
    tokens = parser.parse(clean(text, Profile.WEB))
    for token in tokens:
        for child in token.children or ():
            if child.type == "link_open":
                _resolve_link(child, pages, near)
    # Safe: markdown-it escapes all text, and raw HTML is off.
    return Markup(parser.renderer.render(tokens, parser.options, {"pages": pages}))


def address(project: str, page: str) -> str:
    """Return the path at which the web page shows a page of a project's wiki."""
    return f"/wiki/{quote(project, safe='')}/{quote(page)}"


def _resolve_link(token: Token, pages: Mapping[str, str], near: str) -> None:
    """Set the target of a Markdown link to a wiki page or an http(s) address, or remove it.

    ``pages``: addresses of all wiki pages by name. ``near``: folder of the page with the link.
    """
    href = str(token.attrGet("href") or "")
    token.attrs.pop("href", None)
    parts = urlsplit(href)
    if parts.scheme in ("http", "https") and parts.netloc:
        token.attrs |= {"href": href, "rel": "noopener noreferrer nofollow", "target": "_blank"}
    elif not parts.scheme and not parts.netloc and parts.path:
        name = _name(unquote(parts.path), pages, near)
        token.attrs |= {"href": pages[name]} if name in pages else {"class": "missing", "title": "page not found"}


def _name(href: str, pages: Collection[str], near: str) -> str:
    name = href.strip("/").removeprefix("./").removesuffix(_SUFFIX)
    nested = f"{near}/{name}" if near else name
    return nested if nested in pages else name


def _image(_renderer: Any, tokens: list[Token], number: int, _options: Any, _env: Any) -> str:
    """Return an image in Markdown as an HTML link, because pages load nothing from other sites.

    It overrides a rule of the Markdown renderer; ``tokens[number]`` is the image.
    """
    token = tokens[number]
    source, label = str(token.attrGet("src") or ""), token.content or "a picture"
    if urlsplit(source).scheme not in ("http", "https"):
        return str(escape(label))
    link = Markup('<a href="{}" target="_blank" rel="noopener noreferrer nofollow">{}</a>')
    return str(link.format(source, label))


def _code(_renderer: Any, tokens: list[Token], number: int, _options: Any, env: Any) -> str:
    """Return inline code as HTML; if it is the name of a wiki page, as a link to that page.

    It overrides a rule of the Markdown renderer; ``tokens[number]`` is the code.
    """
    text = tokens[number].content
    href = env["pages"].get(text)
    code = Markup("<code>{}</code>").format(text)
    return str(code if href is None else Markup('<a href="{}">{}</a>').format(href, code))


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
