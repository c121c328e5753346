"""A task's branch comes into main at a person's word, and nobody's edits are lost."""

import asyncio
import os
from pathlib import Path

import pytest

from culture.lib.git_identity import signature
from culture.orchestrator.repository.merge import NotMerged, conflicts, diff, main_branch, merge, summary
from culture.orchestrator.repository.worktrees import Worktrees
from culture.orchestrator.tasks.task_checks import changed_files, overlaps
from tests.orchestrator.conftest import git_in
from tests.support.waiting import until

HOOKS = (
    *("pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-merge", "post-checkout", "post-index-change"),
    *("reference-transaction", "fsmonitor-watchman"),
)


@pytest.fixture(autouse=True)
def somebody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n  name = ori\n  email = ori@example.org\n")
    monkeypatch.setenv("HOME", str(home))


async def task(trees: Worktrees, id: str, **files: str) -> Path:
    made = await trees.ensure(id, "main")
    for name, text in files.items():
        (made.path / name).write_text(text)
    git_in(made.path, "add", ".")
    git_in(made.path, "commit", "--quiet", "-m", f"what {id} is about")
    return made.path


@pytest.mark.requirement("O22")
async def test_it_is_shown_and_merged(project: Path) -> None:
    trees = Worktrees(project)
    await task(trees, "demo-1", new="hello\n")
    assert await main_branch(project) == "main"
    assert "what demo-1 is about" in await summary(project, "demo-1", "main")
    assert "+hello" in await diff(project, "demo-1", "main")
    merged = await merge(trees, "demo-1", "main", "merge demo-1")
    assert merged.changed
    assert (project / "new").read_text() == "hello\n"
    assert git_in(project, "log", "-1", "--format=%an %s") == "ori merge demo-1\n"
    assert not (await merge(trees, "demo-1", "main", "again")).changed


@pytest.mark.parametrize("home", ["empty", "missing", "unset"])
@pytest.mark.parametrize("branch", ["main", "elsewhere"])
async def test_without_a_git_identity_the_team_signs(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str, branch: str
) -> None:
    trees = Worktrees(project)
    await task(trees, "demo-1", new="hello\n")
    git_in(project, "switch", "--quiet", *([] if branch == "main" else ["-c"]), branch)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    if home == "unset":
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", str(tmp_path / home))
        (tmp_path / "empty").mkdir()
    merged = await merge(trees, "demo-1", "main", "merge demo-1")
    assert merged.changed and merged.signed_by_us
    signed = git_in(project, "log", "-1", "--format=%an %ae %cn %ce", "main")
    assert signed == "culture team team@culture.invalid culture team team@culture.invalid\n"


