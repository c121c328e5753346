"""A page of Markdown as HTML: headings that can be linked to, links that lead where the site has the page."""

import html
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tools.site.nav import ROOT, Page

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_OUTSIDE = re.compile(r"[a-z]+:", re.IGNORECASE)
_EXTENSION = "Extension:"
_PICTURES = {".png", ".svg"}


@dataclass(slots=True)
class Made:
    """What became of a page."""

    page: Page
    body: str = ""
    anchors: dict[str, str] = field(default_factory=dict)
    """The headings by their names in links."""
    links: list[tuple[Path, str]] = field(default_factory=list)
    """The files of ours that it leads to, with the part of them."""
    pictures: set[Path] = field(default_factory=set)
    text: str = ""


def made(page: Page, places: Mapping[Path, Page]) -> Made:
    """The page as HTML."""
    source = page.source.read_text(encoding="utf-8")
    result = Made(page, text=source)
    if source.startswith(_EXTENSION):
        result.body = f"<h1>{html.escape(page.title)}</h1>\n<pre>{html.escape(source)}</pre>"
        return result
    tokens = _MARKDOWN.parse(source)
    _name_headings(tokens, result)
    for token in _inline(tokens):
        if token.type == "link_open":
            _lead(token, result, places)
        elif token.type == "image":
            _show(token, result)
    result.body = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    return result


def slug(title: str) -> str:
    """A heading's name in links, as forges make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _name_headings(tokens: list[Token], result: Made) -> None:
    for opening, content in pairwise(tokens):
        if opening.type == "heading_open":
            title = "".join(child.content for child in content.children or ())
            name, number = slug(title), 0
            while name in result.anchors:
                number += 1
                name = f"{slug(title)}-{number}"
            opening.attrSet("id", name)
            result.anchors[name] = title


def _inline(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield from token.children or ()


def _lead(token: Token, result: Made, places: Mapping[Path, Page]) -> None:
    target = str(token.attrGet("href"))
    if _OUTSIDE.match(target):
        token.attrSet("rel", "noopener")
        return
    path, _, part = target.partition("#")
    file = (result.page.source.parent / path).resolve() if path else result.page.source
    result.links.append((file, part))
    page = places.get(file) or places.get(file / "README.md")
    if page is None:
        # Of the repository, and no page: said, and led nowhere.
        token.attrs = {"class": "file", "title": os.path.relpath(file, ROOT)}
        return
    place = os.path.relpath(page.place, Path(result.page.place).parent)
    token.attrSet("href", f"{place}#{part}" if part else place)


def _show(token: Token, result: Made) -> None:
    target = str(token.attrGet("src"))
    if not _OUTSIDE.match(target):
        file = (result.page.source.parent / target).resolve()
        result.links.append((file, ""))
        if file.suffix in _PICTURES:
            result.pictures.add(file)
            token.attrSet("src", os.path.relpath(f"images/{file.name}", Path(result.page.place).parent))
