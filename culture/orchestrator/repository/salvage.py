"""Salvage: commits uncommitted work before a worktree is removed, marked [INCOMPLETE].

A worktree may hold work in five places: edited and new files, staged content, commits of a detached HEAD, commits that
only git's own notes name (an interrupted rebase, an autostash), and files that git ignores. All of it is collected into
one commit under a ref ``refs/culture/rescue/<task>/<n>``. The commits are made with a temporary index, so that the
worktree's own index, which a member may be using or a crash may have broken, is neither read nor changed. Whatever no
commit can hold (repositories inside the worktree, too many ignored files) makes the worktree stay. Running it twice
finds the first result and creates no second ref. ``rescues`` lists these refs, and ``drop`` deletes one.
"""

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from culture.lib.git import GitFailed
from culture.orchestrator.repository.git import OURSELVES, commit_of, git, is_true, readable
from culture.orchestrator.repository.locks import remove_stale_locks
from culture.orchestrator.repository.worktrees import RESCUES, processes_in

_HASH = re.compile(r"\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b")
_NOT_NAMES = ("index", "FETCH_HEAD")
_MAX_NOTE_BYTES = 4 * 1024 * 1024
_FORM = "%(refname)%00%(objectname)%00%(committerdate:unix)%00%(subject)"


async def unreachable_commits(project: Path, git_dir: Path, salvaged: str) -> list[str]:
    """Return the tips of the commits that only files in ``git_dir`` name, such as an autostash.

    ``git_dir`` is the worktree's git directory (reflog, rebase state). Commits reachable from a ref or from the
    commit ``salvaged`` are left out.
    """
    hashes = "\n".join(sorted(_hashes_in(git_dir)))
    objects = await git(project, "cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=hashes.encode())
    commits = [line.split()[0] for line in objects.splitlines() if line.endswith(" commit")]
    if not commits:
        return []
    revisions = "\n".join([*commits, *([f"^{salvaged}"] if salvaged else [])]).encode()
    # Without --single-worktree, --all would count the HEAD of every worktree as a ref that stays.
    command = ("rev-list", "--topo-order", "--parents", "--stdin", "--not", "--single-worktree", "--all")
    listed = [line.split() for line in (await git(project, *command, stdin=revisions)).splitlines()]
    parents = {each for _, *above in listed for each in above}
    return [commit for commit, *_ in listed if commit not in parents]


def _hashes_in(git_dir: Path) -> set[str]:
    """Return the strings that look like commit ids in a git directory (reflog, rebase state)."""
    hashes = set[str]()
    for folder, _, files in os.walk(git_dir):
        for name in files:
            file = Path(folder) / name
            if name not in _NOT_NAMES and file.lstat().st_size <= _MAX_NOTE_BYTES:
                hashes.update(_HASH.findall(file.read_text(encoding="utf-8", errors="replace")))
    return {each for each in hashes if each.strip("0")}


INCOMPLETE = "[INCOMPLETE]"
IGNORED = f"{INCOMPLETE} ignored files"
"""Prefix of the subject of a commit with ignored files."""
MOST_IGNORED = 20 * 1024 * 1024
"""Limit in bytes for the ignored files of an unfinished task; with more, the worktree stays."""
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SalvagedWork:
    """Result of a salvage: rescue ref and commit, and a reason if the worktree must stay."""

    ref: str = ""
    """The rescue ref; empty if the branch has everything."""
    commit: str = ""
    must_stay: str = ""
    """Why the worktree must not be removed; empty if it may be."""
    uncommitted: bool = False
    """Whether there were uncommitted files that git does not ignore."""


async def is_dirty(worktree: Path) -> bool:
    """Return whether the worktree has uncommitted or untracked files."""
    return bool(await git(worktree, "status", "--porcelain", "-z", "--untracked-files=all"))


async def salvage(project: Path, worktree: Path, task: str, why: str, *, is_done: bool = False) -> SalvagedWork:
    """Commit everything in a worktree: on its branch if checked out, and under a rescue ref.

    ``why``: the reason, for the commit texts. The branch of a task that ``is_done`` is not changed: it was checked
    and perhaps pushed. Its ignored files are no part of the result and may be secrets (``.env``): they are not
    committed, and are deleted with the worktree.
    """
    if not (worktree / ".git").exists():
        return SalvagedWork(await _newest(project, task))
    git_dir = await _git_dir_in(project, worktree)
    if git_dir is None:
        return SalvagedWork(must_stay="it is no worktree of the project, or a broken one")
    if not any(processes_in(worktree)):
        remove_stale_locks(git_dir)
    inner = repositories_in(worktree)
    must_stay = f"{inner[0]} is a repository of its own" if inner else ""
    ignored = [] if is_done else await _ignored(worktree)
    size = sum(_size(worktree / name) for name in ignored)
    if size > MOST_IGNORED:
        must_stay = must_stay or f"{len(ignored)} ignored files of {size / _MIB:.0f} MiB in all"
    head = await commit_of(worktree, "HEAD")
    dirty = head is None or await _differs(worktree, head)
    take_ignored = bool(ignored) and size <= MOST_IGNORED
    branch = (await git(worktree, "symbolic-ref", "--quiet", "HEAD", codes=(0, 1))).strip()
    is_at_home = branch == f"refs/heads/task/{task}"
    commit = head or ""
    if dirty:
        commit = await _commit_files(worktree, head, f"{INCOMPLETE} {why}", without=inner)
        if is_at_home and not is_done:
            await git(project, "update-ref", branch, commit, head or "")
    others = [*await _staged(worktree, head, commit), *await unreachable_commits(project, git_dir, commit)]
    if not dirty and not take_ignored and not others and is_at_home:
        return SalvagedWork(await _existing_ref(project, task, commit, commit), must_stay=must_stay)
    if take_ignored:
        commit = await _commit_files(worktree, commit, f"{IGNORED}: {why}", ignored)
    if others:
        commit = await _join_commits(project, commit, others, f"{INCOMPLETE} staged, or on no branch: {why}")
    elif ref := await _existing_ref(project, task, commit, head or commit):
        return SalvagedWork(ref, commit, must_stay, dirty)
    ref = f"{RESCUES}/{task}/{await _next(project, task)}"
    await git(project, "update-ref", ref, commit)
    return SalvagedWork(ref, commit, must_stay, dirty)


async def _git_dir_in(project: Path, worktree: Path) -> Path | None:
    """Return the git directory of a worktree; None if the folder is no worktree of the project."""
    if (worktree / ".git").is_dir():
        return None
    try:
        git_dir = Path((await git(worktree, "rev-parse", "--absolute-git-dir")).strip())
        shared = Path((await git(project, "rev-parse", "--git-common-dir")).strip())
    except GitFailed:
        return None
    return git_dir if git_dir.is_relative_to((project / shared).resolve()) else None


async def _staged(worktree: Path, head: str | None, commit: str) -> list[str]:
    """Commit the staged content and return the new commit's id, the only one in the list.

    The list is empty if that content is committed already, in ``commit`` or its last ancestors, or the index has a
    conflict. ``head``: the parent of the new commit.
    """
    try:
        tree = (await git(worktree, "write-tree")).strip()
    except GitFailed:
        return []  # in a conflict, whose sides are commits
    # After an earlier salvage the branch has moved and the index has not: it equals one of the last commits.
    if commit and tree in (await git(worktree, "log", "--format=%T", "--max-count=100", commit)).split():
        return []
    parents = ("-p", head) if head else ()
    message = f"{INCOMPLETE} staged"
    return [(await git(worktree, "commit-tree", tree, *parents, "-m", message, environment=OURSELVES)).strip()]


async def _join_commits(project: Path, commit: str, others: Sequence[str], message: str) -> str:
    """Return a new commit with ``commit`` and ``others`` as parents, and the text ``message``.

    Its files are those of the first parent.
    """
    parents = [word for each in (commit, *others) if each for word in ("-p", each)]
    tree = f"{commit or others[0]}^{{tree}}"
    return (await git(project, "commit-tree", tree, *parents, "-m", message, environment=OURSELVES)).strip()


async def _commit_files(
    worktree: Path, parent: str | None, message: str, names: list[str] | None = None, without: Sequence[Path] = ()
) -> str:
    """Return a new commit on top of ``parent`` with all files, or only with ``names`` if given.

    ``without``: paths that are left out.
    """
    with tempfile.TemporaryDirectory(prefix="culture-salvage-") as folder:
        own = {**OURSELVES, "GIT_INDEX_FILE": str(Path(folder) / "index")}
        if parent is not None:
            await git(worktree, "read-tree", parent, environment=own)
        if names is None:
            but = [f":(exclude,literal){path}" for path in without]
            await git(worktree, "add", "--all", "--", ".", *but, environment=own)
        else:
            pathspecs = "\0".join(names).encode(errors="surrogateescape")
            await git(
                worktree,
                "add",
                "--force",
                "--pathspec-from-file=-",
                "--pathspec-file-nul",
                environment=own,
                stdin=pathspecs,
            )
        tree = (await git(worktree, "write-tree", environment=own)).strip()
        parents = ("-p", parent) if parent is not None else ()
        return (await git(worktree, "commit-tree", tree, *parents, "-m", message, environment=own)).strip()


async def _differs(worktree: Path, head: str) -> bool:
    """Return whether the files of a worktree differ from the commit ``head``.

    This also finds edits that the worktree's own index hides.
    """
    with tempfile.TemporaryDirectory(prefix="culture-salvage-") as folder:
        own = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        await git(worktree, "read-tree", head, environment=own)
        return bool(await git(worktree, "status", "--porcelain", "-z", "--untracked-files=all", environment=own))


async def _existing_ref(project: Path, task: str, commit: str, head: str) -> str:
    """Return a rescue ref of the task that already keeps the work in ``commit``; "" if none.

    That is a ref at ``commit``, or one with the same files and subject whose history contains ``head``.
    """
    if not commit:
        return ""
    place, form = f"{RESCUES}/{task}/", "%(refname)%00%(objectname)%00%(tree)%00%(subject)"
    tree, subject = (await git(project, "log", "-1", "--format=%T%x00%s", commit)).strip().split("\0")
    for line in (await git(project, "for-each-ref", f"--format={form}", place)).splitlines():
        ref, *same = line.split("\0")
        if same[0] == commit:
            return ref
        if same[1:] == [tree, subject] and await is_true(project, "merge-base", "--is-ancestor", head, ref):
            return ref
    return ""


async def _ignored(worktree: Path) -> list[str]:
    text = await git(worktree, "ls-files", "--others", "--ignored", "--exclude-standard", "-z")
    return [name for name in text.split("\0") if name]


def repositories_in(worktree: Path) -> list[Path]:
    """Return the git repositories inside the worktree, as paths relative to it.

    A commit cannot hold their contents.
    """
    repositories = []
    for folder, folders, files in os.walk(worktree):
        at = Path(folder)
        if at != worktree and (".git" in folders or ".git" in files):
            repositories.append(at.relative_to(worktree))
            folders.clear()
        folders[:] = [name for name in folders if name != ".git"]
    return repositories


async def _numbers(project: Path, task: str) -> list[int]:
    text = await git(project, "for-each-ref", "--format=%(refname)", f"{RESCUES}/{task}/")
    return sorted(int(line.rpartition("/")[2]) for line in text.split())


async def _newest(project: Path, task: str) -> str:
    """Return the rescue ref of a task with the highest number; "" if there is none."""
    numbers = await _numbers(project, task)
    return f"{RESCUES}/{task}/{numbers[-1]}" if numbers else ""


async def _next(project: Path, task: str) -> int:
    return 1 + max(await _numbers(project, task), default=0)


def _size(file: Path) -> int:
    try:
        return file.lstat().st_size
    except OSError:
        return 0


@dataclass(frozen=True, slots=True)
class Rescue:
    """A git ref that keeps salvaged work of a task, such as ``refs/culture/rescue/demo-1/2``."""

    name: str
    """Task and number, as in ``demo-1/2``."""
    commit: str
    time: int
    """Time of the commit, in seconds since 1970."""
    subject: str
    files: tuple[str, ...]
    """Files changed by its commits that are on no branch."""
    ignored: tuple[str, ...]
    """The files among them that git ignores, such as ``.env``."""

    @property
    def task(self) -> str:
        """Return the id of the task whose work the ref keeps."""
        return self.name.rpartition("/")[0]


async def rescues(project: Path, task: str = "") -> list[Rescue]:
    """Return the rescue refs of a task, or of the project if ``task`` is empty, oldest first."""
    place = f"{RESCUES}/{task}/" if task else f"{RESCUES}/"
    listed = await git(project, "for-each-ref", "--sort=committerdate", f"--format={_FORM}", place)
    refs = []
    for line in listed.splitlines():
        ref, commit, time, subject = line.split("\0")
        files, ignored = await _files(project, ref)
        refs.append(Rescue(ref.removeprefix(f"{RESCUES}/"), commit, int(time), readable(subject), files, ignored))

    return refs


async def drop(project: Path, rescue: Rescue) -> bool:
    """Delete a rescue ref if it still points to the commit in ``rescue``.

    Return whether the ref was deleted.
    """
    ref = f"{RESCUES}/{rescue.name}"
    if await commit_of(project, ref) != rescue.commit:
        return False
    await git(project, "update-ref", "-d", ref, rescue.commit)
    return True


async def _files(project: Path, ref: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the files that a rescue ref changes in commits that are on no branch.

    ``ref``: the ref's name. The first tuple has all of them, the second those that git ignores.
    """
    command = ("log", "--no-color", "-z", "--name-only", "--no-renames")
    text = readable(await git(project, *command, "--format=%x01%s", ref, "--not", "--branches"))
    every, ignored = set[str](), set[str]()
    for block in text.split("\x01"):
        subject, *names = block.replace("\n", "\0").split("\0")
        changed = {name for name in names if name}
        every |= changed
        if subject.startswith(IGNORED):
            ignored |= changed
    return tuple(sorted(every)), tuple(sorted(ignored))
