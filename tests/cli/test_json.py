"""Whatever lists something says it to programs, too."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from culture import cli
from culture.cli.app import app
from culture.cli.command_tree import CommandNode, tree

LISTING = ("Show", "List", "Search")
NO_LISTS = {
    ("demo",): "plays something",
    ("logs",): "is a text of others",
    ("web", "serve"): "serves",
    ("web", "start"): "starts",
    ("web", "stop"): "stops",
    ("team", "diff"): "is a diff",
}
HERE = (
    ("status",),
    ("questions",),
    ("backends",),
    ("agents", "list"),
    ("account", "list"),
    ("server", "status"),
    ("server", "config"),
    ("mesh", "list"),
    ("skills", "list"),
    ("bridge", "token", "list"),
)
"""Those that need no server, and here have nothing to list or only what is always there."""


def leaves(node: CommandNode, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], CommandNode]]:
    for name, inner in node.inner.items():
        yield from leaves(inner, (*words, name))
    if not node.inner:
        yield words, node


def test_every_command_that_lists_has_json() -> None:
    lacking = [
        " ".join(words)
        for words, node in leaves(tree())
        if node.help.startswith(LISTING) and words not in NO_LISTS and "--json" not in node.options
    ]
    assert lacking == []


def test_no_command_prints_json_in_another_way_than_that_which_spells_out_what_nobody_sees() -> None:
    printed = [
        f"{file.name}:{number}"
        for file in sorted(Path(cli.__file__).parent.rglob("*.py"))
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(r"(?:echo|print)\(\s*json\.dumps", line)
    ]
    assert printed == []


@pytest.mark.parametrize("words", HERE, ids=" ".join)
def test_it_is_json_also_where_there_is_nothing(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "CULTURE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    (tmp_path / "culture.yaml").write_text("name: spark\n", encoding="utf-8")
    result = CliRunner().invoke(app, [*words, "--json"])
    assert isinstance(json.loads(result.stdout), list | dict), result.output
