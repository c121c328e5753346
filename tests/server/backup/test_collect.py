"""What a backup has in it: everything that means something, as it is at one moment."""

import os
import shutil
import socket
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from culture.server import database
from culture.server.backup.create import BackupDiskFull, Label, Source, copy_source, create, data_files

LABEL = Label("spark", "1.0", "sqlite")


def nothing(number: int) -> None:
    """Nobody looks how far it is."""


def test_locks_sockets_and_links_are_left_out(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for name in ("lock", "channels.json", "channels.json.lock", "ids.json.new", "logger/lock", "logger/#c/1.log"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text("x")
    (data / "link").symlink_to("/etc/passwd")
    (data / "folder").symlink_to("/etc")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(data / "socket"))
        left_out: list[Path] = []
        found = [source.name for source in data_files(data, left_out.append)]
    assert found == ["data/channels.json", "data/logger/#c/1.log", "data/logger/lock"]
    assert sorted(path.name for path in left_out) == ["folder", "link", "socket"]


def test_what_stands_beside_a_database_is_part_of_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    connection = database.open_database(data / "some.db", ("CREATE TABLE t (x)",))
    connection.execute("INSERT INTO t VALUES (1)")
    (data / "notes-wal").write_text("no database's")
    assert (data / "some.db-wal").exists()
    sources = list(data_files(data, lambda path: None))
    assert [source.name for source in sources] == ["data/notes-wal", "data/some.db"]
    copied = copy_source(sources[1], tmp_path / "copy", nothing)
    connection.close()
    with closing(sqlite3.connect(tmp_path / "copy" / copied.name)) as copy:
        assert copy.execute("SELECT x FROM t").fetchall() == [(1,)]
    assert copied.schema == 1


def test_what_git_refers_to_comes_behind_what_refers_to_it(tmp_path: Path) -> None:
    for name in ("logger/.git/objects/aa/1", "logger/.git/refs/heads/main", "zebra"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    found = [source.name for source in data_files(tmp_path, lambda path: None)]
    assert found[-1] == "data/logger/.git/objects/aa/1"


def test_a_database_is_copied_as_at_one_moment_while_another_writes(tmp_path: Path) -> None:
    """Two tables that are always written together are alike in the copy, and the writer never waits for it."""
    path = tmp_path / "some.db"
    writer = database.open_database(path, ("CREATE TABLE one (x, filling); CREATE TABLE other (x)",))
    ended, begun = threading.Event(), threading.Event()

    def write() -> None:
        number = 0
        while not ended.is_set() or number < 2_000:
            writer.execute("BEGIN IMMEDIATE")
            writer.execute("INSERT INTO one VALUES (?, zeroblob(4000))", (number,))
            writer.execute("INSERT INTO other VALUES (?)", (number,))
            writer.execute("COMMIT")
            number += 1
            if number == 1_000:
                begun.set()

    writer.execute("PRAGMA synchronous=OFF")
    thread = threading.Thread(target=write)
    thread.start()
    try:
        begun.wait(30)
        steps: list[int] = []
        copied = copy_source(Source(path, "data/some.db"), tmp_path / "copy", steps.append)
    finally:
        ended.set()
        thread.join()
    (last,) = writer.execute("SELECT count(*) FROM one").fetchone()
    writer.close()
    with closing(sqlite3.connect(tmp_path / "copy" / copied.name)) as copy:
        (one,) = copy.execute("SELECT count(*) FROM one").fetchone()
        (other,) = copy.execute("SELECT count(*) FROM other").fetchone()
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert one == other and 1_000 <= one <= last
    assert sum(steps) == copied.size and len(steps) > 1


def test_a_file_that_is_gone_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("x")
    sources = [Source(tmp_path / name, f"data/{name}") for name in ("here", "gone")]
    made = create(tmp_path / "out.tar.gz", LABEL, sources, 0.0, nothing, nothing)
    assert [file.name for file in made.files] == ["data/here"]


def test_a_file_of_that_name_stays_and_nothing_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("x")
    (tmp_path / "out.tar.gz").write_text("mine")
    with pytest.raises(FileExistsError):
        create(tmp_path / "out.tar.gz", LABEL, [Source(tmp_path / "here", "data/here")], 0.0, nothing, nothing)
    assert (tmp_path / "out.tar.gz").read_text() == "mine"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["here", "out.tar.gz"]


def test_a_disk_without_room_is_told_before_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").write_text("x" * 101)
    usage = shutil.disk_usage(tmp_path)._replace(free=100)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    with pytest.raises(BackupDiskFull, match="100 bytes free"):
        create(tmp_path / "out.tar.gz", LABEL, [Source(tmp_path / "here", "data/here")], 0.0, nothing, nothing)
    assert [each.name for each in tmp_path.iterdir()] == ["here"]
