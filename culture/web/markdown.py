"""Render wiki pages as safe HTML: no raw HTML, no images, only wiki and http(s) links."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from culture.protocol.text import Profile, clean

_SUFFIX = ".md"


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
