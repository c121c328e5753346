"""Every verb, setting and command is documented, and nothing is documented that is not there."""

import ast
import importlib
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
from tests.test_architecture import MAY_IMPORT

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
        said = re.search(r"^Amends .*?\bdecisions? ([\d, and]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
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


# A page that speaks of the code as it was keeps its paths.
PAST = ("docs/decisions/", "docs/evidence/")
MODULE = re.compile(r"(?<![\w./~])culture(?:\.[A-Za-z_]\w*)+")
SOURCE_FILE = re.compile(r"(?<![\w./~])culture/[\w/]+\.(?:py|txt|md)\b")
OTHER_NAMES = {"culture.yaml", "culture.invalid", "culture.index", "culture.lock"}
ENTRY_POINTS = {"culture.skills", "culture.backends"}
# What packages of others import, and what the founding documents spell out.
PUBLIC = (
    "culture.server.skill",
    "culture.clients.shared.base",
    "culture.clients.claude.agent_runner",
    "culture.clients.claude.config",
    "culture.clients.claude.daemon",
    "culture.clients.claude.irc_transport",
    "culture.clients.claude.skill.irc_client",
    "culture.clients.claude.socket_server",
    "culture.clients.claude.supervisor",
    "culture.clients.claude.webhook",
)


def pages_about_the_code() -> Iterator[tuple[str, str]]:
    """Name and text of every page that must name modules as they are now."""
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))):
        name = page.relative_to(ROOT).as_posix()
        if not name.startswith(PAST):
            yield name, page.read_text(encoding="utf-8")


def can_be_imported(dotted: str) -> bool:
    """Whether a dotted name is a module of ours, or an attribute of one."""
    words = dotted.split(".")
    for count in range(len(words), 0, -1):
        try:
            found: object = importlib.import_module(".".join(words[:count]))
        except ModuleNotFoundError:
            continue
        for word in words[count:]:
            if not hasattr(found, word):
                return False
            found = getattr(found, word)
        return True
    return False


def has_function(path: str, function: str) -> bool:
    """Whether a file defines this function, class or ``Class.method``."""
    file = ROOT / path
    body: list[ast.stmt] = ast.parse(file.read_text(encoding="utf-8")).body if file.is_file() else []
    for name in function.split("."):
        defined = (each for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef))
        match = next((each for each in defined if each.name == name), None)
        if match is None:
            return False
        body = match.body
    return True


def test_documented_modules_can_be_imported() -> None:
    missing = [
        f"{page}: {dotted}"
        for page, text in pages_about_the_code()
        for dotted in sorted(set(MODULE.findall(text)) - OTHER_NAMES - ENTRY_POINTS)
        if not can_be_imported(dotted)
    ]
    assert missing == []


@pytest.mark.parametrize("module", PUBLIC)
def test_public_module_can_be_imported(module: str) -> None:
    assert can_be_imported(module)


def test_documented_source_files_exist() -> None:
    missing = [
        f"{page}: {path}"
        for page, text in pages_about_the_code()
        for path in sorted(set(SOURCE_FILE.findall(text)))
        if not (ROOT / path).is_file()
    ]
    assert missing == []


def test_every_step_of_the_walks_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    steps = re.findall(r"`(culture/[\w/]+\.py):([\w.]+)`", text)
    assert len(steps) > 40
    assert [f"{path}:{function}" for path, function in steps if not has_function(path, function)] == []


@pytest.mark.parametrize(
    ("path", "function"),
    [("culture/nowhere.py", "run"), ("culture/cli/app.py", "run_away"), ("culture/server/ircd.py", "IRCd.fly")],
)
def test_a_step_that_does_not_exist_is_found(path: str, function: str) -> None:
    assert not has_function(path, function)


def test_import_table_of_the_architecture_page_is_the_one_that_is_checked() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_.<>]+)` \|.*\|([^|]+)\|$", text, re.MULTILINE)
    documented = {package: set(re.findall(r"`([a-z_.<>]+)`", cell)) for package, cell in rows}
    assert documented.pop("cli") == set()
    assert documented == MAY_IMPORT


def test_glossary_defines_each_term_once() -> None:
    """The glossary defines each term once, in alphabetical order, one line each."""
    lines = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    terms = [match[1] for line in lines if (match := re.match(r"- \*\*(.+?)\*\*", line))]
    assert len(terms) == len(set(terms)) > 50
    assert terms == sorted(terms, key=str.casefold)
