"""Putting the site together, and refusing to where a link leads nowhere."""

import html
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from tools.site.nav import ROOT, Page, Section, sections
from tools.site.pages import Made, made

_FILES = Path(__file__).parent / "files"
_WORD = re.compile(r"[\w#][\w.'-]+")


def build(target: Path, root: Path = ROOT) -> list[str]:
    """Write the site; the links that lead nowhere, with where they are. With any, nothing is written."""
    nav = sections(root)
    places = {page.source: page for section in nav for page in section.pages}
    pages = [made(page, places) for page in places.values()]
    broken = broken_links(pages, root)
    if not broken:
        _write(target, nav, pages)
    return broken


def broken_links(pages: Sequence[Made], root: Path = ROOT) -> list[str]:
    """``docs/a.md: b.md#part``: what is linked to and is not there."""
    anchors: Mapping[Path, Mapping[str, str]] = {each.page.source: each.anchors for each in pages}
    broken = []
    for each in pages:
        for file, part in each.links:
            missing = not file.exists() or (part and file in anchors and part not in anchors[file])
            if missing:
                shown = f"{os.path.relpath(file, root)}{f'#{part}' if part else ''}"
                broken.append(f"{each.page.source.relative_to(root)}: {shown}")
    return broken


def _write(target: Path, nav: Sequence[Section], pages: Sequence[Made]) -> None:
    fresh = target.with_name(f"{target.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    frame = Template((_FILES / "page.html").read_text(encoding="utf-8"))
    for each in pages:
        file = fresh / each.page.place
        file.parent.mkdir(parents=True, exist_ok=True)
        up = os.path.relpath(".", Path(each.page.place).parent)
        page = frame.substitute(title=html.escape(each.page.title), up=up, nav=_nav(nav, each.page), body=each.body)
        file.write_text(page, encoding="utf-8")
    for picture in {picture for each in pages for picture in each.pictures}:
        (fresh / "images").mkdir(exist_ok=True)
        shutil.copy(picture, fresh / "images" / picture.name)
    for name in ("style.css", "search.js"):
        shutil.copy(_FILES / name, fresh / name)
    (fresh / "index.js").write_text(f"window.PAGES = {json.dumps(_index(pages))};\n", encoding="utf-8")
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)


def _nav(nav: Sequence[Section], here: Page) -> str:
    lines = []
    for section in nav:
        is_here = here in section.pages
        lines.append(f"<details{' open' if is_here else ''}><summary>{html.escape(section.title)}</summary><ul>")
        for page in section.pages:
            place = os.path.relpath(page.place, Path(here.place).parent)
            mark = ' aria-current="page"' if page is here else ""
            lines.append(f'<li><a href="{place}"{mark}>{html.escape(page.title)}</a></li>')
        lines.append("</ul></details>")
    return "\n".join(lines)


def _index(pages: Sequence[Made]) -> list[dict[str, object]]:
    """What the search looks at: each page's title, headings and words."""
    return [
        {
            "place": each.page.place,
            "title": each.page.title,
            "headings": [[name, title] for name, title in each.anchors.items()],
            "words": " ".join(sorted({word.lower() for word in _WORD.findall(each.text)})),
        }
        for each in pages
    ]
