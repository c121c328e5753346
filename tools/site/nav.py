"""Which pages the site has, in which order and under which heading: docs/nav.toml."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_HOMES = {"docs/": "", "culture/protocol/extensions/": "extensions/"}


class Unplaced(Exception):
    """A page that is nowhere, or a place without a page."""


@dataclass(frozen=True, slots=True)
class Page:
    """One file of the repository, and where the site has it."""

    source: Path
    place: str
    """``server/mesh.html``."""
    title: str


@dataclass(frozen=True, slots=True)
class Section:
    """Some pages under a heading."""

    title: str
    pages: tuple[Page, ...]


def sections(root: Path = ROOT) -> tuple[Section, ...]:
    """As nav.toml says; a page named by itself goes before one that a pattern finds. Raises Unplaced."""
    said = tomllib.loads((root / "docs" / "nav.toml").read_text(encoding="utf-8"))["section"]
    named = {path for section in said for path in section["pages"] if "*" not in path}
    made, taken = [], set[Path]()
    for section in said:
        files = [file for path in section["pages"] for file in _files(root, path, named) if file not in taken]
        taken.update(files)
        made.append(Section(section["title"], tuple(_page(root, file) for file in dict.fromkeys(files))))
    missing = sorted(set(root.glob("docs/**/*.md")) - taken)
    if missing:
        raise Unplaced(f"docs/nav.toml has no place for {', '.join(str(each.relative_to(root)) for each in missing)}")
    return tuple(section for section in made if section.pages)


def _files(root: Path, path: str, named: set[str]) -> list[Path]:
    if "*" not in path:
        file = root / path
        if not file.is_file():
            raise Unplaced(f"docs/nav.toml names {path}, which is not there")
        return [file]
    found = sorted(root.glob(path))
    # An overview comes first, whatever the others are called.
    return sorted(
        (file for file in found if file.relative_to(root).as_posix() not in named),
        key=lambda file: (file.stem not in ("overview", "README"), file.name),
    )


def _page(root: Path, file: Path) -> Page:
    path = file.relative_to(root).as_posix()
    home = next((home for home in _HOMES if path.startswith(home)), "")
    place = _HOMES.get(home, "") + path.removeprefix(home)
    return Page(file, f"{place.removesuffix('.md')}.html".replace("README.html", "index.html"), title_of(file))


def title_of(file: Path) -> str:
    """The first heading; an extension's page begins with its name."""
    first = file.read_text(encoding="utf-8").lstrip().partition("\n")[0]
    return re.sub(r"[`*]", "", first.removeprefix("#").removeprefix("Extension:")).strip()
