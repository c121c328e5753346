"""The page of what holds with which program names tests that there are, and that run that program."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "clients" / "conversation.md").read_text(encoding="utf-8")
BACKENDS = ("claude", "codex", "copilot", "acp")
CELL = re.compile(r"(?:yes\b[^:]*: (?P<yes>\w+(?:, \w+)*)|daemon: (?P<daemon>\w+)|(?:no|not shown)\b[^|]{10,})")


def rows() -> list[list[str]]:
    """The cells of the items."""
    found = [line.strip("|").split(" | ") for line in PAGE.splitlines() if re.match(r"\| A\d", line)]
    return [[cell.strip() for cell in row] for row in found]


def named() -> dict[str, tuple[str, str]]:
    """The file and the function of each test."""
    found = re.findall(r"^\| (\w+) \| `([\w/.]+)::(\w+)`", PAGE, re.MULTILINE)
    return {key: (file, name) for key, file, name in found}


def test_every_item_has_a_cell_for_every_program() -> None:
    items = [row[0].split()[0] for row in rows()]
    assert sorted(set(items), key=lambda each: int(each[1:])) == [f"A{number}" for number in range(1, 11)]
    for item, *cells in rows():
        assert len(cells) == len(BACKENDS), item
        assert all(CELL.match(cell) for cell in cells), cells


def test_every_yes_names_a_test_with_that_program() -> None:
    tests = named()
    used = set(re.findall(r"\b[bcxplos]\d+\b", " ".join(cell for row in rows() for cell in row[1:])))
    assert used == tests.keys()
    for _, *cells in rows():
        for backend, cell in zip(BACKENDS, cells, strict=True):
            found = CELL.match(cell)
            for key in (found["yes"] or "").split(", ") if found is not None else ():
                assert not key or tests[key][0].startswith(("tests/clients/test_", f"tests/clients/{backend}/")), cell


def test_every_test_is_there_and_those_of_all_programs_take_each() -> None:
    for key, (file, name) in named().items():
        text = (ROOT / file).read_text(encoding="utf-8")
        functions = {each.name: each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.AsyncFunctionDef)}
        functions |= {each.name: each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.FunctionDef)}  # type: ignore[misc]
        assert name in functions, key
        if key.startswith("b"):
            marks = " ".join(ast.unparse(each) for each in functions[name].decorator_list)
            assert "'nick', NICKS)" in marks or "'nick', ASKING_USER)" in marks, key
