"""Worktrees are made and removed by the team alone, and nothing in them is lost."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from culture.orchestrator.repository.salvage import INCOMPLETE, SalvagedWork, drop, is_dirty, rescues, salvage
from culture.orchestrator.repository.worktrees import UnsafePlace, Worktrees
from culture.orchestrator.tasks.task_checks import changed_files
from tests.orchestrator.conftest import git_in


@pytest.mark.requirement("O20")
async def test_a_task_has_a_branch_and_a_worktree_and_having_them_again_changes_nothing(project: Path) -> None:
    trees = Worktrees(project)
    made = await trees.ensure("demo-1", "main")
    assert made.path == project / ".worktrees" / "agent-task-demo-1"
    assert git_in(made.path, "branch", "--show-current") == "task/demo-1\n"
    (made.path / "new").write_text("x")
    assert await trees.ensure("demo-1", "main") == made
    assert (made.path / "new").read_text() == "x"
    assert git_in(project, "status", "--porcelain") == ""
    assert await trees.tasks() == {"demo-1"}


async def test_what_a_person_has_git_ignore_stays_as_they_wrote_it(project: Path) -> None:
    exclude = project / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_bytes(b"caf\xe9.txt")
    trees = Worktrees(project)
    await trees.ensure("demo-1", "main")
    await trees.ensure("demo-2", "main")
    assert exclude.read_bytes() == b"caf\xe9.txt\n/.worktrees/\n"


@pytest.mark.fault("I17")
@pytest.mark.parametrize("link", ["info", "info/exclude"])
async def test_link_in_the_place_of_what_git_ignores_is_not_followed(link: str, project: Path, tmp_path: Path) -> None:
    """A member in a sandbox may write in the repository, and the team's orchestrator is outside."""
    (tmp_path / "exclude").write_text("a file of the user's\n")
    shutil.rmtree(project / ".git" / "info", ignore_errors=True)
    (project / ".git" / link).parent.mkdir(exist_ok=True)
    (project / ".git" / link).symlink_to(tmp_path if link == "info" else tmp_path / "exclude")
    await Worktrees(project).ensure("T1", "main")
    assert (tmp_path / "exclude").read_text() == "a file of the user's\n"


async def test_twenty_at_once(project: Path) -> None:
    trees, others = Worktrees(project), Worktrees(project)
    made = await asyncio.gather(*((trees, others)[n % 2].ensure(f"demo-{n}", "main") for n in range(20)))
    assert {each.branch for each in made} == {f"task/demo-{n}" for n in range(20)}
    assert await trees.tasks() == {f"demo-{n}" for n in range(20)}


@pytest.mark.fault("I9")
async def test_a_folder_that_git_does_not_know_is_kept(project: Path) -> None:
    trees = Worktrees(project)
    place = trees.path_of("demo-1")
    place.mkdir(parents=True)
    (place / "mine").write_text("precious")
    made = await trees.ensure("demo-1", "main")
    assert made.moved is not None
    assert (made.moved / "mine").read_text() == "precious"
    assert (made.path / "README.md").exists()


@pytest.mark.fault("I10")
async def test_one_whose_folder_is_gone_and_locked_is_made_again(project: Path) -> None:
    trees = Worktrees(project)
    made = await trees.ensure("demo-1", "main")
    git_in(project, "worktree", "lock", str(made.path))
    shutil.rmtree(made.path)
    assert (await trees.ensure("demo-1", "main")).path == made.path
    assert (made.path / "README.md").exists()


async def test_a_symlink_in_its_place_is_refused(project: Path, tmp_path: Path) -> None:
    trees = Worktrees(project)
    trees.folder.mkdir()
    trees.path_of("demo-1").symlink_to(tmp_path)
    with pytest.raises(UnsafePlace):
        await trees.ensure("demo-1", "main")


