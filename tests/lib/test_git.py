"""One runner of git: whose settings count, what it may run, and how it ends."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from culture.lib.git import MOST_OUTPUT, Git, GitFailed, in_project, isolated
from culture.lib.git_identity import signature
from tests.support.waiting import PATIENCE, until

Script = Callable[[str], None]
HOOKS = ("pre-commit", "commit-msg", "post-commit", "reference-transaction")


def plain(folder: Path, *arguments: str) -> str:
    """What git prints, as its owner runs it."""
    who = ["-c", "user.name=ori", "-c", "user.email=ori@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one commit."""
    folder = tmp_path / "project"
    folder.mkdir()
    plain(folder, "init", "--quiet")
    (folder / "file").write_text("text\n")
    plain(folder, "add", ".")
    plain(folder, "commit", "--quiet", "-m", "first")
    return folder


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Put a shell script called git before the real one."""
    path = tmp_path / "bin" / "git"
    path.parent.mkdir()
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")

    def write(text: str) -> None:
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o700)

    return write


def commit(git: Git) -> None:
    (git.folder / "file").write_text("changed\n")
    git.run("commit", "--quiet", "--all", "--message", "second", environment=signature())


@pytest.mark.parametrize("own", ["isolated", "in_project"])
def test_no_hook_and_no_fsmonitor_of_the_repository_is_run(project: Path, tmp_path: Path, own: str) -> None:
    ran = tmp_path / "ran"
    for name in (*HOOKS, "watch"):
        hook = project / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho {name} >>{ran}\n")
        hook.chmod(0o755)
    plain(project, "config", "core.fsmonitor", ".git/hooks/watch")
    plain(project, "status")
    assert ran.read_text() == "watch\n", "the owner's own git does run them"
    ran.unlink()
    commit(Git(project, isolated(project / ".git") if own == "isolated" else in_project(project)))
    assert plain(project, "log", "-1", "--format=%s") == "second\n"
    assert not ran.exists()


def test_an_isolated_git_reads_nobodys_settings_and_variables(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text("[culture]\nmark = person\n")
    variables = {"HOME": str(tmp_path), "GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/nowhere", "LANGUAGE": "de"}
    for name, value in {**variables, "GIT_CONFIG_PARAMETERS": "'culture.mark=variable'"}.items():
        monkeypatch.setenv(name, value)
    git = Git(project, isolated(project / ".git"))
    assert git.run("config", "culture.mark", codes=(1,)) == b""
    assert git.run("ls-files") == b"file\n"
    with pytest.raises(GitFailed) as failed:
        git.run("show", "nothing")
    assert failed.value.code == 128 and failed.value.reason.startswith("fatal: ambiguous argument 'nothing'")
    assert str(failed.value).startswith("git show nothing: fatal: ambiguous")


def test_in_a_project_the_settings_of_its_owner_count_and_their_variables_do_not(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text("[culture]\nmark = person\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "somebody")
    assert Git(project, in_project(project)).run("config", "culture.mark") == b"person\n"
    assert "GIT_AUTHOR_NAME" not in in_project(project)
    assert in_project(project, as_person=True)["GIT_AUTHOR_NAME"] == "somebody"


def test_the_settings_of_a_repository_that_a_worktree_names_in_its_place_do_not_count(
    project: Path, tmp_path: Path
) -> None:
    tree, theirs = tmp_path / "tree", tmp_path / "theirs"
    plain(project, "worktree", "add", "--quiet", "-b", "other", str(tree))
    shutil.copytree(project / ".git", theirs)
    plain(project, "config", "--file", str(theirs / "config"), "culture.mark", "theirs")
    (project / ".git" / "worktrees" / "tree" / "commondir").write_text(f"{theirs}\n")
    assert plain(tree, "config", "culture.mark") == "theirs\n", "a git that looks for the repository itself reads them"
    git = Git(tree, in_project(tree))
    assert git.run("config", "culture.mark", codes=(1,)) == b""
    assert git.run("log", "--format=%s") == b"first\n"


def test_a_setting_of_ours_overrules_the_repositorys(project: Path) -> None:
    plain(project, "config", "culture.mark", "repository")
    git = Git(project, isolated(project / ".git"), {"culture.mark": "ours"})
    assert git.run("config", "culture.mark") == b"ours\n"


def test_what_is_given_is_read_and_what_is_made_is_private(project: Path) -> None:
    git = Git(project, isolated(project / ".git"), umask=0o077)
    objects = project / ".git" / "objects"
    # Which folder it is follows from the content, and one of the same name may have been there before.
    before = {each.name for each in objects.iterdir()}
    blobs = {}
    while not blobs.keys() - before:
        text = os.urandom(1 << 20)
        blob = git.run("hash-object", "-w", "--stdin", stdin=text).decode().strip()
        assert git.run("cat-file", "blob", blob) == text
        blobs[blob[:2]] = blob
    assert all((objects / name).stat().st_mode & 0o077 == 0 for name in blobs.keys() - before)


def test_input_that_git_does_not_want_is_no_error(project: Path) -> None:
    assert Git(project, isolated(project / ".git")).run("ls-files", stdin=b"x" * (1 << 20)) == b"file\n"


def test_too_much_output_is_an_error_and_not_read(project: Path, script: Script) -> None:
    script("exec cat /dev/zero\n")
    with pytest.raises(GitFailed, match="prints more than 100000 bytes"):
        Git(project, in_project(project)).run("log", most_output=100_000, patience=PATIENCE)
    assert MOST_OUTPUT == 256 * 1024 * 1024


def test_endless_complaints_are_cut_to_their_end(project: Path, script: Script) -> None:
    script("seq 100000 >&2\nexit 3\n")
    with pytest.raises(GitFailed) as failed:
        Git(project, in_project(project)).run("log")
    assert failed.value.code == 3
    assert failed.value.words.endswith("99999\n100000\n") and len(failed.value.words) == 64 * 1024


def test_a_git_that_hangs_may_tidy_up_and_is_then_ended_with_all_it_started(
    project: Path, script: Script, tmp_path: Path
) -> None:
    alive, lock = tmp_path / "alive", tmp_path / "lock"
    os.mkfifo(alive)
    # Its child ignores SIGTERM and holds no output: only SIGKILL to the group ends that one.
    child = "trap '' TERM; exec sleep 600 >/dev/null 2>&1"
    script(f"exec 9>{alive}\ntouch {lock}\ntrap 'rm {lock}; exit 1' TERM\n({child}) &\necho up >&9\nwait\n")
    with os.fdopen(os.open(alive, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        with pytest.raises(GitFailed, match="takes too long: not done within 1 s"):
            Git(project, in_project(project)).run("log", patience=1.0)
        os.set_blocking(reader.fileno(), True)
        assert reader.read() == b"up\n", "the pipe ends with the last process that holds it"
    assert not lock.exists()


async def test_when_the_caller_is_cancelled_git_has_ended(project: Path, script: Script, tmp_path: Path) -> None:
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    script(f"trap 'touch {ended}; exit 1' TERM\ntouch {begun}\nsleep 600 &\nwait\n")
    running = asyncio.create_task(Git(project, in_project(project)).run_in_thread("log", patience=600.0))
    await until(begun.exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended.exists()


async def test_runs_that_wait_for_each_other_need_no_place_in_a_pool(
    project: Path, script: Script, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(1) as pool:
        asyncio.get_running_loop().set_default_executor(pool)
        begun = tmp_path / "begun"
        begun.mkdir()
        script(f'touch {begun}/$$\nuntil [ "$(ls {begun} | wc -l)" = 2 ]; do sleep 0.05; done\n')
        git = Git(project, in_project(project))
        await asyncio.gather(*(git.run_in_thread("log", patience=PATIENCE) for _ in range(2)))


def test_without_git_it_is_said_what_to_do(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="install git, or put it in PATH"):
        Git(project, in_project(project)).run("log")


def test_a_folder_that_is_not_there_is_named(project: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"):
        Git(tmp_path / "missing", in_project(project)).run("log")


def test_nothing_stays_open(project: Path, script: Script) -> None:
    git = Git(project, in_project(project))
    before = os.listdir("/dev/fd")
    script("exit 1\n")
    for _ in range(3):
        with pytest.raises(GitFailed):
            git.run("log")
    assert os.listdir("/dev/fd") == before
