"""A project and its team, every member of which is the real Claude Code; its model is scripted."""

import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.config import paths
from culture.orchestrator.repository.locks import FILE, holder_of
from culture.server.ircd import IRCd
from culture.wiki.pages import Pages, folder_of
from culture.wiki.server import serving
from tests.clients.claude.conftest import environment, home, model  # noqa: F401
from tests.orchestrator.claude.story import NAMES, Story
from tests.orchestrator.conftest import git_in
from tests.orchestrator.crew import end_members
from tests.support.model import Model


@pytest.fixture
def story(project: Path, tmp_path: Path) -> Story:
    """What everybody says and does; the project has its own names, and its own word for a hand-off."""
    told = Story(tmp_path / "story")
    (project / "names.txt").write_text("\n".join(NAMES) + "\n")
    (project / "prompts").mkdir()
    (project / "prompts" / "handoff.md").write_text(told.handoff_prompt)
    git_in(project, "add", ".")
    git_in(project, "commit", "--quiet", "-m", "names, and how we hand over")
    return told


@pytest.fixture
async def wiki(home: Path) -> AsyncIterator[tuple[Pages, str]]:  # noqa: F811
    """The project's wiki, and where it is served to agents."""
    pages = Pages.create(folder_of("demo"))
    async with serving(pages, port=0) as port:
        yield pages, f"http://127.0.0.1:{port}/mcp"


@pytest.fixture
async def team(
    ircd: IRCd,
    home: Path,  # noqa: F811
    project: Path,
    wiki: tuple[Pages, str],
    story: Story,
    model: Model,  # noqa: F811
) -> AsyncIterator[None]:
    """The team's file; whoever came is gone with the test."""
    if shutil.which("weechat-headless") is None:
        pytest.skip("not installed: weechat-headless")
    (Path.home() / ".gitconfig").write_text("[user]\nname = ori\nemail = ori@example.org\n")
    said = {
        "slug": "demo",
        "project_dir": str(project),
        "server": {"name": "spark", "host": "127.0.0.1", "port": ircd.port},
        "supervisor": {"agent": "none"},
        "wiki_mcp_url": wiki[1],
        "roles": {role: {"options": {"cool_down": 0}} for role in ("em", "manager")},
    }
    file = paths.team_dir("demo") / "team.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(said), encoding="utf-8")
    yield
    pid = holder_of(file.with_name(FILE))
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
    await end_members(home)
