"""Teams and wikis: repositories that are gone, and what was left in them."""

import os
import time
from pathlib import Path

import pytest

from culture.cli.doctor.runner import FindingSeverity
from culture.orchestrator.journal.state import Act
from culture.orchestrator.journal.store import TeamStore
from culture.wiki.pages import Pages, folder_of
from tests.cli.doctor.conftest import Patient
from tests.orchestrator.conftest import git_in


@pytest.fixture
def project(patient: Patient) -> Path:
    """The repository of a team called shop."""
    folder = patient.shell.folder / "project"
    folder.mkdir()
    git_in(folder, "init", "--quiet")
    git_in(folder, "commit", "--quiet", "--allow-empty", "-m", "the beginning")
    patient.file("team/shop/team.yaml", f"slug: shop\nproject_dir: {folder}\n")
    return folder


def make_old(file: Path) -> None:
    file.touch()
    os.utime(file, (time.time() - 3600, time.time() - 3600))


def test_a_project_that_is_gone_or_no_repository(patient: Patient, project: Path) -> None:
    assert patient.found("teams.projects") == []
    (project / ".git").rename(project / "not-git")
    assert "not a git repository" in patient.one("teams.projects").what
    project.rename(project.with_name("elsewhere"))
    finding = patient.one("teams.projects")
    assert finding.severity is FindingSeverity.ERROR and "is not there" in finding.what


def test_a_lock_that_a_killed_git_has_left(patient: Patient, project: Path) -> None:
    make_old(project / ".git" / "index.lock")
    assert patient.one("teams.projects").severity is FindingSeverity.WARNING


def test_worktrees_that_no_task_needs(patient: Patient, project: Path) -> None:
    book = TeamStore(patient.home / "team" / "shop")
    book.open()
    book.done(Act.TASK, id="t1", text="build", by="spark-ori")
    book.close()
    for name in ("agent-task-t1", "agent-task-t9", "agent-task-t1.kept-1"):
        git_in(project, "worktree", "add", "--detach", f".worktrees/{name}")
    found = patient.found("teams.worktrees")
    assert {each.severity for each in found} == {FindingSeverity.HINT}
    assert sorted(each.what.split()[0].rpartition("/")[2] for each in found) == [
        "agent-task-t1.kept-1",
        "agent-task-t9",
    ]
    assert all("git -C" in each.next for each in found)


def test_a_wiki_that_is_none_any_more(patient: Patient) -> None:
    Pages.create(folder_of("shop"))
    assert patient.found("teams.wikis") == []
    make_old(folder_of("shop") / "HEAD.lock")
    assert patient.one("teams.wikis").severity is FindingSeverity.HINT
    (folder_of("shop") / "HEAD.lock").unlink()
    (folder_of("shop") / "objects").rename(patient.home / "aside")
    assert patient.one("teams.wikis").severity is FindingSeverity.ERROR


def test_pages_that_wait_to_be_written(patient: Patient, project: Path) -> None:
    patient.file("team/shop/wiki-queue/1.json", "{}")
    finding = patient.one("teams.waiting")
    assert finding.severity is FindingSeverity.HINT and "1 page waits" in finding.what
