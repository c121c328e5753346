"""A wiki that cannot be reached: writes wait on disk, and none is lost."""

import json
import logging
import os
import shutil
from pathlib import Path
from typing import cast

import pytest

from culture.wiki.client import LocalWiki, WikiClient
from culture.wiki.errors import Conflict, DiskFull, NoSuchPage, WikiRefused, WikiUnavailable
from culture.wiki.pages import Pages
from culture.wiki.queue import QueuedWiki
from culture.wiki.remote import RemoteWiki
from culture.wiki.server import serving
from culture.wiki.types import Written, revision_of
from tests.support.ports import reserved
from tests.support.small_disk import fill, small_disk
from tests.wiki.git import clone, push


@pytest.fixture
def away(wiki: Pages) -> Path:
    """The wiki's folder has gone, as if the disk it is on were not there; `back` returns it."""
    return wiki.folder.rename(wiki.folder.with_name("away"))


def back(wiki: Pages) -> None:
    wiki.folder.with_name("away").rename(wiki.folder)


class Flickering:
    """A wiki that is there for some calls, and away for others."""

    def __init__(self, *there: bool) -> None:
        self._there = list(there)
        self.pages: list[str] = []

    async def write(self, page: str, text: str, base_revision: str, author: str, message: str = "") -> Written:
        if self._there and not self._there.pop(0):
            raise WikiUnavailable("the wiki does not answer")
        self.pages.append(page)
        return Written(page, revision_of(text))


async def test_no_write_overtakes_one_that_waits(tmp_path: Path) -> None:
    """The wiki comes and goes between two calls: a later text of a page must not come before an earlier one."""
    wiki = Flickering(False, False, True, True, False, True)
    queued = QueuedWiki(cast(WikiClient, wiki), tmp_path / "queue")
    assert (await queued.write("a", "1\n", "", "spark-em")).queued
    assert (await queued.write("b", "2\n", "", "spark-em")).queued, "the wiki is there again, but a waits"
    assert wiki.pages == [] and queued.waiting == 2
    assert (await queued.write("c", "3\n", "", "spark-em")).queued, "it went away behind a and b"
    assert wiki.pages == ["a", "b"]
    assert not (await queued.write("d", "4\n", "", "spark-em")).queued
    assert wiki.pages == ["a", "b", "c", "d"] and queued.waiting == 0


async def test_queue_stops_at_the_first_write_that_fails(tmp_path: Path) -> None:
    wiki = Flickering(False, False, False, False, True)
    queued = QueuedWiki(cast(WikiClient, wiki), tmp_path / "queue")
    for page in ("a", "b", "c"):
        await queued.write(page, f"{page}\n", "", "spark-em")
    assert await queued.drain() == [] and wiki.pages == []
    assert [each.name for each in await queued.drain()] == ["a", "b", "c"]


async def test_many_writes_come_in_their_order(tmp_path: Path) -> None:
    """Whatever order the file system lists them in."""
    names = [f"page-{number}" for number in range(40)]
    wiki = Flickering(*(False for _ in names))
    queued = QueuedWiki(cast(WikiClient, wiki), tmp_path / "queue")
    for name in names:
        await queued.write(name, "text\n", "", "spark-em")
    assert queued.waiting == len(names)
    await queued.drain()
    assert wiki.pages == names


async def test_writes_wait_and_come_in_their_order(wiki: Pages, tmp_path: Path) -> None:
    with reserved() as port:
        queued = QueuedWiki(RemoteWiki(f"http://127.0.0.1:{port}/mcp"), tmp_path / "queue")
        first = await queued.write("sprint-state", "one\n", "", "spark-em", "begun")
        assert first.queued and (await queued.read("sprint-state")).text == "one\n"
        second = await queued.write("Sprint-State.md", "one\ntwo\n", first.revision, "spark-em", "more")
        await queued.write("plans/a", "plan\n", "", "spark-ramona")
        assert queued.waiting == 3 and await queued.drain() == []
        with pytest.raises(WikiUnavailable):
            await queued.read("home")
        # Another process takes over, and the wiki is there.
        again = QueuedWiki(RemoteWiki(f"http://127.0.0.1:{port}/mcp"), tmp_path / "queue")
        assert again.waiting == 3
        async with serving(wiki, port=port):
            third = await again.write("sprint-state", "one\ntwo\nthree\n", second.revision, "spark-em", "all")
            assert not third.queued and again.waiting == 0
            assert (await again.read("sprint-state")).text == "one\ntwo\nthree\n"
            assert [each.message for each in await again.history("sprint-state")] == ["all", "more", "begun"]
            assert (
                [each.name for each in await again.pages("plans")]
                == ["plans/a"]
                == [each.name for each in await again.search("plan plan") if each.name.startswith("plans")]
            )
    assert wiki.read("plans/a").author == "spark-ramona"


