"""A person at weechat says what they want; a team of the real Claude Code plans, writes, tests and reviews it."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from culture.clients.shared import pidfile
from culture.config import paths
from culture.orchestrator.journal.state import TaskStage
from culture.orchestrator.journal.store import read_state
from culture.server.ircd import IRCd
from culture.wiki.pages import Pages
from tests.orchestrator.claude.story import (
    DECISION,
    EM,
    IMPLEMENTER,
    MANAGER,
    NAMES,
    PAGE,
    PROJECT,
    STANDUP,
    WORK,
    Story,
)
from tests.orchestrator.conftest import git_in
from tests.realclients.weechat import Weechat, weechat
from tests.support.model import Model
from tests.support.model.journal import Request

# Some five Claude Codes come and go in each of them.
pytestmark = pytest.mark.timeout(240)


async def culture(*words: str, at: Path) -> str:
    """What a command says to the person who types it in the project's folder."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "culture", *words),
        cwd=at,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(120):
        said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    return said.decode()


@asynccontextmanager
async def wendy_and_her_team(ircd: IRCd, project: Path, folder: Path) -> AsyncIterator[Weechat]:
    """spark-wendy at weechat, in the rooms of her project; the EM is there."""
    rooms = ",".join((PROJECT, STANDUP, "#errors", WORK))
    async with weechat(folder / "weechat", f"irc://spark-wendy@127.0.0.1:{ircd.port}/{rooms}") as wendy:
        await wendy.shows(f"Channel {WORK}: ", WORK)
        await culture("team", "up", "--detach", at=project)
        try:
            for room in (PROJECT, STANDUP, "#errors"):
                await wendy.shows(rf"spark-{EM} \(.*\) has joined", room)
            yield wendy
        finally:
            await culture("team", "down", at=project)


async def begun(wendy: Weechat, project: Path) -> None:
    """From the EM's word to the implementer's commit."""
    await wendy.shows(f"^.?spark-{EM} TASK: a greeting with a test", STANDUP)
    await wendy.shows(rf"spark-{MANAGER} \(.*\) has joined", WORK)
    await wendy.shows(rf"\[demo-1\] {MANAGER} takes it on, in {WORK}", STANDUP)
    worktree = project / ".worktrees" / "agent-task-demo-1"
    assert git_in(worktree, "branch", "--show-current") == "task/demo-1\n"
    await wendy.shows(f"^.?spark-{MANAGER} plans/demo-1 has the plan", STANDUP)
    await wendy.shows(f"^.?spark-{MANAGER} TASK: implementer: ", WORK)
    await wendy.shows(f"hired spark-{IMPLEMENTER} as implementer", WORK)
    await wendy.shows(f"^.?spark-{IMPLEMENTER} @spark-{MANAGER} it is committed", WORK)


async def finished(wendy: Weechat, owner: str, tester: str, reviewer: str) -> None:
    """From the tests to the end of the task."""
    await wendy.shows(f"^.?spark-{owner} TASK: test_runner: ", WORK)
    await wendy.shows(f"^.?spark-{tester} @spark-{owner} OK", WORK)
    await wendy.shows(f"^.?spark-{owner} TASK: groucho: ", WORK)
    await wendy.shows(f"^.?spark-{reviewer} @spark-{owner} it does what was asked", WORK)
    await wendy.shows(f"^.?spark-{owner} TASK: demo-1 done: it greets", STANDUP)
    await wendy.shows(r"\[demo-1\] done: it greets.* culture team merge demo-1", STANDUP)
    await wendy.shows(f"^.?spark-{EM} demo-1 is done, and yours to merge", PROJECT)