@pytest.mark.requirement("O24")
@pytest.mark.fault("I11")
async def test_what_is_not_committed_is_kept_before_a_worktree_goes(project: Path, tmp_path: Path) -> None:
    trees = Worktrees(project)
    made = await trees.ensure("demo-1", "main")
    outside = tmp_path / "outside"
    outside.write_text("not ours")
    (made.path / "README.md").write_text("# changed\n")
    (made.path / "new.py").write_text("print()\n")
    (made.path / "run.log").write_text("ignored\n")
    (made.path / "link").symlink_to(outside)
    lock = project / ".git" / "worktrees" / "agent-task-demo-1" / "index.lock"
    lock.touch()
    kept = await salvage(project, made.path, "demo-1", "its agent was killed")
    assert kept.must_stay == ""
    assert git_in(project, "log", "-1", "--format=%s", "task/demo-1").startswith(INCOMPLETE)
    assert git_in(project, "show", f"{kept.ref}:run.log") == "ignored\n"
    assert git_in(project, "show", f"{kept.ref}:new.py") == "print()\n"
    await trees.remove("demo-1")
    assert not made.path.exists()
    assert outside.read_text() == "not ours"
    again = await trees.ensure("demo-1", "main")
    assert (again.path / "new.py").read_text() == "print()\n"


async def test_a_repository_inside_of_it_makes_it_stay(project: Path) -> None:
    made = await Worktrees(project).ensure("demo-1", "main")
    (made.path / "inner").mkdir()
    git_in(made.path / "inner", "init", "--quiet")
    assert "inner" in (await salvage(project, made.path, "demo-1", "x")).must_stay


def _older(file: Path) -> None:
    """Have git look into a file again that it knows."""
    os.utime(file, (1, 1))


@pytest.mark.parametrize("way", ["a repository inside", "another repository in its place"])
async def test_nothing_is_run_that_an_agent_wrote_into_another_repository(
    project: Path, tmp_path: Path, way: str
) -> None:
    """A sandbox keeps agents from the settings of the project's repository, and from no other."""
    made = await Worktrees(project).ensure("demo-1", "main")
    ran = tmp_path / "ran"
    theirs = made.path / "inner"
    if way == "a repository inside":
        theirs.mkdir()
        git_in(theirs, "init", "--quiet")
        (theirs / "file").write_text("text\n")
        git_in(theirs, "add", ".")
        git_in(theirs, "commit", "--quiet", "-m", "inner")
        git_in(made.path, "add", "inner")
        settings, file = theirs / ".git" / "config", theirs / "file"
    else:
        shutil.copytree(project / ".git", tmp_path / "theirs", ignore=shutil.ignore_patterns("worktrees"))
        own = Path(git_in(made.path, "rev-parse", "--absolute-git-dir").strip())
        (own / "commondir").write_text(f"{tmp_path / 'theirs'}\n")
        settings, file = tmp_path / "theirs" / "config", made.path / "README.md"
    settings.write_text(settings.read_text() + f'[filter "x"]\n\tclean = touch {ran}; cat\n')
    (file.parent / ".gitattributes").write_text("* filter=x\n")
    for look in (is_dirty(made.path), changed_files(made.path, "main"), salvage(project, made.path, "demo-1", "x")):
        _older(file)
        await look
        assert not ran.exists()


@pytest.mark.fault("I13")
async def test_a_branch_goes_only_when_it_is_merged_or_archived(project: Path) -> None:
    trees = Worktrees(project)
    made = await trees.ensure("demo-1", "main")
    (made.path / "new").write_text("x")
    git_in(made.path, "add", "new")
    git_in(made.path, "commit", "--quiet", "-m", "new")
    await trees.remove("demo-1")
    assert not await trees.delete_branch("demo-1", "main")
    ref = await trees.archive("demo-1")
    assert await trees.delete_branch("demo-1", "main")
    assert git_in(project, "show", f"{ref}:new") == "x"
    merged = await trees.ensure("demo-2", "main")
    (merged.path / "other").write_text("y")
    git_in(merged.path, "add", "other")
    git_in(merged.path, "commit", "--quiet", "-m", "other")
    await trees.remove("demo-2")
    assert not await trees.delete_branch("demo-2", "main")
    git_in(project, "merge", "--quiet", "--no-edit", "task/demo-2")
    assert await trees.delete_branch("demo-2", "main")


async def test_a_worktree_of_a_person_that_is_not_there_at_the_moment_stays_known(
    project: Path, tmp_path: Path
) -> None:
    """As on a disk that is not mounted, or seen from a container."""
    theirs, trees = tmp_path / "theirs", Worktrees(project)
    git_in(project, "worktree", "add", "--quiet", "--detach", str(theirs))
    made = await trees.ensure("demo-1", "main")
    theirs.rename(tmp_path / "away")
    shutil.rmtree(made.path)
    await trees.remove("demo-1")
    assert [each.path for each in await trees.list_worktrees()] == [project, theirs]
    (tmp_path / "away").rename(theirs)
    assert git_in(theirs, "status", "--porcelain") == ""


