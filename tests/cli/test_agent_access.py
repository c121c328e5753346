"""Which commands an agent's process may run: the page has the list, and every other one is refused."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import typer

from culture.cli.agent_access import GuardedCommand
from culture.cli.commands import assembled
from culture.protocol.vocabulary import Exit

PAGE = Path(__file__).resolve().parents[2] / "docs/clients/commands.md"


def leaves(command: Any, words: tuple[str, ...] = ("culture",)) -> Iterator[tuple[str, GuardedCommand]]:
    """Every command that does something, with the words that call it."""
    if isinstance(command, click.Group) or hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from leaves(inner, (*words, name))
    else:
        yield " ".join(words), command


COMMANDS = dict(leaves(typer.main.get_command(assembled())))


def on_the_page() -> set[str]:
    """The commands of the table in the page."""
    section = PAGE.read_text(encoding="utf-8").partition("## What agents may run\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {command for row in rows for command in re.findall(r"`([^`]+)`", row)}


def test_every_command_is_guarded_and_the_page_lists_those_that_are_open() -> None:
    assert len(COMMANDS) > 70
    assert [name for name, command in COMMANDS.items() if not isinstance(command, GuardedCommand)] == []
    assert {name for name, command in COMMANDS.items() if command.is_open} == on_the_page()


def test_a_command_that_is_not_open_does_nothing_for_an_agent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CULTURE_NICK", "spark-claude")
    for name, command in COMMANDS.items():
        if command.is_open:
            continue
        with pytest.raises(typer.Exit) as ended:
            command.invoke(command.context_class(command, info_name=name))
        assert ended.value.exit_code == Exit.DENIED, name
        assert "this command is for people, and you are spark-claude: " in capsys.readouterr().err, name


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        ("account token", "ask one of them"),
        ("bridge token add", "ask one of them"),
        ("web link", "ask one of them"),
        ("mesh invite", "ask one of them"),
        ("agents add", "ask one of them"),
        ("answer", "use irc_client"),
        ("team hire", "ask in the project's channel"),
    ],
)
def test_an_agent_is_told_what_to_do_in_place_of_a_command(
    command: str, instead: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CULTURE_NICK", "spark-claude")
    found = COMMANDS[f"culture {command}"]
    with pytest.raises(typer.Exit):
        found.invoke(found.context_class(found, info_name=command))
    assert instead in capsys.readouterr().err


def test_an_agent_looks_at_the_findings_of_doctor_and_mends_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CULTURE_NICK", "spark-claude")
    command = COMMANDS["culture doctor"]
    with pytest.raises(typer.Exit) as ended:
        command.invoke(command.make_context("doctor", ["--fix"]))
    assert ended.value.exit_code == Exit.DENIED
    assert "this command is for people" in capsys.readouterr().err
