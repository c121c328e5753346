"""``culture help``: topics that are true, and what any command takes."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from culture.cli import help
from culture.cli.app import app
from culture.cli.command_tree import CommandNode, tree
from culture.cli.commands import COMMANDS, SECTIONS, TOPICS
from culture.config.agents import BudgetConfig, TrustConfig
from culture.config.installation import Installation, Installer
from culture.config.services import WebConfig
from culture.protocol.vocabulary import Exit

TREE = Path(__file__).resolve().parents[2]
PAGE = TREE / "docs" / "clients" / "commands.md"


def told(*words: str) -> str:
    result = CliRunner().invoke(app, ["help", *words])
    assert result.exit_code == 0, result.output
    return result.output


def test_without_a_word_the_topics_are_listed() -> None:
    listed = told()
    assert all(f"  {topic}" in listed and title in listed for topic, title in help.TITLES.items())
    assert {file.stem for file in (Path(help.__file__).parent / "topics").glob("*.txt")} == set(help.TITLES)


@pytest.mark.parametrize("topic", help.TITLES)
def test_a_topic_names_only_commands_and_options_that_there_are(topic: str) -> None:
    text = help.page(topic)
    assert told(topic).startswith(text)
    assert max(map(len, text.splitlines())) <= 130
    root = tree()
    for said in re.findall(r"culture ((?:[a-z-]+ ?)+(?: *--[a-z]+)?)", text):
        _leads_somewhere(root, said.split())


def _leads_somewhere(node: CommandNode, words: list[str]) -> None:
    for word in words:
        if word in node.inner:
            node = node.inner[word]
        else:
            assert word in node.options if word.startswith("--") else not node.inner, (words, word)


def test_whatever_we_tell_people_to_type_is_there() -> None:
    """In messages, on pages and in the documentation."""
    root, found = tree(), 0
    files = [each for ending in ("py", "html", "md") for each in TREE.glob(f"[cd]*/**/*.{ending}")]
    for file in (*files, TREE / "README.md"):
        for said in re.findall(r"(?:`|<code>|\$ )culture ([a-z-]+(?: [a-z-]+)*)", file.read_text(encoding="utf-8")):
            _leads_somewhere(root, said.split())
            found += 1
    assert found > 500


def test_the_settings_of_the_topics_are_there() -> None:
    keys = re.findall(r"^  (\w+): \d+$", help.page("budget"), re.MULTILINE)
    assert keys and set(keys) <= set(BudgetConfig.model_fields)
    assert "timeout_action" in TrustConfig.model_fields and "url" in WebConfig.model_fields


def test_a_command_is_explained_as_with_its_own_help() -> None:
    own = CliRunner().invoke(app, ["server", "start", "--help"], prog_name="culture").output
    assert told("server", "start") == own
    assert "Commands:" in told("server")
    assert told("mesh").splitlines()[-1] == "Usage of the command: culture mesh --help"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("budgt",), "culture help budget"),
        (("server", "strat"), "culture help server start"),
        (("xyzzy",), "`culture help` lists the topics"),
    ],
)
def test_what_there_is_not_is_answered_with_the_nearest(words: tuple[str, ...], hint: str) -> None:
    result = CliRunner().invoke(app, ["help", *words])
    assert result.exit_code == Exit.USAGE
    assert hint in result.output


def test_the_exit_codes_are_those_there_are() -> None:
    codes = {code.value for code in Exit}
    assert set(map(int, re.findall(r"^ ?(\d+) ", help.page("exit-codes"), re.MULTILINE))) == codes
    table = PAGE.read_text(encoding="utf-8").partition("## Exit codes")[2]
    assert set(map(int, re.findall(r"^\| (\d+) \|", table, re.MULTILINE))) == codes


def test_every_command_is_listed_once_with_a_whole_sentence() -> None:
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted(COMMANDS)
    for words in ((), ("mesh",), ("bridge", "token")):
        listed = CliRunner().invoke(app, [*words, "--help"]).output
        assert listed.count("...") == 1, "those of the usage line"
    assert listed.index("Commands:") and "Messages:" in CliRunner().invoke(app, ["--help"]).output


@pytest.mark.parametrize("is_clone", [True, False])
def test_the_upgrade_of_a_clone_begins_with_its_newest_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_clone: bool
) -> None:
    source = tmp_path / "a clone"
    (source / ".git" if is_clone else source).mkdir(parents=True)
    monkeypatch.setattr(help, "installation", lambda: Installation(Installer.MAKE, "python", source))
    fetch = f"git -C '{source}' pull && " if is_clone else ""
    assert f"upgrade:                       {fetch}make -C '{source}' env\n" in told("install")


@pytest.mark.parametrize("name", TOPICS)
def test_the_help_of_a_command_names_the_topic_with_examples(name: str) -> None:
    assert TOPICS[name] in help.TITLES
    shown = CliRunner().invoke(app, [name, "--help"]).output
    assert shown.splitlines()[-1].strip() == f"Examples: culture help {TOPICS[name]}"


def test_an_argument_has_no_python_type() -> None:
    shown = told("say")
    assert "TEXT    Text to send" in shown and "<str>" not in shown and "list[" not in shown