async def test_by_a_symlink_to_the_project_it_is_the_same_worktree(project: Path, tmp_path: Path) -> None:
    by_link = tmp_path / "link"
    by_link.symlink_to(project)
    trees = Worktrees(by_link)
    made = await trees.ensure("demo-1", "main")
    assert await trees.ensure("demo-1", "main") == made
    await trees.remove("demo-1")
    assert not made.path.exists()


async def test_the_branch_of_a_task_that_is_done_stays_as_it_was_reported(project: Path) -> None:
    made = await Worktrees(project).ensure("demo-1", "main")
    reported = git_in(project, "rev-parse", "task/demo-1")
    (made.path / "README.md").write_text("afterthought")
    kept = await salvage(project, made.path, "demo-1", "it is over", is_done=True)
    assert kept.uncommitted
    assert git_in(project, "rev-parse", "task/demo-1") == reported
    assert git_in(project, "show", f"{kept.ref}:README.md") == "afterthought"


async def test_ignored_files_of_a_task_that_is_done_are_never_committed(project: Path) -> None:
    made = await Worktrees(project).ensure("demo-1", "main")
    (made.path / "secret.log").write_text("TOKEN=1\n")
    assert await salvage(project, made.path, "demo-1", "it is over", is_done=True) == SalvagedWork()
    (made.path / "README.md").write_text("afterthought")
    kept = await salvage(project, made.path, "demo-1", "it is over", is_done=True)
    assert git_in(project, "ls-tree", "--name-only", kept.ref).split() == [".gitignore", "README.md"]
    assert "secret.log" not in git_in(project, "log", "--all", "--name-only", "--format=")


async def test_what_was_kept_is_listed_with_its_files_and_dropped_by_name(project: Path) -> None:
    trees = Worktrees(project)
    for id, name in (("demo-1", "run.log"), ("demo-2", "new.py")):
        made = await trees.ensure(id, "main")
        git_in(made.path, "switch", "--quiet", "--detach")
        (made.path / name).write_text("x")
        await salvage(project, made.path, id, "it failed")
    one, two = sorted(await rescues(project), key=lambda each: each.name)
    assert (one.name, one.task, one.files, one.ignored) == ("demo-1/1", "demo-1", ("run.log",), ("run.log",))
    assert (two.files, two.ignored) == (("new.py",), ())
    assert await rescues(project, "demo-2") == [two]
    assert await drop(project, one)
    assert not await drop(project, one)
    assert await rescues(project) == [two]


async def test_what_the_index_does_not_look_at_is_kept_too_and_kept_once(project: Path) -> None:
    made = await Worktrees(project).ensure("demo-1", "main")
    git_in(made.path, "update-index", "--assume-unchanged", "README.md")
    (made.path / "README.md").write_text("unseen")
    kept = await salvage(project, made.path, "demo-1", "it is over")
    assert git_in(project, "show", f"{kept.ref}:README.md") == "unseen"
    assert (await salvage(project, made.path, "demo-1", "again, after a crash")).ref == kept.ref
    assert git_in(project, "log", "--format=%s", "main..task/demo-1") == f"{INCOMPLETE} it is over\n"


async def test_what_is_staged_and_what_is_on_no_branch_is_kept_too(project: Path) -> None:
    """Both are known to the worktree's own index and reflog alone, and these go with it."""
    trees = Worktrees(project)
    made = await trees.ensure("demo-1", "main")
    git_in(made.path, "switch", "--quiet", "--detach")
    for name in ("one", "two"):
        (made.path / name).write_text(f"{name}\n")
        git_in(made.path, "add", name)
        git_in(made.path, "commit", "--quiet", "-m", name)
    left = git_in(made.path, "rev-parse", "HEAD").strip()
    git_in(made.path, "switch", "--quiet", "task/demo-1")
    (made.path / "README.md").write_text("staged\n")
    git_in(made.path, "add", "README.md")
    (made.path / "README.md").write_text("# demo\n")
    kept = await salvage(project, made.path, "demo-1", "it is over")
    assert not kept.uncommitted
    assert (await salvage(project, made.path, "demo-1", "it is over", is_done=True)).must_stay == ""
    await trees.remove("demo-1")
    git_in(project, "gc", "--quiet", "--prune=now")
    head, staged, found = git_in(project, "log", "-1", "--format=%P", kept.ref).split()
    assert head == git_in(project, "rev-parse", "task/demo-1").strip()
    assert found == left
    assert git_in(project, "show", f"{staged}:README.md") == "staged\n"
    assert git_in(project, "show", f"{kept.ref}~0^3:one") == "one\n"