async def merged(project: Path, wiki: Pages, story: Story) -> None:
    """What is left of it: a branch that the person merges, and pages."""
    assert not (project / "greeting.py").exists()
    assert "greeting.py" in await culture("team", "diff", "demo-1", at=project)
    assert "demo-1 is in main" in await culture("team", "merge", "demo-1", at=project)
    assert git_in(project, "log", "-1", "--format=%s", "--", "greeting.py") == "a greeting\n"
    assert "return" in (project / "greeting.py").read_text()
    assert git_in(project, "status", "--porcelain") == ""
    assert '+    return "hello"' in story.file("seen")
    ruling = wiki.read(DECISION)
    assert ruling.author == f"spark-{EM}" and "The PM wants it so." in ruling.text
    plan, state = wiki.read("plans/demo-1"), wiki.read("sprint-state")
    assert plan.author == f"spark-{MANAGER}" and "1. greeting.py and its test." in plan.text
    assert plan.time <= int(git_in(project, "log", "-1", "--format=%ct", "--", "greeting.py"))
    assert "We greet." in state.text and "| demo-1 | done, branch `task/demo-1` | nobody |" in state.text
    team = read_state(paths.team_dir("demo"))
    assert team.tasks["demo-1"].stage is TaskStage.DONE
    assert [member.name for member in team.members.values()] == [EM]
    assert not (project / ".worktrees" / "agent-task-demo-1").exists()


@pytest.mark.requirement("O29", "M01", "M02", "M04", "M05", "M08", "M13", "M17", "M19", "O22", "O25")
async def test_what_a_person_wants_is_planned_written_tested_reviewed_and_merged(
    team: None, ircd: IRCd, project: Path, story: Story, wiki: tuple[Pages, str], tmp_path: Path, model: Model
) -> None:
    async with wendy_and_her_team(ircd, project, tmp_path) as wendy:
        wendy.type(story.begin(), PROJECT)
        await begun(wendy, project)
        await finished(wendy, MANAGER, NAMES[3], NAMES[4])
        await merged(project, wiki[0], story)
    assert pidfile.all_running() == {}
    asked = {(name, each.body["model"]) for each in model.journal.requests for name in NAMES if is_of(name, each)}
    assert asked == {
        *((name, "claude-opus-4-6") for name in (EM, MANAGER)),
        *((name, "claude-sonnet-4-6") for name in (IMPLEMENTER, NAMES[3], NAMES[4])),
    }


@pytest.mark.requirement("O16", "O17", "O25", "O36")
async def test_a_manager_whose_context_is_full_is_followed_by_one_who_reads_and_finishes(
    team: None, ircd: IRCd, project: Path, story: Story, wiki: tuple[Pages, str], tmp_path: Path, model: Model
) -> None:
    successor = NAMES[3]
    async with wendy_and_her_team(ircd, project, tmp_path) as wendy:
        wendy.type(story.begin(shift=True), PROJECT)
        await begun(wendy, project)
        await wendy.shows(f"^.?spark-{MANAGER} I hand over", WORK)
        for room in (WORK, STANDUP):
            await wendy.shows(rf"Shift change: {MANAGER} \(manager\) hands over to {successor};.*{PAGE}", room)
        await wendy.shows(rf"spark-{MANAGER} \(.*\) has (quit|left)", WORK)
        await wendy.shows(f"^.?spark-{successor} I am {successor}, and go on with the tests", WORK)
        await finished(wendy, successor, NAMES[4], NAMES[5])
        await merged(project, wiki[0], story)
    assert pidfile.all_running() == {}
    assert wiki[0].read(PAGE).author == f"spark-{MANAGER}"
    (asked, *_) = model.journal.asked("Write a handoff summary to the wiki and post a notice to your channels.")
    assert is_of(MANAGER, asked) and PAGE in asked.prompt
    first, *_, last = model.journal.asked(f"You take over from {MANAGER}")
    assert "the tests come next" in last.results[0]
    assert is_of(successor, first) and "it is committed" not in first.everything


def is_of(name: str, request: Request) -> bool:
    """Whether it is this member who asks the model."""
    return f"You are {name}" in json.dumps(request.body.get("system", ""))
