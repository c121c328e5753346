"""Reading and writing pages: nobody overwrites what they have not read."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from culture.wiki.errors import Conflict, NoSuchPage, WikiRefused
from culture.wiki.page_templates import PageKind, fill_template
from culture.wiki.pages import FOUNDER, PAGE_LIMIT, Pages
from culture.wiki.types import revision_of
from tests.wiki.git import check, clone, git, push


def test_what_is_written_is_read(wiki: Pages) -> None:
    text = "# Plan\r\n\n  größer, 日本語, 🎉\n\n\n"
    written = wiki.write("plans/e2-cdn", text, "", "spark-ramona", "the first plan")
    page = wiki.read("plans/e2-cdn")
    assert (page.text, page.author, page.revision) == (text, "spark-ramona", written.revision)
    assert written.revision == revision_of(text) and written.changed
    check(wiki.folder)


def test_a_page_that_somebody_else_wrote_meanwhile_is_not_overwritten(wiki: Pages) -> None:
    first = wiki.write("sprint-state", "one\n", "", "spark-em").revision
    second = wiki.write("sprint-state", "one\ntwo\n", first, "spark-harper").revision
    with pytest.raises(Conflict) as raised:
        wiki.write("sprint-state", "one\nthree\n", first, "spark-dinesh")
    conflict = raised.value
    assert (conflict.base, conflict.current, conflict.yours) == ("one\n", "one\ntwo\n", "one\nthree\n")
    assert conflict.revision == second and second in str(conflict)
    assert wiki.read("sprint-state").text == "one\ntwo\n"
    wiki.write("sprint-state", "one\ntwo\nthree\n", conflict.revision, "spark-dinesh")


def test_a_page_is_new_only_once(wiki: Pages) -> None:
    wiki.write("plans/a", "mine\n", "", "spark-ramona")
    with pytest.raises(Conflict) as raised:
        wiki.write("plans/a", "yours\n", "", "spark-jules")
    assert (raised.value.base, raised.value.current) == ("", "mine\n")


def test_a_base_that_the_page_never_had_is_a_conflict_without_one(wiki: Pages) -> None:
    wiki.write("plans/a", "mine\n", "", "spark-ramona")
    other = wiki.write("plans/b", "of another page\n", "", "spark-ramona").revision
    with pytest.raises(Conflict) as raised:
        wiki.write("plans/a", "x\n", other, "spark-jules")
    assert raised.value.base is None
    with pytest.raises(Conflict) as raised:
        wiki.write("plans/none", "x\n", other, "spark-jules")
    assert (raised.value.base, raised.value.current, raised.value.revision) == (None, "", "")


def test_a_write_that_already_happened_is_no_conflict(wiki: Pages) -> None:
    """Whoever did not hear that it was written may write it again."""
    written = wiki.write("plans/a", "text\n", "", "spark-ramona")
    again = wiki.write("plans/a", "text\n", "", "spark-ramona")
    assert again.revision == written.revision and not again.changed
    assert len(wiki.history("plans/a")) == 1


def test_the_history_tells_who_wrote_what(wiki: Pages) -> None:
    base = ""
    for number, nick in enumerate(["spark-ramona", "spark-jules\\", "thor-harper"]):
        base = wiki.write("handoffs/x", f"{number}\n", base, nick, f"step\n{number}\x1b[2J").revision
    changes = wiki.history("handoffs/x")
    assert [change.author for change in changes] == ["thor-harper", "spark-jules\\", "spark-ramona"]
    assert [change.message for change in changes] == ["step 2", "step 1", "step 0"]
    assert [wiki.read("handoffs/x", change.revision).text for change in changes] == ["2\n", "1\n", "0\n"]
    assert wiki.read("handoffs/x", changes[1].revision).author == "spark-jules\\"
    assert len(wiki.history("handoffs/x", limit=2)) == 2
    assert git(wiki.folder, "log", "-3", "--format=%cn", "main").split() == ["culture"] * 3


def test_pages_are_listed_by_name_with_their_last_author(wiki: Pages) -> None:
    wiki.write("plans/b", "b\n", "", "spark-ramona")
    wiki.write("plans/a", "äa\n", "", "spark-jules")
    assert [(e.name, e.size, e.author) for e in wiki.pages("plans/")] == [
        ("plans/a", 4, "spark-jules"),
        ("plans/b", 2, "spark-ramona"),
    ]
    assert [e.name for e in wiki.pages()][:3] == ["home", "plans/a", "plans/b"]
    assert wiki.pages("plan") == []


def test_a_search_finds_pages_with_all_words_in_any_case(wiki: Pages) -> None:
    wiki.write("plans/cache", "# Cache\nThe CDN is GRÖSSER now.\n", "", "spark-ramona")
    wiki.write("decisions/cdn", "nothing of it\n\nthe CACHE and größe\n", "", "spark-ramona")
    hits = wiki.search("cdn cache")
    assert [hit.name for hit in hits] == ["plans/cache", "decisions/cdn"]
    assert [(line.number, line.text) for line in hits[1].lines] == [(3, "the CACHE and größe")]
    assert [hit.name for hit in wiki.search("größer")] == ["plans/cache"]
    assert wiki.search("cdn nowhere") == [] and wiki.search("  ") == []
    assert [hit.name for hit in wiki.search("cdn", limit=1)] == ["decisions/cdn"]


def test_a_page_that_does_not_exist_is_told(wiki: Pages) -> None:
    for ask in (wiki.read, wiki.history):
        with pytest.raises(NoSuchPage, match="plans/none"):
            ask("plans/none")
    revision = wiki.write("plans/a", "text\n", "", "spark-ramona").revision
    with pytest.raises(NoSuchPage, match="never had"):
        wiki.read("home", revision)


@pytest.mark.parametrize("kind", list(PageKind))
def test_a_new_wiki_has_the_forms_of_its_pages(wiki: Pages, kind: PageKind) -> None:
    form = wiki.read(f"templates/{kind}")
    assert form.author == "culture" and form.text.startswith("# ")
    text = fill_template(kind, {"task": "e2", "nick": "spark-ramona", "project": "demo", "title": "a cache"})
    assert text != form.text and "$task" not in text
    wiki.write(f"kept/{kind}", text, "", "spark-ramona")
    assert Pages(wiki.folder).read(f"kept/{kind}").text == text


def test_making_a_wiki_twice_changes_nothing(wiki: Pages) -> None:
    wiki.write("plans/a", "text\n", "", "spark-ramona")
    (wiki.folder.parent / ".demo.new" / "objects").mkdir(parents=True)
    assert Pages.create(wiki.folder).read("plans/a").text == "text\n"
    Pages.create(wiki.folder.parent / "other")
    assert (wiki.folder.stat().st_mode & 0o777) == 0o700


@pytest.mark.parametrize(
    ("text", "why"),
    [("x" * (PAGE_LIMIT + 1), "at most"), ("a\0b", "NUL"), ("\ud800", "surrogate")],
    ids=["too long", "nul", "surrogate"],
)
def test_a_text_that_is_none_is_refused(wiki: Pages, text: str, why: str) -> None:
    with pytest.raises(WikiRefused, match=why):
        wiki.write("plans/a", text, "", "spark-ramona")
    wiki.write("plans/a", "x" * PAGE_LIMIT, "", "spark-ramona")


@pytest.mark.parametrize("author", ["", "a b", "x <y@z>", "ori\nparent 0", "-x"])
def test_whoever_has_no_nick_writes_nothing(wiki: Pages, author: str) -> None:
    with pytest.raises(WikiRefused, match="nick"):
        wiki.write("plans/a", "text\n", "", author)


@pytest.mark.parametrize("revision", ["HEAD", "--all", "abc", "0" * 41])
def test_a_base_that_is_no_revision_is_refused(wiki: Pages, revision: str) -> None:
    with pytest.raises(WikiRefused, match="no revision"):
        wiki.write("plans/a", "text\n", revision, "spark-ramona")


def test_people_may_push_from_a_clone(wiki: Pages, tmp_path: Path) -> None:
    first = wiki.write("plans/a", "one\n", "", "spark-ramona").revision
    copy = clone(wiki.folder, tmp_path / "copy")
    (copy / "plans" / "a.md").write_text("one\nfrom a person\n", encoding="utf-8")
    push(copy, "by hand")
    assert wiki.read("plans/a").author == "Ori"
    with pytest.raises(Conflict):
        wiki.write("plans/a", "one\ntwo\n", first, "spark-ramona")


def test_what_is_pushed_and_is_no_page_is_passed_over(wiki: Pages, tmp_path: Path) -> None:
    """Links are not followed, neither are files read that are no pages."""
    secret = tmp_path / "secret.md"
    secret.write_text("secret", encoding="utf-8")
    copy = clone(wiki.folder, tmp_path / "copy")
    (copy / "link.md").symlink_to(secret)
    (copy / "folder").symlink_to(tmp_path)
    (copy / "notes.txt").write_text("secret", encoding="utf-8")
    (copy / "a b.md").write_text("secret", encoding="utf-8")
    (copy / "long.md").write_text("x" * (PAGE_LIMIT + 1), encoding="utf-8")
    (copy / "latin.md").write_bytes("größe".encode("latin-1"))
    push(copy, "all sorts")
    names = [entry.name for entry in wiki.pages()]
    assert {"link", "notes", "a b"}.isdisjoint(names)
    assert wiki.search("secret") == []
    with pytest.raises(NoSuchPage):
        wiki.read("link")
    with pytest.raises(WikiRefused, match="clone"):
        wiki.read("long")
    assert wiki.read("latin").text == "gr�\ufffde"
    wiki.write("link", "a page now\n", "", "spark-ramona")
    assert wiki.read("link").text == "a page now\n" and secret.read_text() == "secret"


@pytest.mark.parametrize(
    "header",
    [
        b"author a\x02b\x01c <x@y> 1700000000 +0000",
        b"author \x1b]0;x\x07O\xe2\x80\xaeri\xff <x@y> 1700000000 +0000",
        b"author Ori <x@y> 99999999999999 +0000",
        b"author Ori <x@y>",
        b"author Ori <x@y> 0 +0000",
    ],
    ids=["marks", "control", "far", "timeless", "early"],
)
def test_a_commit_that_lies_in_its_headers_spoils_nothing(wiki: Pages, header: bytes) -> None:
    """Whoever pushes writes headers as they like; everybody else still reads, lists and writes."""
    tree = git(wiki.folder, "rev-parse", "main^{tree}").strip()
    blob = git(wiki.folder, "hash-object", "-w", "--stdin", stdin="pushed\n").strip()
    rows = git(wiki.folder, "ls-tree", tree) + f"100644 blob {blob}\tpushed.md\n"
    tree = git(wiki.folder, "mktree", stdin=rows).strip()
    parent = git(wiki.folder, "rev-parse", "main").strip()
    lines = (
        f"tree {tree}\nparent {parent}".encode(),
        header,
        b"committer x <x@y> 1 +0000",
        b"",
        b"s\x01u\x02b\xff",
        b"",
    )
    raw = wiki.folder.parent / "commit"
    raw.write_bytes(b"\n".join(lines))
    commit = git(wiki.folder, "hash-object", "-t", "commit", "-w", "--literally", str(raw)).strip()
    git(wiki.folder, "update-ref", "refs/heads/main", commit)
    page = wiki.read("pushed")
    [entry] = [each for each in wiki.pages() if each.name == "pushed"]
    [change] = wiki.history("pushed")
    assert page.text == "pushed\n"
    assert (page.author, page.time) == (entry.author, entry.time) == (change.author, change.time)
    assert (page.author + change.message).isprintable()
    assert datetime.fromtimestamp(page.time, UTC)
    assert wiki.read("home").author == FOUNDER
    assert wiki.write("pushed", "on top\n", page.revision, "spark-ramona").changed


def test_a_merge_is_read_as_it_was_pushed(wiki: Pages, tmp_path: Path) -> None:
    wiki.write("plans/a", "one\n", "", "spark-ramona")
    copy = clone(wiki.folder, tmp_path / "copy")
    git(copy, "switch", "--quiet", "-c", "side")
    (copy / "plans" / "a.md").write_text("side\n", encoding="utf-8")
    git(copy, "commit", "--quiet", "-a", "-m", "side")
    git(copy, "switch", "--quiet", "main")
    git(copy, "merge", "--quiet", "--no-ff", "--no-commit", "side")
    (copy / "plans" / "a.md").write_text("neither\n", encoding="utf-8")
    push(copy, "merged")
    assert wiki.read("plans/a").text == "neither\n"
    assert [change.message for change in wiki.history("plans/a")] == ["merged", "Write plans/a"]


def test_neither_hooks_nor_the_environment_reach_git(
    wiki: Pages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    hooks = wiki.folder / "hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "post-commit", "update"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {mark}\n", encoding="utf-8")
        (hooks / name).chmod(0o755)
    git(wiki.folder, "config", "core.hooksPath", str(hooks))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(hooks))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    wiki.write("plans/a", "text\n", "", "spark-ramona")
    assert wiki.read("plans/a").text == "text\n"
    assert not mark.exists() and sorted(os.listdir(tmp_path)) == ["wiki"]


def test_a_large_history_is_packed(wiki: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("culture.wiki.repository._LOOSE_LIMIT", -1)
    (wiki.folder / "objects" / "17").mkdir(exist_ok=True)
    wiki.write("plans/a", "text\n", "", "spark-ramona")
    assert list((wiki.folder / "objects" / "pack").glob("*.pack"))
    assert wiki.read("plans/a").text == "text\n"
    check(wiki.folder)
