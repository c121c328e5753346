"""A bare git repository, written with git's plumbing (no work tree or hooks), and its log."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from culture.lib.files import FileLock, LockTaken
from culture.lib.git import QUIET, Git, GitFailed, isolated
from culture.protocol.text import Profile, one_line
from culture.wiki.errors import NO_ROOM, DiskFull, WikiError, WikiRefused, WikiUnavailable
from culture.wiki.types import REVISION_LENGTH

BRANCH = "refs/heads/main"
NOTHING = "0" * 40
_SETTINGS = {**QUIET, "core.fsync": "all", "log.showSignature": "false", "core.quotePath": "off"}
_TIMEOUT = 60.0
_LOCKS = ("HEAD.lock", f"{BRANCH}.lock")
# Git holds the lock of a branch for milliseconds: an older one was left by a dead process.
_STALE_AGE = 5.0
_LOCK_TIMEOUT = 30.0
_PATIENCE = 10.0
_PAUSE = 0.05
_NO_ROOM = ("No space left on device", "Disk quota exceeded")
_ROOM_NEEDED = 64 * 1024
# Loose objects in one of 256 folders: about 6,000 of them in all.
_LOOSE_LIMIT = 24
# A commit's headers contain no NUL; whoever pushes can put anything else there.
_FIELDS = ("%H", "%an", "%at", "%s")
_FORMAT = f"--format={'%x00'.join(_FIELDS)}"
# Only texts that the branch itself had: merged changes appear with their merge commit.
_FIRST_PARENT = ("-m", "--first-parent")
_RAW = ("log", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv", *_FIRST_PARENT, _FORMAT)
_BATCH = 500
_LATEST = 253402300799
"""The last second that can be formatted as a date."""


@contextmanager
def wiki_lock(path: Path) -> Iterator[None]:
    """Hold the lock file ``path`` during the block, so that no other process writes the wiki.

    ``WikiUnavailable`` is raised if another process holds it for 30 s or the folder does not exist.
    """
    lock = FileLock(path, parents=False)  # a deleted wiki must not come back empty
    try:
        lock.acquire(timeout=_LOCK_TIMEOUT)
    except LockTaken:
        raise WikiUnavailable(f"somebody else has been writing the wiki for {_LOCK_TIMEOUT:g} s") from None
    except FileNotFoundError:
        raise WikiUnavailable(f"there is no wiki in {path.parent}") from None
    except OSError as error:
        kind = DiskFull if error.errno in NO_ROOM else WikiUnavailable
        raise kind(f"the wiki cannot be written: {path}: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


class GitRefused(WikiUnavailable):
    """A git command failed; the text of the exception is git's error message."""


@dataclass(frozen=True, slots=True)
class CommitFile:
    """A regular file in a commit: path, id of its git blob (``blob``) and size in bytes."""

    path: str
    blob: str
    size: int


