"""A playbook that judges."""

import re
from pathlib import Path

import pytest

from culture.clients.scripted.supervisor import ScriptedSupervisor
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.supervisor import SupervisorSetup
from tests.clients.scripted.test_page import TEXT
from tests.clients.shared.test_supervisor import called, said


def supervisor(folder: Path, playbook: str) -> ScriptedSupervisor:
    """One that judges by this playbook."""
    (folder / "judge.yaml").write_text(playbook, encoding="utf-8")
    return ScriptedSupervisor(SupervisorSetup("spark-claude", folder, options={"playbook": "judge.yaml"}))


@pytest.mark.requirement("I18", "K05")
async def test_the_example_of_the_page_judges(tmp_path: Path) -> None:
    found = re.search(r"^```yaml judge\n(.*?)^```$", TEXT, re.M | re.S)
    assert found is not None
    watching, whispers = supervisor(tmp_path, found[1]), list[tuple[str, str]]()

    async def whispered(message: str, action: str) -> None:
        whispers.append((action, message))

    watching.on_whisper = whispered
    await watching.start()
    for turn in [called("Bash", command="ls")] * 5 + [called("Bash", command="make")] * 2 + [said("hm")] * 3:
        await watching.observe(turn)
        await watching.rest()
    assert whispers == [("CORRECTION", "You have run make twice. Read what it said.")]
    await watching.start()
    for _ in range(5):
        await watching.observe(said("I write it from scratch"))
    await watching.rest()
    assert whispers[1] == ("THINK_DEEPER", "A rewrite deserves a plan.")
    assert watching.failures == 0


@pytest.mark.parametrize(
    "playbook, told",
    [
        ("judge: {when: a, verdict: OK}", "expected a list of judgements"),
        ("judge:\n  - when: a", "verdict is missing"),
        ("judge:\n  - when: a\n    verdict: FINE", "'FINE' is no verdict"),
        ("judge:\n  - when: a\n    verdict: CORRECTION", "'CORRECTION' is no verdict"),
        ("judge:\n  - when: '('\n    verdict: OK", "no regular expression"),
        ("judge:\n  - when: a\n    verdict: OK\n    steps: []", "unknown key"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, playbook: str, told: str) -> None:
    with pytest.raises(WrongConfiguration, match=r"judge\.yaml:\d") as error:
        supervisor(tmp_path, playbook)
    assert told in str(error.value)
