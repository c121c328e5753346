"""The pages of a wiki: read, write on top of a revision, list, search, history. May block.

Writing is optimistic: the caller names the revision that it has read, and the write succeeds only if the page still has
it; otherwise ``Conflict`` returns base, current and new text. The new commit becomes visible by an atomic move of the
branch; if somebody has moved it meanwhile, for example by a push, the write is tried again on the new state.
"""

import re
import shutil
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from culture.config import paths
from culture.lib.files import PRIVATE_DIRECTORY, private_directory
from culture.protocol.names import valid_nick
from culture.wiki import names, page_templates, repository
from culture.wiki.errors import Conflict, NoSuchPage, WikiRefused, WikiUnavailable
from culture.wiki.repository import NOTHING, BareRepository, CommitFile, wiki_lock
from culture.wiki.types import (
    REVISION_LENGTH,
    PageEntry,
    PageHit,
    PageLine,
    PageRevision,
    WikiPage,
    Written,
    revision_of,
)

_MAX_LINES = 3
_LINE_LIMIT = 240
_NAME_WEIGHT = 1000


def match(words: str, name: str, text: str) -> tuple[int, tuple[PageLine, ...]]:
    """Return a page's rank for a search, and the first lines of it that contain a searched word.

    ``words``: the searched words, separated by spaces. ``name`` and ``text``: those of the page. The rank is 0 unless
    the page's name or text contains every word; it grows with the number of matches.
    """
    terms = normalize(words).split()
    title, body = normalize(name), normalize(text)
    if not terms or not all(term in title or term in body for term in terms):
        return 0, ()
    rank = sum(_NAME_WEIGHT * (term in title) + body.count(term) for term in terms)
    lines = []
    for number, line in enumerate(text.split("\n"), start=1):
        if any(term in normalize(line) for term in terms):
            lines.append(PageLine(number, line.strip()[:_LINE_LIMIT]))
            if len(lines) == _MAX_LINES:
                break
    return rank, tuple(lines)


def normalize(text: str) -> str:
    """Return a text for comparison in a search: Unicode form NFC, case-folded."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


PAGE_LIMIT = 128 * 1024
"""Limit of a page in bytes: the three texts of a conflict fit into one answer."""
MESSAGE_LIMIT = 200
FOUNDER = "culture"
_NICK_LIMIT = 64
_TRIES = 20
_REVISION = re.compile(r"[0-9a-f]{7,40}")


def folder_of(slug: str) -> Path:
    """Return the folder of a project's wiki on this machine.

    ``slug``: name of the project. ``WikiRefused`` is raised if it is no valid name.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", slug):
        raise WikiRefused(f"{slug!r} cannot be the name of a project: small letters, digits, - and _, at most 64")
    return paths.home() / "wiki" / slug


@dataclass(frozen=True, slots=True)
class WikiSnapshot:
    """The files of all pages in one git commit, by path and by page name without case."""

    commit: str
    files: dict[str, CommitFile]

    def find(self, name: str) -> CommitFile | None:
        """Return the file of the page with this name, compared without case; None if there is none."""
        return self.files.get(names.path_of(name)) or self.files.get(names.key(name))

    def existing_spelling(self, name: str) -> str:
        """Return a page name with the upper and lower case that the wiki already uses for it.

        For a new page, only the folders in its name that exist are changed.
        """
        file = self.find(name)
        if file is not None:
            return file.path.removesuffix(names.SUFFIX)
        folder, slash, last = name.rpartition("/")
        while folder:
            inside = names.key(folder) + "/"
            for each in self.files.values():
                if names.key(each.path).startswith(inside):
                    return f"{'/'.join(each.path.split('/')[: folder.count('/') + 1])}{slash}{last}"
            folder, _, above = folder.rpartition("/")
            last = f"{above}/{last}"
        return name