async def test_edits_that_a_rebase_has_put_aside_are_kept(project: Path) -> None:
    trees = Worktrees(project)
    made = await trees.ensure("demo-1", "main")
    git_in(made.path, "commit", "--quiet", "--allow-empty", "-m", "empty")
    (made.path / "README.md").write_text("put aside\n")
    pause = "sequence.editor=sed -i s/^pick/edit/"
    git_in(made.path, "-c", pause, "rebase", "--quiet", "-i", "--autostash", "--keep-empty", "--force-rebase", "HEAD~1")
    assert (made.path / "README.md").read_text() == "# demo\n"
    kept = await salvage(project, made.path, "demo-1", "it is over")
    await trees.remove("demo-1")
    aside = [git_in(project, "show", f"{each}:README.md") for each in git_in(project, "rev-list", kept.ref).split()]
    assert "put aside\n" in aside


async def test_a_worktree_that_stays_is_kept_once(project: Path) -> None:
    made = await Worktrees(project).ensure("demo-1", "main")
    (made.path / "README.md").write_text("afterthought")
    kept = await salvage(project, made.path, "demo-1", "it is over", is_done=True)
    assert (await salvage(project, made.path, "demo-1", "it is over", is_done=True)).ref == kept.ref


async def test_what_is_no_worktree_of_the_project_stays_as_it_is(project: Path) -> None:
    trees = Worktrees(project)
    made = await trees.ensure("demo-1", "main")
    shutil.rmtree(project / ".git" / "worktrees" / "agent-task-demo-1")
    (made.path / "new").write_text("x")
    assert "broken" in (await salvage(project, made.path, "demo-1", "x")).must_stay
    clone = trees.path_of("demo-2")
    git_in(project, "clone", "--quiet", str(project), str(clone))
    assert "no worktree" in (await salvage(project, clone, "demo-2", "x")).must_stay


async def test_a_branch_that_a_person_has_checked_out_is_not_worked_on_beside_them(
    project: Path, tmp_path: Path
) -> None:
    """The commits of one would undo those of the other: each has an index of its own on one branch."""
    trees = Worktrees(project)
    await trees.ensure("demo-1", "main")
    await trees.remove("demo-1")
    theirs = tmp_path / "theirs"
    git_in(project, "worktree", "add", "--quiet", str(theirs), "task/demo-1")
    with pytest.raises(UnsafePlace, match=str(theirs)):
        await trees.ensure("demo-1", "main")
    git_in(theirs, "switch", "--quiet", "--detach")
    assert (await trees.ensure("demo-1", "main")).path.exists()


async def test_one_that_is_half_removed_does_not_count_as_one_whose_files_were_deleted(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a power cut in the middle of it: files that are gone must not become a commit without them."""
    trees = Worktrees(project)
    made = await trees.ensure("demo-1", "main")
    (made.path / "new").write_text("x")
    kept = await salvage(project, made.path, "demo-1", "it is over")

    def cut(path: Path, **_: object) -> None:
        (path / "new").unlink()
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr("culture.orchestrator.repository.worktrees.shutil.rmtree", cut)
        with pytest.raises(InterruptedError):
            await trees.remove("demo-1")
    assert (await salvage(project, made.path, "demo-1", "again")).ref == kept.ref
    await trees.remove("demo-1")
    assert git_in(project, "show", "task/demo-1:new") == "x"
    await trees.sweep()
    assert [path.name for path in trees.folder.iterdir()] == [".lock"]


async def test_one_that_was_half_made_is_made_again(project: Path) -> None:
    trees = Worktrees(project)
    made = await trees.ensure("demo-1", "main")
    (made.path / "README.md").unlink()
    (project / ".git" / "worktrees" / made.path.name / "locked").write_text("initializing")
    again = await trees.ensure("demo-1", "main")
    assert again.moved is not None
    assert (again.path / "README.md").exists()
    assert git_in(again.path, "status", "--porcelain") == ""