async def test_an_identity_in_the_environment_signs(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of git's variables these alone reach a merge."""
    trees = Worktrees(project)
    await task(trees, "demo-1", new="hello\n")
    monkeypatch.setenv("HOME", str(tmp_path / "none"))
    for name, value in signature("eve", "eve@example.org").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert not (await merge(trees, "demo-1", "main", "merge demo-1")).signed_by_us
    monkeypatch.delenv("GIT_DIR")
    assert git_in(project, "log", "-1", "--format=%an %ce") == "eve eve@example.org\n"


@pytest.mark.fault("I14")
async def test_edits_of_a_person_are_left_alone(project: Path) -> None:
    trees = Worktrees(project)
    await task(trees, "demo-1", new="theirs\n")
    (project / "README.md").write_text("mine\n")
    with pytest.raises(NotMerged, match="edits of yours"):
        await merge(trees, "demo-1", "main", "m")
    assert (project / "README.md").read_text() == "mine\n"
    git_in(project, "checkout", "--quiet", "README.md")
    (project / "new").write_text("not in git, and mine\n")
    with pytest.raises(NotMerged, match="new would be overwritten"):
        await merge(trees, "demo-1", "main", "m")
    assert (project / "new").read_text() == "not in git, and mine\n"
    assert git_in(project, "status", "--porcelain") == "?? new\n"


@pytest.mark.fault("I14")
async def test_a_target_that_is_checked_out_elsewhere_is_left_alone(project: Path, tmp_path: Path) -> None:
    trees = Worktrees(project)
    await task(trees, "demo-1", new="x\n")
    git_in(project, "checkout", "--quiet", "-b", "mine")
    merged = await merge(trees, "demo-1", "main", "m")
    assert git_in(project, "show", "main:new") == "x\n"
    assert git_in(project, "rev-parse", "main").strip() == merged.commit
    await task(trees, "demo-2", other="y\n")
    git_in(project, "worktree", "add", "--quiet", str(tmp_path / "elsewhere"), "main")
    with pytest.raises(NotMerged, match="elsewhere"):
        await merge(trees, "demo-2", "main", "m")


@pytest.mark.requirement("O23")
async def test_two_tasks_that_change_one_file(project: Path) -> None:
    trees = Worktrees(project)
    one = await task(trees, "demo-1", **{"README.md": "one\n", "a": "a\n"})
    two = await task(trees, "demo-2", b="b\n")
    (two / "README.md").write_text("not committed yet\n")
    files = {"demo-1": await changed_files(one, "main"), "demo-2": await changed_files(two, "main")}
    assert overlaps(files) == {("demo-1", "demo-2"): frozenset({"README.md"})}
    git_in(two, "commit", "--quiet", "-am", "two")
    assert await conflicts(project, "task/demo-1", "task/demo-2") == ("README.md",)
    await merge(trees, "demo-1", "main", "m")
    with pytest.raises(NotMerged) as refused:
        await merge(trees, "demo-2", "main", "m")
    assert refused.value.conflicts == ("README.md",)
    assert git_in(project, "status", "--porcelain") == ""


@pytest.mark.fault("I14")
async def test_a_file_that_git_ignores_or_was_told_not_to_look_at_is_not_overwritten(project: Path) -> None:
    trees = Worktrees(project)
    theirs = await task(trees, "demo-1", **{"README.md": "theirs\n"})
    (theirs / "notes.log").write_text("theirs\n")
    (theirs / "kept").mkdir()
    (theirs / "kept" / "a.log").write_text("theirs\n")
    git_in(theirs, "add", "--force", ".")
    git_in(theirs, "commit", "--quiet", "-m", "ignored files")
    mine = project / "notes.log"
    mine.write_text("mine\n")
    with pytest.raises(NotMerged, match=r"notes\.log would be overwritten"):
        await merge(trees, "demo-1", "main", "m")
    assert mine.read_text() == "mine\n"
    mine.unlink()
    with (project / ".git" / "info" / "exclude").open("a") as rules:
        rules.write("kept\n")
    (project / "kept").write_text("a file where they have a folder\n")
    with pytest.raises(NotMerged, match="kept would be overwritten"):
        await merge(trees, "demo-1", "main", "m")
    (project / "kept").unlink()
    git_in(project, "update-index", "--assume-unchanged", "README.md")
    (project / "README.md").write_text("mine\n")
    with pytest.raises(NotMerged, match=r"edits of yours \(README\.md\)"):
        await merge(trees, "demo-1", "main", "m")
    assert (project / "README.md").read_text() == "mine\n"


@pytest.mark.fault("I14")
async def test_what_a_person_is_in_the_middle_of_goes_on(project: Path) -> None:
    trees = Worktrees(project)
    await task(trees, "demo-1", new="theirs\n")
    git_in(project, "switch", "--quiet", "-c", "other")
    git_in(project, "commit", "--quiet", "--allow-empty", "-m", "other")
    git_in(project, "switch", "--quiet", "main")
    git_in(project, "merge", "--quiet", "--no-ff", "--no-commit", "other")
    assert git_in(project, "status", "--porcelain") == ""
    with pytest.raises(NotMerged, match="in the middle of a merge"):
        await merge(trees, "demo-1", "main", "m")
    assert git_in(project, "rev-parse", "MERGE_HEAD") == git_in(project, "rev-parse", "other")
    git_in(project, "merge", "--abort")
    # During a rebase main is checked out nowhere, and would be moved behind the person's back.
    (project / "mine").write_text("mine\n")
    git_in(project, "add", "mine")
    git_in(project, "commit", "--quiet", "-m", "mine")
    before = git_in(project, "rev-parse", "main")
    git_in(project, "-c", "sequence.editor=sed -i s/^pick/edit/", "rebase", "--quiet", "-i", "--force-rebase", "HEAD~1")
    with pytest.raises(NotMerged, match="being rebased"):
        await merge(trees, "demo-1", "main", "m")
    assert git_in(project, "rev-parse", "main") == before


async def test_a_merge_that_is_broken_off_leaves_the_folder_as_it_was(project: Path, tmp_path: Path) -> None:
    trees = Worktrees(project)
    (project / ".gitattributes").write_text("new filter=slow\n")
    git_in(project, "add", ".")
    git_in(project, "commit", "--quiet", "-m", "attributes")
    await task(trees, "demo-1", new="theirs\n")
    begun = tmp_path / "begun"
    git_in(project, "config", "filter.slow.smudge", f"touch {begun}; sleep 60; cat")
    before = git_in(project, "rev-parse", "main")
    merging = asyncio.create_task(merge(trees, "demo-1", "main", "m"))
    await until(begun.exists)
    merging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await merging
    assert git_in(project, "rev-parse", "main") == before
    assert git_in(project, "status", "--porcelain") == ""
    git_in(project, "config", "filter.slow.smudge", "cat")
    assert (await merge(trees, "demo-1", "main", "m")).changed


@pytest.mark.parametrize("branch", ["main", "elsewhere"])
async def test_a_merge_runs_no_hooks_of_the_project(project: Path, tmp_path: Path, branch: str) -> None:
    trees = Worktrees(project)
    await task(trees, "demo-1", new="theirs\n")
    git_in(project, "switch", "--quiet", *([] if branch == "main" else ["-c"]), branch)
    ran, hooks = tmp_path / "ran", project / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in HOOKS:
        (hooks / name).write_text(f"#!/bin/sh\necho {name} >>{ran}\n")
        (hooks / name).chmod(0o755)
    git_in(project, "config", "core.fsmonitor", str(hooks / "fsmonitor-watchman"))
    ran.unlink(missing_ok=True)
    assert (await merge(trees, "demo-1", "main", "m")).changed
    assert not ran.exists(), ran.read_text()
