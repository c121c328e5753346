"""Pages of a wiki as HTML: nothing that is written there does anything but show."""

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
    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    made.add_render_rule("image", _image)
    made.add_render_rule("code_inline", _code)
    return made


def rendered(text: str, pages: Mapping[str, str], near: str = "") -> Markup:
    """The text of a page. ``pages`` has the addresses of the others by name; ``near`` is the folder of this one."""
    parser = _parser()
    tokens = parser.parse(clean(text, Profile.WEB))
    for token in tokens:
        for child in token.children or ():
            if child.type == "link_open":
                _point(child, pages, near)
    # markdown-it escapes what it was given, and html is off.
    return Markup(parser.renderer.render(tokens, parser.options, {"pages": pages}))


def address(project: str, page: str) -> str:
    """Where a page is shown."""
    return f"/wiki/{quote(project, safe='')}/{quote(page)}"


def _point(token: Token, pages: Mapping[str, str], near: str) -> None:
    """Lead to a page of the wiki, or to another site; to nothing else."""
    href = str(token.attrGet("href") or "")
    token.attrs.pop("href", None)
    parts = urlsplit(href)
    if parts.scheme in ("http", "https") and parts.netloc:
        token.attrs |= {"href": href, "rel": "noopener noreferrer nofollow", "target": "_blank"}
    elif not parts.scheme and not parts.netloc and parts.path:
        name = _name(unquote(parts.path), pages, near)
        token.attrs |= (
            {"href": pages[name]} if name in pages else {"class": "missing", "title": "there is no such page"}
        )


def _name(said: str, pages: Collection[str], near: str) -> str:
    name = said.strip("/").removeprefix("./").removesuffix(_SUFFIX)
    beside = f"{near}/{name}" if near else name
    return beside if beside in pages else name


def _image(_renderer: Any, tokens: list[Token], number: int, _options: Any, _env: Any) -> str:
    """Nothing is fetched from elsewhere: a picture is a link to it."""
    token = tokens[number]
    source, words = str(token.attrGet("src") or ""), token.content or "a picture"
    if urlsplit(source).scheme not in ("http", "https"):
        return str(escape(words))
    link = Markup('<a href="{}" target="_blank" rel="noopener noreferrer nofollow">{}</a>')
    return str(link.format(source, words))


def _code(_renderer: Any, tokens: list[Token], number: int, _options: Any, env: Any) -> str:
    """Pages name each other between backticks."""
    words = tokens[number].content
    where = env["pages"].get(words)
    shown = Markup("<code>{}</code>").format(words)
    return str(shown if where is None else Markup('<a href="{}">{}</a>').format(where, shown))
