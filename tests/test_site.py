"""The documentation as a site: every page has its place, every link leads somewhere, the reference is up to date."""

from pathlib import Path

import pytest

from culture.config.introspect import keys
from tools.pictures import drawn
from tools.site import reference
from tools.site.build import build
from tools.site.nav import ROOT, Unplaced
from tools.site.pages import slug

NAV = '[[section]]\ntitle = "All"\npages = ["docs/index.md", "docs/**/*.md"]\n'


def repository(folder: Path, **pages: str) -> Path:
    """A repository with these pages."""
    (folder / "docs" / "deep").mkdir(parents=True)
    (folder / "docs" / "nav.toml").write_text(NAV)
    for name, text in {"index": "# Start\n", **pages}.items():
        (folder / "docs" / f"{name.replace('__', '/')}.md").write_text(text)
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("built") / "site"
    assert build(target) == []
    return target


def test_the_site_is_built_and_no_link_leads_nowhere(site: Path) -> None:
    for page in (
        "index.html",
        "guides/weechat.html",
        "server/mesh.html",
        "extensions/ledger.html",
        "decisions/index.html",
    ):
        assert (site / page).is_file(), page
    assert len([*site.rglob("*.html")]) >= len([*ROOT.glob("docs/**/*.md")])


def test_pages_work_without_a_server_and_take_nothing_from_elsewhere(site: Path) -> None:
    text = (site / "guides" / "weechat.html").read_text()
    assert 'href="../style.css"' in text and 'href="../clients/people.html#weechat"' in text
    for file in site.rglob("*"):
        if file.suffix in (".html", ".css", ".js"):
            assert not any(part in file.read_text() for part in ('src="http', "@import", 'stylesheet" href="http'))


def test_the_search_finds_every_page(site: Path) -> None:
    index = (site / "index.js").read_text()
    assert all(f'"place": "{page.relative_to(site).as_posix()}"' in index for page in site.rglob("*.html"))


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("[gone](gone.md)", ["docs/index.md: docs/gone.md"]),
        ("[gone](deep/other.md#gone)", ["docs/index.md: docs/deep/other.md#gone"]),
        ("[here](#gone)", ["docs/index.md: docs/index.md#gone"]),
        ("![picture](gone.png)", ["docs/index.md: docs/gone.png"]),
        ("[there](deep/other.md#two-words) and `[code](gone.md)`", []),
    ],
    ids=["page", "part", "own", "picture", "fine"],
)
def test_a_link_that_leads_nowhere_stops_the_build(tmp_path: Path, text: str, broken: list[str]) -> None:
    root = repository(tmp_path, index=f"# Start\n\n{text}\n", deep__other="# Other\n\n## Two `words`\n")
    assert build(tmp_path / "site", root) == broken
    assert (tmp_path / "site").exists() is not broken


def test_what_is_html_in_a_page_is_shown_and_does_nothing(tmp_path: Path) -> None:
    root = repository(tmp_path, index="# Start\n\n<script>alert(1)</script>\n")
    assert build(tmp_path / "site", root) == []
    assert "<script>alert" not in (tmp_path / "site" / "index.html").read_text()


def test_a_page_that_is_named_and_not_there_is_told(tmp_path: Path) -> None:
    root = repository(tmp_path)
    (root / "docs" / "nav.toml").write_text(NAV.replace("docs/index.md", "docs/gone.md"))
    with pytest.raises(Unplaced, match=r"docs/gone\.md"):
        build(tmp_path / "site", root)


def test_the_reference_is_what_the_models_say() -> None:
    assert reference.PAGE.read_text(encoding="utf-8") == reference.text(), "`make docs` writes it anew"


def test_the_reference_has_every_setting_once() -> None:
    for _, model, _, _ in reference._FILES:
        assert [key for key, _, _ in reference.fields(model)] == list(keys(model))


def test_the_terminal_is_drawn_from_what_was_printed_without_fonts_from_elsewhere() -> None:
    link = "http://localhost:4242/login/abc-DEF_1"
    drawing = drawn(f"watch {link}\n\x1b[1m1. One\x1b[0m\n\x1b[32m✓ seen\x1b[0m\n\x1b[1m3. Three\x1b[0m\n")
    assert "seen" in drawing and "Three" not in drawing and "abc-DEF" not in drawing
    assert "@font-face" not in drawing and "url(http" not in drawing


def test_a_heading_is_linked_to_as_forges_do() -> None:
    assert slug("`culture mesh`: join, leave") == "culture-mesh-join-leave"
