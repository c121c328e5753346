"""The page on Codex as an agent: its sample loads, its settings are those that there are, its links lead somewhere."""

import re
from pathlib import Path

from culture.clients.codex import BACKEND
from culture.config.load import load_agents
from tests.clients.claude.test_pages import anchors

PAGE = Path(__file__).resolve().parents[3] / "docs" / "clients" / "codex" / "overview.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_its_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", TEXT):
        page, _, anchor = link.partition("#")
        led_to = (PAGE.parent / page).resolve()
        assert led_to.is_file(), link
        assert not anchor or anchor in anchors(led_to.read_text(encoding="utf-8")), link


def test_its_sample_loads(tmp_path: Path) -> None:
    (sample,) = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.M | re.S)
    (tmp_path / "agents.yaml").write_text(sample, encoding="utf-8")
    (agent,) = load_agents(tmp_path / "agents.yaml").config.agents
    assert agent.agent == "codex"


def test_every_setting_is_told() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", TEXT, re.M)) == {"model", "thinking", *BACKEND.fields}