class BareRepository:
    """A bare git repository with a single branch, to which commits are added without a worktree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._index = folder / "culture.index"

    @property
    def exists(self) -> bool:
        """Whether the folder contains a git repository."""
        return (self.folder / "objects").is_dir() and (self.folder / "HEAD").is_file()

    def create(self) -> None:
        """Create an empty bare git repository in the folder; it refuses pushes that rewrite history."""
        self.git("init", "--quiet", "--bare", "--object-format=sha1", "--initial-branch=main", "--template=", ".")
        for setting in ("core.hooksPath=/dev/null", "receive.denyNonFastForwards=true", "receive.denyDeletes=true"):
            self.git("config", *setting.split("=", 1))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the repository's write lock during the block, so that no other process commits.

        ``WikiUnavailable`` is raised if another process holds the lock for 30 s.
        """
        with wiki_lock(self.folder / "culture.lock"):
            yield

    def head(self) -> str:
        """Return the id of the newest commit on the branch; 40 zeros (``NOTHING``) if there is none."""
        try:
            return self.git("rev-parse", "--verify", "--quiet", f"{BRANCH}^{{commit}}").decode().strip()
        except GitRefused as failed:
            if str(failed):
                raise
            return NOTHING

    def files(self, commit: str) -> list[CommitFile]:
        """Return the regular files of a commit, given by its id, without symlinks and submodules."""
        if commit == NOTHING:
            return []
        files = []
        for row in self.git("ls-tree", "-r", "-z", "--long", commit).split(b"\0"):
            facts, _, path = row.partition(b"\t")
            if facts[:6] in (b"100644", b"100755"):
                _, _, blob, size = facts.decode().split()
                files.append(CommitFile(os.fsdecode(path), blob, int(size)))
        return files

    def blobs(self, ids: Sequence[str]) -> list[bytes]:
        """Return the contents of the git blobs with these ids, in the order of ``ids``.

        ``GitRefused`` is raised if the repository lacks one of them.
        """
        rest = self.git("cat-file", "--batch", stdin="".join(f"{each}\n" for each in ids).encode())
        contents = []
        for _ in ids:
            header, _, rest = rest.partition(b"\n")
            if header.endswith(b"missing"):
                raise GitRefused(f"the wiki is damaged: {header.decode()}; `git fsck` in {self.folder} tells more")
            size = int(header.split()[2])
            contents.append(rest[:size])
            rest = rest[size + 1 :]
        return contents

    def commit(self, parent: str, contents: Mapping[str, bytes], author: str, message: str) -> str:
        """Create a commit on top of commit ``parent``, without moving the branch; return its id.

        Readers see the commit only after ``swap``. ``contents``: the new or changed files by path. ``author``: a nick.
        The caller must hold the lock of ``writing``.
        """
        for leftover in (self._index, self._index.with_name("culture.index.lock")):
            leftover.unlink(missing_ok=True)
        if parent != NOTHING:
            self.git("read-tree", parent, index=True)
        for path, data in contents.items():
            blob = self.git("hash-object", "-w", "--stdin", stdin=data).decode().strip()
            self.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", index=True)
        tree = self.git("write-tree", index=True).decode().strip()
        now = f"{int(time.time())} +0000"
        lines = [f"tree {tree}", *([f"parent {parent}"] if parent != NOTHING else [])]
        # Written as a raw object: git itself would drop characters of a nick such as `ori\`.
        lines += [
            f"author {author} <{author}@culture> {now}",
            f"committer culture <wiki@culture> {now}",
            "",
            message,
            "",
        ]
        return (
            self.git("hash-object", "-t", "commit", "-w", "--stdin", stdin="\n".join(lines).encode()).decode().strip()
        )

    def swap(self, old: str, new: str) -> bool:
        """Move the branch from commit ``old`` to ``new``; return False if it is not at ``old``.

        ``WikiUnavailable`` is raised if git cannot move it.
        """
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self.git("update-ref", BRANCH, new, old)
                return True
            except GitRefused as failed:
                if self.head() != old:
                    return False
                if not self._remove_stale_locks():
                    if time.monotonic() > deadline:
                        raise WikiUnavailable(f"git does not let the wiki be written: {failed}") from None
                    time.sleep(_PAUSE)

    def tidy(self) -> None:
        """Pack git's loose objects if there are many, and delete no contents.

        The caller must hold the lock of ``writing``.
        """
        folder = self.folder / "objects" / "17"
        if folder.is_dir() and len(os.listdir(folder)) > _LOOSE_LIMIT:
            self.git("repack", "-d", "-l", "--quiet")

    def git(self, *arguments: str, stdin: bytes = b"", index: bool = False) -> bytes:
        """Run a git command in the repository and return its output.

        ``stdin``: its input. ``index``: whether it uses the wiki's own index file. ``WikiError`` or a subclass is
        raised if it fails.
        """
        own = {"GIT_INDEX_FILE": str(self._index)} if index else {}
        environment = isolated(self.folder, GIT_NO_REPLACE_OBJECTS="1", GIT_LITERAL_PATHSPECS="1", **own)
        try:
            return Git(self.folder, environment, _SETTINGS, umask=0o077).run(*arguments, stdin=stdin, patience=_TIMEOUT)
        except FileNotFoundError:
            raise WikiUnavailable(f"there is no wiki in {self.folder}, or git is not installed") from None
        except GitFailed as failed:
            if failed.code < 0:
                raise WikiUnavailable(str(failed)) from None
            raise self._refusal(failed.words.strip()) from None

    def _refusal(self, words: str) -> WikiError:
        """Return the ``WikiError`` to raise for git's error message ``words``."""
        room = os.statvfs(self.folder)
        if any(each in words for each in _NO_ROOM) or room.f_bavail * room.f_frsize < _ROOM_NEEDED:
            return DiskFull(f"the disk of the wiki is full ({self.folder}); nothing was written")
        if "appears as both a file and as a directory" in words:
            return WikiRefused("a folder of the wiki has the name of that page's file")
        return GitRefused(words)

    def _remove_stale_locks(self) -> bool:
        """Remove git's lock files that a killed process left behind; return whether there were any."""
        removed = False
        for name in _LOCKS:
            lock = self.folder / name
            try:
                # A time in the future is from before the clock was set back.
                if abs(time.time() - lock.lstat().st_mtime) > _STALE_AGE:
                    lock.unlink()
                    removed = True
            except FileNotFoundError:
                continue

        return removed