@pytest.mark.parametrize("name", ["日" * 66, "x" * 200, "a/" * 7 + "ö" * 90], ids=["three bytes", "long", "deep"])
async def test_a_page_with_a_long_name_has_room_beside_it(wiki: Pages, away: Path, tmp_path: Path, name: str) -> None:
    queued = QueuedWiki(LocalWiki(wiki), tmp_path / "queue")
    await queued.write(name, "mine\n", "", "spark-ramona")
    back(wiki)
    wiki.write(name, "theirs\n", "", "spark-jules")
    [written] = await queued.drain()
    assert wiki.read(written.name).text == "mine\n"


async def test_a_text_whose_page_was_changed_meanwhile_is_kept_beside_it(
    wiki: Pages, away: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queued = QueuedWiki(LocalWiki(wiki), tmp_path / "queue")
    await queued.write("plans/a", "mine\n", "", "spark-ramona")
    back(wiki)
    wiki.write("plans/a", "theirs\n", "", "spark-jules")
    with caplog.at_level(logging.WARNING):
        [written] = await queued.drain()
    assert written.name == "conflicts/plans.a-" + revision_of("mine\n") and written.name in caplog.text
    assert wiki.read(written.name).text == "mine\n" and wiki.read(written.name).author == "spark-ramona"
    assert wiki.read("plans/a").text == "theirs\n" and queued.waiting == 0


async def test_while_the_wiki_is_there_a_conflict_is_told_at_once(wiki: Pages, tmp_path: Path) -> None:
    queued = QueuedWiki(LocalWiki(wiki), tmp_path / "queue")
    await queued.write("plans/a", "mine\n", "", "spark-ramona")
    with pytest.raises(Conflict):
        await queued.write("plans/a", "again\n", "", "spark-ramona")
    with pytest.raises(NoSuchPage):
        await queued.read("plans/none")
    assert queued.waiting == 0


async def test_a_write_that_was_done_and_not_heard_of_is_done_once(wiki: Pages, away: Path, tmp_path: Path) -> None:
    queued = QueuedWiki(LocalWiki(wiki), tmp_path / "queue")
    await queued.write("plans/a", "mine\n", "", "spark-ramona")
    back(wiki)
    wiki.write("plans/a", "mine\n", "", "spark-ramona")
    assert [written.changed for written in await queued.drain()] == [False]
    assert len(wiki.history("plans/a")) == 1


async def test_what_the_wiki_will_never_take_does_not_hold_up_the_rest(
    wiki: Pages, away: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queued = QueuedWiki(LocalWiki(wiki), tmp_path / "queue")
    with pytest.raises(WikiRefused, match="NUL"):
        await queued.write("plans/a", "a\0b", "", "spark-ramona")
    await queued.write("plans/a", "text\n", "", "spark-ramona")
    await queued.write("plans/b", "text\n", "", "spark-ramona")
    back(wiki)
    copy = clone(wiki.folder, tmp_path / "copy")
    (copy / "plans" / "a.md").mkdir(parents=True)
    (copy / "plans" / "a.md" / "note.txt").write_text("in the way", encoding="utf-8")
    push(copy, "a folder with the name of a file")
    assert [written.name for written in await queued.drain()] == ["plans/b"]
    assert queued.waiting == 0 and "a folder of the wiki has the name" in caplog.text
    # One that is put aside later, when numbers have begun anew, takes the place of none.
    wiki.folder.rename(away)
    await queued.write("plans/a", "another text\n", "", "spark-ramona")
    back(wiki)
    assert await queued.drain() == []
    kept = sorted((tmp_path / "queue").iterdir())
    assert {file.suffix for file in kept} == {".refused"}
    assert {json.loads(file.read_text())["text"] for file in kept} == {"text\n", "another text\n"}


async def test_no_more_wait_than_there_is_room_for(
    wiki: Pages, away: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("culture.wiki.queue.MOST_WAITING", 1)
    queued = QueuedWiki(LocalWiki(wiki), tmp_path / "queue")
    await queued.write("plans/a", "text\n", "", "spark-ramona")
    with pytest.raises(WikiUnavailable, match="1 writes wait"):
        await queued.write("plans/b", "text\n", "", "spark-ramona")


@pytest.mark.fault("I26")
async def test_a_full_disk_of_the_wiki_makes_writes_wait_on_another(fresh_wiki: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "2m") as disk:
        wiki = Pages(shutil.copytree(fresh_wiki, disk / "demo"))
        ballast = fill(disk)
        queued = QueuedWiki(LocalWiki(wiki), tmp_path / "queue")
        assert (await queued.write("plans/a", "text\n", "", "spark-ramona")).queued
        full = QueuedWiki(LocalWiki(wiki), disk / "queue")
        with pytest.raises(DiskFull, match="neither"):
            await full.write("plans/b", "text\n", "", "spark-ramona")
        assert full.waiting == 0 and not list((disk / "queue").iterdir())
        os.unlink(ballast)
        assert [written.name for written in await queued.drain()] == ["plans/a"]
        assert wiki.read("plans/a").text == "text\n"
