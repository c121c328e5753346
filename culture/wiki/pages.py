"""The pages of a wiki: read, write on top of what was read, list, search, history. Everything here may block."""

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
from culture.wiki import history, names, page_templates
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

_SHOWN = 3
_LINE_LIMIT = 240
_NAME_WEIGHT = 1000


def match(words: str, name: str, text: str) -> tuple[int, tuple[PageLine, ...]]:
    """How well the page fits (0: a word is missing) and the first lines with one of the words."""
    wanted = folded(words).split()
    title, body = folded(name), folded(text)
    if not wanted or not all(word in title or word in body for word in wanted):
        return 0, ()
    rank = sum(_NAME_WEIGHT * (word in title) + body.count(word) for word in wanted)
    lines = []
    for number, line in enumerate(text.split("\n"), start=1):
        if any(word in folded(line) for word in wanted):
            lines.append(PageLine(number, line.strip()[:_LINE_LIMIT]))
            if len(lines) == _SHOWN:
                break
    return rank, tuple(lines)


def folded(text: str) -> str:
    """The form in which texts compare."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


PAGE_LIMIT = 128 * 1024
"""Bytes of a page: a conflict's three texts still fit into one answer."""
MESSAGE_LIMIT = 200
FOUNDER = "culture"
_NICK_LIMIT = 64
_TRIES = 20
_REVISION = re.compile(r"[0-9a-f]{7,40}")


def folder_of(slug: str) -> Path:
    """Where the wiki of a project is."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", slug):
        raise WikiRefused(f"{slug!r} cannot be the name of a project: small letters, digits, - and _, at most 64")
    return paths.home() / "wiki" / slug


@dataclass(frozen=True, slots=True)
class WikiSnapshot:
    """The pages of one commit, by the form in which names compare."""

    commit: str
    files: dict[str, CommitFile]

    def find(self, name: str) -> CommitFile | None:
        """The file of a page, whatever the case of its name."""
        return self.files.get(names.path_of(name)) or self.files.get(names.key(name))

    def settled(self, name: str) -> str:
        """The name as the wiki spells it, or its folders where the page is new."""
        found = self.find(name)
        if found is not None:
            return found.path.removesuffix(names.SUFFIX)
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
    """A wiki on this machine. Any number of these may exist for one folder, in any number of processes."""

    def __init__(self, folder: Path) -> None:
        self._repository = BareRepository(folder)

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Make the wiki with its first pages, whole or not at all; one that is there stays as it is."""
        private_directory(folder.parent)
        with wiki_lock(folder.parent / f".{folder.name}.lock"):
            if not BareRepository(folder).exists:
                begun = folder.with_name(f".{folder.name}.new")
                shutil.rmtree(begun, ignore_errors=True)
                begun.mkdir(mode=PRIVATE_DIRECTORY)
                repository = BareRepository(begun)
                repository.create()
                first = {names.path_of(name): text.encode() for name, text in page_templates.first_pages().items()}
                repository.swap(NOTHING, repository.commit(NOTHING, first, FOUNDER, "Begin the wiki"))
                begun.rename(folder)
        return cls(folder)

    @property
    def folder(self) -> Path:
        """The repository; it can be cloned, and pushed to."""
        return self._repository.folder

    @property
    def exists(self) -> bool:
        """Was it made?"""
        return self._repository.exists

    def read(self, page: str, revision: str = "") -> WikiPage:
        """The page as it is, or as it was at that revision."""
        name = names.page_name(page)
        snapshot = self._snapshot()
        file = snapshot.find(name)
        if file is None:
            raise NoSuchPage(f"there is no page {name}")
        name = file.path.removesuffix(names.SUFFIX)
        changes = history.changes(self._repository, snapshot.commit, file.path, None if revision else 1)
        for change in changes:
            if change.revision.startswith(revision):
                text = self._text(change.blob)
                return WikiPage(name, change.revision, text, change.author, change.time)
        raise NoSuchPage(f"{name} never had the revision {revision}")

    def write(self, page: str, text: str, base_revision: str, author: str, message: str = "") -> Written:
        """Replace the page's text if it is still at the base revision (empty: there is none yet), else Conflict."""
        name = check(page, text, base_revision, author)
        with self._repository.writing():
            for _ in range(_TRIES):
                snapshot = self._snapshot()
                name = snapshot.settled(name)
                written = self._next(snapshot, name, text, base_revision)
                if written is not None:
                    return written
                subject = " ".join(message.split())[:MESSAGE_LIMIT] or f"Write {name}"
                contents = {names.path_of(name): text.encode()}
                commit = self._repository.commit(snapshot.commit, contents, author, history.printable(subject))
                if self._repository.swap(snapshot.commit, commit):
                    self._repository.tidy()
                    return Written(name, revision_of(text))
        raise WikiUnavailable("others write the wiki all the time; try again")

    def pages(self, under: str = "") -> list[PageEntry]:
        """The pages by name, all of them or those in a folder, with who wrote them last."""
        snapshot = self._snapshot()
        inside = names.key(under.strip("/"))
        files = [file for file in _files(snapshot) if not inside or names.key(file.path).startswith(inside + "/")]
        last = history.last_changes(self._repository, snapshot.commit, {file.path for file in files})
        return [
            PageEntry(name, file.blob[:REVISION_LENGTH], file.size, last[file.path].author, last[file.path].time)
            for file in files
            for name in [file.path.removesuffix(names.SUFFIX)]
        ]

    def search(self, words: str, limit: int = 20) -> list[PageHit]:
        """The pages on which all words are, in any case; the best first."""
        files = [file for file in _files(self._snapshot()) if file.size <= PAGE_LIMIT]
        texts = self._repository.blobs([file.blob for file in files])
        found = []
        for file, data in zip(files, texts, strict=True):
            name = file.path.removesuffix(names.SUFFIX)
            rank, lines = match(words, name, data.decode(errors="replace"))
            if rank:
                found.append((-rank, name, PageHit(name, file.blob[:REVISION_LENGTH], lines)))
        return [hit for _, _, hit in sorted(found)[:limit]]

    def history(self, page: str, limit: int = 20) -> list[PageRevision]:
        """Who wrote the page when, newest first."""
        name = names.page_name(page)
        snapshot = self._snapshot()
        file = snapshot.find(name)
        if file is None:
            raise NoSuchPage(f"there is no page {name}")
        found = history.changes(self._repository, snapshot.commit, file.path, limit)
        return [PageRevision(each.revision, each.author, each.time, each.message, each.commit) for each in found]

    def _snapshot(self) -> WikiSnapshot:
        commit = self._repository.head()
        found: dict[str, CommitFile] = {}
        for file in self._repository.files(commit):
            name = names.page_of(file.path)
            if name is not None:
                found[file.path] = file
                found.setdefault(names.key(name), file)
        return WikiSnapshot(commit, found)

    def _next(self, snapshot: WikiSnapshot, name: str, text: str, base_revision: str) -> Written | None:
        """What to answer when there is nothing to write; None when the text may be written."""
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
        for change in history.changes(self._repository, snapshot.commit, names.path_of(name), None):
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
    """Refuse what no wiki will ever take; the name of the page in its one form."""
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
