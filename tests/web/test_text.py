"""What people and agents write, as HTML."""

from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

import culture.web
from culture.protocol.text import Profile, clean
from culture.web.templates import environment, linked

VENDOR = Path(culture.web.__file__).parent / "vendor"


class Tags(HTMLParser):
    """The tags of a text, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


@given(st.text() | st.from_regex(r"(https?://\S*|<a href=.*>|\x03\d\d| |javascript:\S+){1,6}"))
def test_nothing_but_links_to_web_pages_comes_of_a_text(text: str) -> None:
    found = Tags(str(linked(text)))
    for tag, attributes in found.tags:
        assert tag == "a" and (attributes["href"] or "").lower().startswith(("http://", "https://"))
        assert attributes["rel"] == "noopener noreferrer nofollow"
    assert found.words == clean(text, Profile.WEB)


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("see https://example.org/a.", "https://example.org/a"),
        ("(https://example.org/a_(b))", "https://example.org/a_(b)"),
        ("https://example.org/?a=1&b=2, and", "https://example.org/?a=1&b=2"),
        ("<https://example.org>", "https://example.org"),
        ("HTTPS://EXAMPLE.ORG", "HTTPS://EXAMPLE.ORG"),
    ],
    ids=["sentence", "parentheses", "query", "angles", "capitals"],
)
def test_a_link_ends_where_the_sentence_goes_on(text: str, link: str) -> None:
    ((_, attributes),) = Tags(str(linked(text))).tags
    assert unescape(attributes["href"] or "") == link


@pytest.mark.parametrize(
    "text", ["javascript:alert(1)", "data:text/html,x", "ftp://a.example", "https://", "//a.example"]
)
def test_what_is_no_web_page_is_no_link(text: str) -> None:
    assert Tags(str(linked(text))).tags == []


def test_every_text_on_a_page_is_cleaned_whatever_the_template_forgot() -> None:
    template = environment().from_string("{{ text }}|{{ text | linked }}|{{ html }}")
    shown = template.render(text="<b>\x02a\u202e\u200b\U000e0041", html=Markup("<i>b</i>"))
    assert shown == "&lt;b&gt;a|&lt;b&gt;a|<i>b</i>"


def test_the_programs_of_others_are_those_that_are_named() -> None:
    table = (VENDOR / "README.md").read_text(encoding="utf-8")
    files = [file for file in VENDOR.iterdir() if file.suffix == ".js"]
    assert files and all(
        f"| `{file.name}` |" in table and sha256(file.read_bytes()).hexdigest() in table for file in files
    )


def test_an_address_made_of_brackets_takes_no_time() -> None:
    """Every message of a room is drawn for everybody who looks; one that took a second would stop the page."""
    assert 'href="http://a.example/(b)"' in linked("see (http://a.example/(b)).")
    began = process_time()
    linked("http://a" + ")" * 200_000)
    assert process_time() - began < 2  # what looks at all of it for each letter takes a minute
