"""Many who write at once, in processes of their own, and some of them killed: no text is lost."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from culture.wiki.errors import DiskFull
from culture.wiki.pages import Pages
from culture.wiki.types import revision_of
from tests.cli.shell import ROOT
from tests.support.clock import sleep
from tests.support.small_disk import fill, small_disk
from tests.wiki.git import check, clone, commit, git

WRITER = Path(__file__).with_name("writer.py")


@contextmanager
def writers(
    folder: Path, plans: dict[str, list[tuple[str, str]]], path: str = os.environ["PATH"]
) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that have all begun to write; each a group of its own."""
    started = [
        subprocess.Popen(
            [sys.executable, str(WRITER), str(folder), nick],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": path, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )
        for nick in plans
    ]
    try:
        for process in started:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
        for process, plan in zip(started, plans.values(), strict=True):
            assert process.stdin is not None
            process.stdin.write(json.dumps(plan) + "\n")
            process.stdin.flush()
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def lines(wiki: Pages, page: str) -> list[str]:
    return wiki.read(page).text.splitlines()


plans = st.lists(st.lists(st.sampled_from(["plans/a", "plans/b"]), min_size=1, max_size=4), min_size=2, max_size=3)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=plans)
def test_writers_side_by_side_lose_no_line(
    fresh_wiki: Path, tmp_path_factory: pytest.TempPathFactory, chosen: list[list[str]]
) -> None:
    folder = tmp_path_factory.mktemp("together") / "demo"
    wiki = Pages(shutil.copytree(fresh_wiki, folder))
    work = {
        f"spark-w{number}": [(page, f"w{number} {step}") for step, page in enumerate(pages)]
        for number, pages in enumerate(chosen)
    }
    with writers(folder, work) as started:
        assert [process.wait(60) for process in started] == [0] * len(started)
    wanted = [each for plan in work.values() for each in plan]
    for page in {page for page, _ in wanted}:
        assert sorted(lines(wiki, page)) == sorted(line for where, line in wanted if where == page)
        # In the history each writer's lines came one by one, in their order, under their own name.
        told = [(change.author, change.message) for change in reversed(wiki.history(page, 100))]
        assert [message for _, message in told] == lines(wiki, page)
        assert all(author == f"spark-{message.split()[0]}" for author, message in told)
    check(folder)


def test_writers_and_a_person_who_pushes_lose_no_line(wiki: Pages, tmp_path: Path) -> None:
    copy = clone(wiki.folder, tmp_path / "copy")
    (copy / "person.md").write_text("by hand\n", encoding="utf-8")
    work = {f"spark-w{number}": [("plans/a", f"w{number} {step}") for step in range(3)] for number in range(2)}
    commit(copy, "by hand")
    with writers(wiki.folder, work) as started:
        pushed = False
        while not pushed:
            try:
                git(copy, "push", "--quiet", "origin", "main")
                pushed = True
            except subprocess.CalledProcessError:  # somebody was faster
                git(copy, "pull", "--quiet", "--rebase")
        assert [process.wait(60) for process in started] == [0, 0]
    assert sorted(lines(wiki, "plans/a")) == sorted(line for plan in work.values() for _, line in plan)
    assert wiki.read("person").text == "by hand\n"
    check(wiki.folder)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_kill_minus_nine_at_any_step_leaves_a_whole_wiki(wiki: Pages, tmp_path: Path, moment: str) -> None:
    """Killed before or after each git that it runs: the line is written or not, and the next one goes on at once."""
    page = wiki.write("plans/a", "first\n", "", "spark-ramona")
    base, text, killed = page.revision, "first\n", 0
    for step in range(1, 20):
        calls = tmp_path / f"calls{step}"
        fake = _killing(tmp_path / f"bin{step}", calls, step, moment)
        with writers(wiki.folder, {"spark-w": [("plans/a", f"step {step}")]}, path=fake) as [process]:
            code = process.wait(60)
        found = wiki.read("plans/a").text
        check(wiki.folder)
        if code == 0:
            assert found == f"{text}step {step}\n"
            break
        assert code == -signal.SIGKILL and found in (text, f"{text}step {step}\n")
        killed += 1
        text = f"{found}after {step}\n"
        base = wiki.write("plans/a", text, wiki.read("plans/a").revision, "spark-next").revision
        assert base == revision_of(text)
    assert killed >= 8


def _killing(folder: Path, calls: Path, step: int, moment: str) -> str:
    """A path whose git kills who runs it, at the given call of it."""
    real = shutil.which("git")
    folder.mkdir()
    script = folder / "git"
    killing = f'[ "$(wc -l < {calls})" -eq {step} ] && kill -9 $PPID'
    lines = [f"echo >> {calls}", killing if moment == "before" else "", f'"{real}" "$@"; code=$?']
    script.write_text("\n".join(["#!/bin/sh", *lines, killing if moment == "after" else "", "exit $code", ""]))
    script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_kill_minus_nine_of_git_itself_leaves_a_whole_wiki(wiki: Pages) -> None:
    """Somewhere in its work, with every process of it."""
    for round_ in range(5):
        work = {"spark-w": [("plans/a", f"{round_}.{step}") for step in range(50)]}
        with writers(wiki.folder, work) as [process]:
            assert process.stdout is not None
            said = [process.stdout.readline().strip() for _ in range(1 + round_ % 2)]
            asyncio.run(sleep(0.004 * round_))
            os.killpg(process.pid, signal.SIGKILL)
            said += process.stdout.read().split()
        page = wiki.read("plans/a")
        mine = [line for line in page.text.splitlines() if line.startswith(f"{round_}.")]
        assert mine[: len(said)] == said and len(mine) <= len(said) + 1
        assert mine == [f"{round_}.{step}" for step in range(len(mine))]
        wiki.write("plans/a", f"{page.text}after\n", page.revision, "spark-next")
    check(wiki.folder)


@pytest.mark.parametrize("ago", [60, -86400], ids=["a minute old", "the clock was set back"])
@pytest.mark.parametrize("name", ["HEAD.lock", "refs/heads/main.lock", "culture.index.lock", "culture.index"])
def test_what_a_killed_git_left_is_cleared_away(wiki: Pages, name: str, ago: float) -> None:
    leftover = wiki.folder / name
    leftover.write_bytes(b"DIRC half of an index")
    os.utime(leftover, (time.time() - ago,) * 2)
    wiki.write("plans/a", "text\n", "", "spark-ramona")
    assert wiki.read("plans/a").text == "text\n"
    check(wiki.folder)


@pytest.mark.fault("I26")
def test_a_full_disk_refuses_the_write_and_nothing_is_half_written(fresh_wiki: Path, tmp_path: Path) -> None:
    """I26: whichever step of a commit finds no room."""
    with small_disk(tmp_path / "disk", "2m") as disk:
        wiki = Pages(shutil.copytree(fresh_wiki, disk / "demo"))
        base = wiki.write("plans/a", "one\n", "", "spark-ramona").revision
        ballast = fill(disk)
        refused = 0
        for size in range(0, 40 * 1024, 4096):
            # Room for one more step each time.
            os.truncate(ballast, ballast.stat().st_size - size)
            text = f"{size} {os.urandom(3000).hex()}\n"
            try:
                base = wiki.write("plans/a", text, base, "spark-ramona").revision
                break
            except DiskFull as full:
                assert "disk of the wiki is full" in str(full)
                refused += 1
                assert wiki.read("plans/a").text == "one\n"
                check(wiki.folder)
        assert refused and base == revision_of(text)
        ballast.unlink()
        wiki.write("plans/a", "two\n", base, "spark-ramona")
        check(wiki.folder)
