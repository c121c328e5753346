"""The page on playbooks: every step and every name is there, and its examples do what it says."""

import re
from pathlib import Path

import pytest

from culture.clients.scripted.playbook_schema import STEPS
from culture.clients.scripted.steps import PLACES
from culture.config.load import load_agents
from tests.clients.desks import NotedDesk
from tests.clients.scripted.conftest import Play, Player

PAGE = Path(__file__).resolve().parents[3] / "docs" / "clients" / "scripted.md"
TEXT = PAGE.read_text(encoding="utf-8")
_EXAMPLE = re.compile(r"^```yaml playbook\n(?P<playbook>.*?)^```$(?:\n\n^```\n(?P<talk>> .*?)^```$)?", re.M | re.S)
EXAMPLES = [(found["playbook"], found["talk"] or "") for found in _EXAMPLE.finditer(TEXT)]


async def answer_of(player: Player, prompt: str) -> str:
    """An answer as the page writes it."""
    before = len(player.record.turns)
    await player.runner.send_prompt(prompt)
    await player.record.until(lambda: len(player.record.turns) > before or player.record.exits)
    if player.record.exits:
        return f"(exit {player.record.exits[0]})"
    turn = player.record.turns[-1]
    return f"(error: {turn.error})" if turn.error else turn.text


@pytest.mark.parametrize(("playbook", "talk"), EXAMPLES, ids=range(len(EXAMPLES)))
async def test_an_example_does_what_the_page_says(play: Play, desk: NotedDesk, playbook: str, talk: str) -> None:
    player = await play(playbook)
    exchanges = re.findall(r"^> (.*)\n< (.*)$", talk, re.MULTILINE)
    assert len(exchanges) * 2 == len(talk.splitlines())
    assert [(prompt, await answer_of(player, prompt)) for prompt, _ in exchanges] == exchanges


def test_the_entry_for_agents_yaml_is_one(tmp_path: Path) -> None:
    found = re.search(r"^```yaml agents\n(.*?)^```$", TEXT, re.M | re.S)
    assert found is not None
    (tmp_path / "agents.yaml").write_text(found[1], encoding="utf-8")
    [agent] = load_agents(tmp_path / "agents.yaml").config.agents
    assert (agent.agent, agent.backend_options) == ("scripted", {"playbook": "playbook.yaml"})


def test_every_step_has_its_heading_and_an_example() -> None:
    assert sorted(re.findall(r"^### (\w+)$", TEXT, re.MULTILINE)) == sorted(STEPS)
    for name in STEPS:
        section = re.split(r"^##", TEXT.split(f"\n### {name}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]
        assert re.search(rf"^ *- {name}:", section, re.MULTILINE), name


def test_every_name_that_can_be_filled_in_has_its_row() -> None:
    assert sorted(re.findall(r"^\| `\{(\w+)\}` \|", TEXT, re.MULTILINE)) == sorted(PLACES)
