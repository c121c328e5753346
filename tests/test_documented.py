"""Every verb, setting and command is documented, and nothing is documented that is not there."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
import typer
from pydantic import BaseModel

from culture.cli.app import app
from culture.config.model import ServerConfig
from tests.support.verbs import every_verb

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs" / "server"


def written(page: str, pattern: str) -> list[str]:
    """What a page documents: the first group of every line that matches."""
    return re.findall(pattern, (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """The models an annotation speaks of, inside tuples, unions and the like."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)


def settings(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """``name``, ``limits.nick_length``, ``listen.port``: every key that can be written, as a path."""
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        inner = list(models_in(field.annotation))
        if not inner:
            yield key
        for nested in inner:
            yield from settings(nested, f"{key}.")


def commands(group: object, words: str) -> Iterator[str]:
    """Every command of the command line that does something itself."""
    nested: dict[str, object] = getattr(group, "commands", {})
    for name, command in nested.items():
        yield from commands(command, f"{words} {name}")
    if not nested:
        yield words


def same(existing: list[str], documented: list[str]) -> None:
    assert sorted(set(documented)) == sorted(existing)
    assert len(documented) == len(set(documented)), "documented twice"


def test_every_verb_has_its_heading() -> None:
    same(list(every_verb()), written("commands.md", r"^### ([A-Z]+)$"))


def test_every_setting_has_its_row() -> None:
    rows = [row.replace("[]", "") for row in written("configuration.md", r"^\| `([a-z_0-9.\[\]]+)` \|")]
    same(list(settings(ServerConfig)), rows)


def test_every_command_has_its_heading() -> None:
    pages = (
        "running.md",
        "../clients/commands.md",
        "../wiki.md",
        "../bridge/overview.md",
        "../team/commands.md",
        "../web/overview.md",
    )
    documented = [heading for page in pages for heading in written(page, r"^### (culture [a-z -]+)$")]
    same(list(commands(typer.main.get_command(app), "culture")), documented)


@pytest.mark.parametrize(("existing", "documented"), [(["NICK"], []), ([], ["NICK"]), (["NICK"], ["NICK", "NICK"])])
def test_a_difference_either_way_is_found(existing: list[str], documented: list[str]) -> None:
    with pytest.raises(AssertionError):
        same(existing, documented)


def links(page: Path) -> Iterator[Path]:
    """The files and folders of ours that a page links to."""
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            yield (page.parent / target).resolve()


def test_a_founding_decision_names_every_page_that_amends_it() -> None:
    folder = ROOT / "docs" / "decisions"
    founding = re.split(
        r"^(\d+)a?\. ", (folder / "0000-founding-decisions.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    decisions = dict[str, str]()
    for number, text in zip(founding[1::2], founding[2::2], strict=True):
        decisions[number] = decisions.get(number, "") + text
    amended = set[str]()
    for page in folder.glob("*.md"):
        said = re.search(r"^Amends decisions? ([\d, and]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
        for number in re.findall(r"\d+", said[1]) if said is not None else ():
            amended.add(number)
            assert f"]({page.name})" in decisions[number], f"decision {number} does not name {page.name}"
    assert amended >= {"12", "13", "21", "25", "26"}


def test_whoever_follows_the_links_of_the_readme_finds_every_page() -> None:
    found, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        found.add(page)
        for target in links(page):
            assert target.exists(), f"{page.relative_to(ROOT)} links to {target}"
            pages = [*target.glob("*.md")] if target.is_dir() else [target] if target.suffix == ".md" else []
            waiting += [each for each in pages if each not in found]
    assert sorted({*ROOT.glob("docs/**/*.md")} - found) == []
