"""Which links a text holds, and where each ends."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from culture.skills.urlindex.links import LONGEST, MOST, around, links, normal


def urls(text: str) -> list[str]:
    return [link.url for link in links(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("no link here: at all", []),
        ("https://example.org", ["https://example.org"]),
        ("look: https://example.org/a.", ["https://example.org/a"]),
        ("really https://example.org/a?!", ["https://example.org/a"]),
        ("(see https://a.b/c_(d))", ["https://a.b/c_(d)"]),
        ("[x](https://a.b/c), and [y](https://d.e)[z](http://f.g/)", ["https://a.b/c", "https://d.e", "http://f.g/"]),
        ("<https://a.b/c> \"https://d.e\" 'http://f.g' `ftp://h.i`", ["https://a.b/c", "https://d.e", "http://f.g", "ftp://h.i"]),
        ("https://a.b,https://c.d;http://e.f|http://g.h", ["https://a.b", "https://c.d", "http://e.f", "http://g.h"]),
        ("https://a.b/x,y;z", ["https://a.b/x,y;z"]),
        ("https://web.archive.org/web/1/https://a.b/", ["https://web.archive.org/web/1/https://a.b/"]),
        ("\x0304,05https://a.b/\x02bold\x0f and \x1dhttp://c.d\x1d", ["https://a.b/bold", "http://c.d"]),
        ("\x01ACTION likes https://a.b\x01", ["https://a.b"]),
        ("\x01DCC SEND https://a.b\x01", []),
        ("https://bücher.example/ü%20x#teil", ["https://bücher.example/ü%20x#teil"]),
        ("《https://a.b》。", ["https://a.b"]),
        ("http://[::1]:80/x HTTPS://A.B", ["http://[::1]:80/x", "HTTPS://A.B"]),
        ("git+ssh://git@a.b/c.git ssh://a.b git://c.d", ["git+ssh://git@a.b/c.git", "ssh://a.b", "git://c.d"]),
        ("xhttp://a.b javascript://a.b file:///etc", []),
        ("http:// https://... http://[ http://( :// ://a", []),
        ("https://a.b/" + "x" * LONGEST + " http://c.d", ["http://c.d"]),
        ("one https://a.b\ntwo https://c.d", ["https://a.b", "https://c.d"]),
        ("https://a.b and https://A.B/ again", ["https://a.b"]),
    ],
)  # fmt: skip
def test_links_end_where_people_end_them(text: str, found: list[str]) -> None:
    assert urls(text) == found


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("HTTPS://Example.ORG/Path?Query#Fragment", "https://example.org/Path?Query#Fragment"),
        ("https://example.org", "https://example.org/"),
        ("https://example.org?Q", "https://example.org?Q"),
        ("ssh://Git@Example.org:22/X", "ssh://Git@example.org:22/X"),
        ("https://example.org/Me@Home", "https://example.org/Me@Home"),
        ("https://BÜCHER.example/%C3%BC", "https://bücher.example/%C3%BC"),
    ],
)
def test_scheme_and_host_compare_without_case(url: str, key: str) -> None:
    assert normal(url) == key
    assert normal(key) == key


def test_of_many_links_the_first_are_taken() -> None:
    assert len(urls(" ".join(f"https://a.b/{number}" for number in range(100)))) == MOST


def test_the_context_is_one_line_about_the_link() -> None:
    [link] = links("the\x02 docs\n are\there: https://a.b")
    assert link.context == "the docs are here: https://a.b"
    [far] = links("x " * 1000 + "https://a.b/here" + " y" * 1000)
    assert "https://a.b/here" in far.context
    assert len(far.context) < 400
    assert around("short", 0) == "short"


PLAIN = st.text("abcxyzABC0189-_~/.%()é", min_size=1, max_size=30).map(lambda path: f"https://example.org/{path}z")
TEXT = st.lists(
    st.one_of(
        st.text(max_size=20),
        st.sampled_from(
            ["https://", "http://a", "HTTP://[::1]", "://", ")", "(", ",", "|", "]", " ", "\n", "\x03", "\x01ACTION "]
        ),
    ),
    max_size=30,
).map("".join)


def is_balanced(url: str) -> bool:
    depth = 0
    for character in url:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0


@given(
    PLAIN.filter(is_balanced),
    st.sampled_from(["{}", "({})", "<{}>", "[x]({})", "{}.", "“{}”", "*{}*", "so {}!?", "{},"]),
)
def test_what_is_around_a_link_is_no_part_of_it(url: str, form: str) -> None:
    assert urls(form.format(url)) == [url]


@given(TEXT)
@example("https://a.b/" + "(" * 4000)
@example("https://a.b)" * 400)
@example("http://" * 600)
@example("https://a.b/,;|" * 300)
def test_any_text_is_looked_through(text: str) -> None:
    """What is found can be told in a line, is short enough, and is found again in itself."""
    found = links(text)
    assert len({link.key for link in found}) == len(found) <= MOST
    for link in found:
        assert 0 < len(link.url.encode(errors="replace")) <= LONGEST
        assert not any(character.isspace() or ord(character) < 32 for character in link.url)
        assert urls(link.url) == [link.url]
        assert normal(link.key) == link.key
        assert "\n" not in link.context and "\r" not in link.context and "\0" not in link.context
