"""What pages are made of, for whatever there is to show."""

from datetime import date, timedelta
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culture.ledger_views.ledger import LedgerFact
from culture.ledger_views.links import mesh
from culture.ledger_views.spend import SpendTotal
from culture.web.spend_chart import COLOURS, HEIGHT, WIDTH, draw_chart
from culture.web.templates import anchor, limit, money, short, span, word
from culture.web.views.mesh import draw_mesh
from culture.web.views.wiki import render
from tests.ledger_views.made import NONSENSE

TODAY = date(2026, 3, 19)
TAGS = {
    "p",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "em",
    "strong",
    "s",
    "a",
    "code",
    "pre",
    "ul",
    "ol",
    "li",
    "blockquote",
    "hr",
    "br",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
}
_spent = st.builds(SpendTotal, st.integers(0, 10**15), st.floats(0, 1e15), st.integers(0, 100))
_days = st.dictionaries(
    st.integers(0, 40).map(lambda ago: TODAY - timedelta(days=ago)),
    st.dictionaries(st.integers(0, 20).map("spark-{}".format), _spent, max_size=20),
)


class Seen(HTMLParser):
    """The tags and addresses of a text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        self.links |= {value or "" for name, value in attrs if name in ("href", "src")}


@settings(max_examples=40)
@given(_days, st.integers(1, 30), st.booleans())
def test_every_chart_fits_its_frame(days: dict[date, dict[str, SpendTotal]], length: int, in_tokens: bool) -> None:
    drawn = draw_chart(days, TODAY, length, in_tokens)
    for segment in drawn.segments:
        assert segment.x >= 0 and segment.x + segment.width <= WIDTH + 0.1 and 0 <= segment.colour < COLOURS
        assert segment.y >= -0.1 and segment.y + segment.height <= HEIGHT + 0.1
    assert len(drawn.key) <= COLOURS


@settings(max_examples=40)
@given(NONSENSE)
def test_every_mesh_has_a_draw_mesh(said: list[LedgerFact]) -> None:
    drawn = draw_mesh(mesh(said, "spark"), "spark")
    assert all(0 < node.x < drawn.width and 0 < node.y < drawn.height for node in drawn.nodes)
    assert {edge.state for edge in drawn.edges} <= {"linked", "syncing", "down"}


@given(st.lists(st.sampled_from([*"<>[]()!`*_#|-\n\"'&:/ ax", "javascript:", "https://a", "<script>", "data:"])))
def test_whatever_is_on_a_page_of_a_wiki_does_nothing(pieces: list[str]) -> None:
    seen = Seen(render("".join(pieces), {"a": "/wiki/demo/a"}))
    assert seen.tags <= TAGS
    assert seen.names <= {"href", "rel", "target", "class", "title", "start"}
    assert all(link.startswith(("https://", "http://", "/wiki/demo/")) for link in seen.links)


@pytest.mark.parametrize(
    "text",
    [
        "[x](javascript:alert(1))",
        "[x](//evil.example/)",
        "[x](data:text/html,hi)",
        "![x](https://evil.example/p.png)",
        "<https://a.example/>",
        "<img src=x onerror=alert(1)>",
        "[x]: javascript:alert(1)\n\n[x]",
    ],
)
def test_links_lead_to_pages_and_other_sites_alone_and_nothing_is_fetched(text: str) -> None:
    seen = Seen(render(text, {}))
    assert seen.tags <= {"p", "a"} and "src" not in seen.names
    assert all(link.startswith("https://") for link in seen.links)


def test_links_between_pages_are_found_beside_and_from_the_top() -> None:
    pages = {"plans/a": "/wiki/d/plans/a", "home": "/wiki/d/home"}
    shown = render("[1](a) [2](../x) [3](/home.md) `plans/a` `rm`", pages, "plans")
    assert 'href="/wiki/d/plans/a">1' in shown and 'href="/wiki/d/home">3' in shown and "<code>rm</code>" in shown
    assert '<a href="/wiki/d/plans/a"><code>plans/a</code></a>' in shown and 'class="missing"' in shown


def test_figures_are_short() -> None:
    assert [money(usd) for usd in (0, 0.001, 1.5, 12345.6)] == ["$0.00", "<$0.01", "$1.50", "$12,346"]
    assert [limit(usd) for usd in (10.0, 2.5, 0.0)] == ["$10", "$2.50", "$0"]
    assert [short(number) for number in (0, 842, 12345, 123456, 1.2e6)] == ["0", "842", "12.3k", "123k", "1.2M"]
    assert [span(seconds) for seconds in (-1, 45, 720, 7300, 2e5)] == ["0 s", "45 s", "12 min", "2 h", "2 d"]
    assert word('Evil"> state') == "evil-state" and anchor("a[b]-1") == "a_5b_b_5d_-1"