class Pages:
    """A wiki on this machine, read and written by blocking calls.

    Any number of processes may use the same wiki at once.
    """

    def __init__(self, folder: Path) -> None:
        self._repository = BareRepository(folder)

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Return the wiki in a folder, created atomically with its first pages if there is none."""
        private_directory(folder.parent)
        with wiki_lock(folder.parent / f".{folder.name}.lock"):
            if not BareRepository(folder).exists:
                new = folder.with_name(f".{folder.name}.new")
                shutil.rmtree(new, ignore_errors=True)
                new.mkdir(mode=PRIVATE_DIRECTORY)
                repository = BareRepository(new)
                repository.create()
                first = {names.path_of(name): text.encode() for name, text in page_templates.first_pages().items()}
                repository.swap(NOTHING, repository.commit(NOTHING, first, FOUNDER, "Begin the wiki"))
                new.rename(folder)
        return cls(folder)

    @property
    def folder(self) -> Path:
        """Folder of the git repository, which people can clone and push to."""
        return self._repository.folder

    @property
    def exists(self) -> bool:
        """Whether the wiki's git repository exists."""
        return self._repository.exists

    def read(self, page: str, revision: str = "") -> WikiPage:
        """Return a page with its present text, or the text that it had at ``revision``.

        ``NoSuchPage`` is raised if the wiki has no such page or the page never had that revision.
        """
        name = names.page_name(page)
        snapshot = self._snapshot()
        file = snapshot.find(name)
        if file is None:
            raise NoSuchPage(f"there is no page {name}")
        name = file.path.removesuffix(names.SUFFIX)
        changes = repository.changes(self._repository, snapshot.commit, file.path, None if revision else 1)
        for change in changes:
            if change.revision.startswith(revision):
                text = self._text(change.blob)
                return WikiPage(name, change.revision, text, change.author, change.time)
        raise NoSuchPage(f"{name} never had the revision {revision}")

    def write(self, page: str, text: str, base_revision: str, author: str, message: str = "") -> Written:
        """Write a page, unless it was changed since the author read it: then raise ``Conflict``.

        ``text``: the new text of the whole page. ``base_revision``: the revision that the author has read, empty for a
        new page. ``author``: nick of the author. ``message``: message of the git commit.
        """
        name = check(page, text, base_revision, author)
        with self._repository.writing():
            for _ in range(_TRIES):
                snapshot = self._snapshot()
                name = snapshot.existing_spelling(name)
                written = self._check_base(snapshot, name, text, base_revision)
                if written is not None:
                    return written
                subject = " ".join(message.split())[:MESSAGE_LIMIT] or f"Write {name}"
                contents = {names.path_of(name): text.encode()}
                commit = self._repository.commit(snapshot.commit, contents, author, repository.printable(subject))
                if self._repository.swap(snapshot.commit, commit):
                    self._repository.tidy()
                    return Written(name, revision_of(text))
        raise WikiUnavailable("others write the wiki all the time; try again")

    def pages(self, under: str = "") -> list[PageEntry]:
        """Return all pages, or those in the folder ``under``: name, revision, size, last author."""
        snapshot = self._snapshot()
        inside = names.key(under.strip("/"))
        files = [file for file in _files(snapshot) if not inside or names.key(file.path).startswith(inside + "/")]
        last = repository.last_changes(self._repository, snapshot.commit, {file.path for file in files})
        return [
            PageEntry(name, file.blob[:REVISION_LENGTH], file.size, last[file.path].author, last[file.path].time)
            for file in files
            for name in [file.path.removesuffix(names.SUFFIX)]
        ]

    def search(self, words: str, limit: int = 20) -> list[PageHit]:
        """Return at most ``limit`` pages that contain all of the words, the best match first.

        ``words``: the words, separated by spaces; compared without case with the name and text of a page.
        """
        files = [file for file in _files(self._snapshot()) if file.size <= PAGE_LIMIT]
        texts = self._repository.blobs([file.blob for file in files])
        hits = []
        for file, data in zip(files, texts, strict=True):
            name = file.path.removesuffix(names.SUFFIX)
            rank, lines = match(words, name, data.decode(errors="replace"))
            if rank:
                hits.append((-rank, name, PageHit(name, file.blob[:REVISION_LENGTH], lines)))
        return [hit for _, _, hit in sorted(hits)[:limit]]

    def history(self, page: str, limit: int = 20) -> list[PageRevision]:
        """Return at most ``limit`` revisions of a page with author and time, newest first.

        ``NoSuchPage`` is raised if the wiki has no such page.
        """
        name = names.page_name(page)
        snapshot = self._snapshot()
        file = snapshot.find(name)
        if file is None:
            raise NoSuchPage(f"there is no page {name}")
        changes = repository.changes(self._repository, snapshot.commit, file.path, limit)
        return [PageRevision(each.revision, each.author, each.time, each.message, each.commit) for each in changes]

    def _snapshot(self) -> WikiSnapshot:
        commit = self._repository.head()
        files: dict[str, CommitFile] = {}
        for file in self._repository.files(commit):
            name = names.page_of(file.path)
            if name is not None:
                files[file.path] = file
                files.setdefault(names.key(name), file)
        return WikiSnapshot(commit, files)

    def _check_base(self, snapshot: WikiSnapshot, name: str, text: str, base_revision: str) -> Written | None:
        """Raise ``Conflict`` if a page was changed since the author of a write read it.

        Returns None if the write may go on, and the result of the write if the page already has this text. ``name``:
        the page. ``text``: its new text. ``base_revision``: the revision that the author has read, empty for a new
        page.
        """
        file = snapshot.find(name)
        current = file.blob[:REVISION_LENGTH] if file else ""
        if current and current == revision_of(text):
            return Written(name, current, changed=False)
        base = base_revision[:REVISION_LENGTH]
        if current.startswith(base) if base else not current:
            return None
        raise Conflict(
            name,
            revision=current,
            base=self._base(snapshot, name, base_revision),
            current=self._text(file.blob) if file else "",
            yours=text,
        )

    def _base(self, snapshot: WikiSnapshot, name: str, revision: str) -> str | None:
        if not revision:
            return ""
        for change in repository.changes(self._repository, snapshot.commit, names.path_of(name), None):
            if change.revision.startswith(revision[:REVISION_LENGTH]):
                return self._text(change.blob)
        return None

    def _text(self, blob: str) -> str:
        [data] = self._repository.blobs([blob])
        if len(data) > PAGE_LIMIT:
            raise WikiRefused(
                f"this text has {len(data)} bytes, a page has at most {PAGE_LIMIT}: look at it in a clone"
            )
        return data.decode(errors="replace")


def _files(snapshot: WikiSnapshot) -> Sequence[CommitFile]:
    return sorted({file.path: file for file in snapshot.files.values()}.values(), key=lambda file: file.path)


def check(page: str, text: str, base_revision: str, author: str) -> str:
    """Check the arguments of a write; return the page's name in normal form.

    ``base_revision``: the revision that the author has read. ``WikiRefused`` is raised if an argument is invalid.
    """
    _check_text(text)
    _check_origin(base_revision, author)
    return names.page_name(page)


def _check_text(text: str) -> None:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise WikiRefused("the text has letters that are none (half of a surrogate pair)") from None
    if len(data) > PAGE_LIMIT:
        raise WikiRefused(f"the text has {len(data)} bytes, a page has at most {PAGE_LIMIT}: make two pages of it")
    if b"\0" in data:
        raise WikiRefused("the text has a NUL in it; pages are text")


def _check_origin(base_revision: str, author: str) -> None:
    if base_revision and not _REVISION.fullmatch(base_revision):
        raise WikiRefused(
            f"{base_revision!r} is no revision: take the one that reading the page gave, or '' for a new page"
        )
    if not valid_nick(author, _NICK_LIMIT):
        raise WikiRefused(f"{author!r} is no nick, and every text has an author")
