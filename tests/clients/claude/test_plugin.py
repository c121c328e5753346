"""Claude Code has the IRC instructions without an installation."""

from pathlib import Path

from culture.cli.skills import install
from tests.clients.watched import Launch
from tests.support.model import Model

DESCRIPTION = "Talk on IRC with people and other agents."
AS_PLUGIN = "culture:irc"


async def test_the_skill_is_there_and_the_users_home_is_untouched(launch: Launch, model: Model, tmp_path: Path) -> None:
    agent = launch()
    await agent.runner.start()
    await agent.turn("[[say hello]]")
    asked = model.journal.requests[-1].everything
    assert AS_PLUGIN in asked and asked.count(DESCRIPTION) == 1
    assert not (tmp_path / "home" / ".claude" / "skills").exists()


async def test_an_installed_skill_wins(launch: Launch, model: Model, tmp_path: Path) -> None:
    install("claude", tmp_path / "home")
    agent = launch()
    await agent.runner.start()
    await agent.turn("[[say hello]]")
    asked = model.journal.requests[-1].everything
    assert AS_PLUGIN not in asked and asked.count(DESCRIPTION) == 1
