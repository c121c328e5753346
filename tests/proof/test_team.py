"""``make proof NAME=team``: a team of ten and forty tasks, while its orchestrator, members and server are killed."""

import asyncio
import json
import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from culture.orchestrator.journal.state import TaskStage
from tests.orchestrator.conftest import git_in
from tests.support.mesh import mesh
from tests.support.teamscripts import SERVER, furnish
from tests.support.teamstorm import TeamStorm

SECONDS = 60 * float(os.environ.get("PROOF_MINUTES") or "5")
TASKS = int(os.environ.get("TEAM_TASKS", "40"))
SEED = int(os.environ.get("PROOF_SEED", "0"))
SETTLING = 600.0


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with names for many, and a home of its own for whoever works in it."""
    home, run, folder = tmp_path / "culture", tmp_path / "run", tmp_path / "project"
    for each in (home, run, folder):
        each.mkdir(mode=0o700)
    (tmp_path / ".gitconfig").write_text("[user]\nname = m\nemail = m@example.org\n[init]\ndefaultBranch = main\n")
    for name, value in {"HOME": tmp_path, "CULTURE_HOME": home, "XDG_RUNTIME_DIR": run}.items():
        monkeypatch.setenv(name, str(value))
    (folder / "names.txt").write_text("".join(f"Kim{number}\n" for number in range(600)))
    (folder / ".gitignore").write_text("*.log\n")
    git_in(folder, "init", "--quiet")
    git_in(folder, "add", ".")
    git_in(folder, "commit", "--quiet", "-m", "the beginning")
    return folder


async def test_whatever_is_killed_each_task_comes_to_an_end_and_nothing_is_lost(project: Path, tmp_path: Path) -> None:
    async with mesh(tmp_path, (SERVER,)) as servers:
        furnish(tmp_path / "storm", project, servers.members[SERVER].port, TASKS)
        storm = TeamStorm(servers, tmp_path / "storm", project, TASKS, random.Random(SEED))
        began = time.monotonic()
        try:
            settling = await storm.rage(SECONDS, SETTLING)
            seconds = time.monotonic() - began
            await storm.end()
            state, left = storm.state, storm.left()
        finally:
            await storm.stop()
        stages = Counter(task.stage for task in state.tasks.values())
        noted, lost, twice = storm.ledger(), storm.lost(), storm.done_twice()
    figures = {
        "tasks": len(state.tasks),
        **{stage.value: stages[stage] for stage in (TaskStage.DONE, TaskStage.FAILED, TaskStage.WAITING)},
        "done_twice": len(twice),
        "most_members_at_once": storm.most_members,
        "members_in_all": len(state.names),
        "asked_by_a_person": storm.asked,
        "followed_by_another": sum(task.shifts for task in state.tasks.values()),
        **{f"kills_of_{what}": storm.kills[what] for what in ("orchestrators", "members", "servers")},
        "commits_and_files_noted": len(noted),
        "lost": len(lost),
        "processes_left": len(left),
        "killing_s": SECONDS,
        "settling_s": round(settling, 1),
        "seconds": round(seconds, 1),
    }
    if path := os.environ.get("PROOF_FIGURES"):
        await asyncio.to_thread(Path(path).write_text, json.dumps(figures))
    assert len(state.tasks) == stages.total() == TASKS
    assert not lost and not twice and not left, (lost, twice, left)
    assert len(set(state.names)) == len(state.names)
    assert git_in(project, "status", "--porcelain") == ""
    assert stages[TaskStage.DONE] >= TASKS // 2
