"""The pages on Claude as an agent: all are there, their samples load, and their links lead somewhere."""

import re
from pathlib import Path

import pytest

from culture.config.load import load_agents

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "clients" / "claude"
NAMES = ("overview", "irc-tools", "supervisor", "context-management", "webhooks", "configuration")


def anchors(text: str) -> set[str]:
    """Where a link into a page may lead."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.requirement("L05")
@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_there_and_its_links_lead_somewhere(name: str) -> None:
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)]+)\)", text):
        page, _, anchor = link.partition("#")
        led_to = (FOLDER / page).resolve() if page else FOLDER / f"{name}.md"
        assert led_to.is_file(), link
        assert not anchor or anchor in anchors(led_to.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("name", ["overview", "supervisor", "webhooks", "configuration"])
def test_a_sample_loads(name: str, tmp_path: Path) -> None:
    sample, *_ = re.findall(r"^```yaml\n(.*?)^```$", (FOLDER / f"{name}.md").read_text("utf-8"), re.M | re.S)
    rest = "" if "agents:" in sample else "agents: []\n"
    (tmp_path / "agents.yaml").write_text(sample + rest, encoding="utf-8")
    load_agents(tmp_path / "agents.yaml")