@dataclass(frozen=True, slots=True)
class FileChange:
    """One commit's change of one file: id of the new contents (``blob``), author, time, message."""

    path: str
    blob: str
    author: str
    time: int
    message: str
    commit: str

    @property
    def revision(self) -> str:
        """Revision of the page's text after this change: the beginning of its git blob id."""
        return self.blob[:REVISION_LENGTH]


def changes(repository: BareRepository, commit: str, path: str, limit: int | None) -> list[FileChange]:
    """Return the changes of the file ``path`` in a commit and its ancestors, newest first.

    ``commit``: id of the commit. ``limit``: the most changes to return; None for all.
    """
    if commit == NOTHING:
        return []
    bound = () if limit is None else (f"--max-count={limit}",)
    log = repository.git(*_RAW, *bound, commit, "--", path)
    return [each for each in _parse_log(log) if each.path == path and each.blob != NOTHING]


def last_changes(repository: BareRepository, commit: str, paths: set[str]) -> dict[str, FileChange]:
    """Return the newest change of each file in ``paths``, by path.

    ``commit``: id of the commit at which the search begins; it goes on with the ancestors.
    """
    newest: dict[str, FileChange] = {}
    skipped = 0
    while paths - newest.keys():
        log = repository.git(*_RAW, f"--skip={skipped}", f"--max-count={_BATCH}", commit)
        if not log:
            break
        for each in _parse_log(log):
            if each.path in paths:
                newest.setdefault(each.path, each)
        skipped += _BATCH
    return newest


def printable(text: str) -> str:
    """Return a text as one line, with control characters removed."""
    return one_line(text, Profile.WEB)


def _parse_log(log: bytes) -> Iterator[FileChange]:
    fields = iter(log.split(b"\0"))
    for first in fields:
        if not first.lstrip(b"\n").startswith(b":"):
            author, time, message = (next(fields, b"").decode(errors="replace") for _ in _FIELDS[1:])
            number = first.decode().strip()
            continue
        path = os.fsdecode(next(fields))
        blob = first.decode().split()[3]
        yield FileChange(path, blob, printable(author), _parse_time(time), printable(message), number)


def _parse_time(text: str) -> int:
    """Return a commit time from git's log, seconds since 1970, as a number; 0 if malformed.

    A time that is too late to be formatted as a date becomes the last second of the year 9999.
    """
    return min(int(text), _LATEST) if text.isascii() and text.isdigit() else 0
