"""A restore that fails, wherever it does, leaves the old data or the new, whole."""

import io
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from culture.lib import files
from culture.lib.files import FileLock
from culture.server import database
from culture.server.backup import restore
from culture.server.backup.create import Label, create, data_files
from culture.server.backup.manifest import BadBackup, Manifest
from culture.server.core import ids

STAMP = "20260319T100000Z"


class Killed(BaseException):
    """The process is no more."""


def nothing(number: int) -> None:
    """Nobody looks how far it is."""


def backup(folder: Path) -> tuple[Path, Manifest]:
    file = folder.parent / "backup.tar.gz"
    sources = list(data_files(folder, lambda path: None))
    return file, create(file, Label("spark", "1.0", "sqlite"), sources, 0.0, nothing, nothing)


def data_folder(folder: Path, text: str) -> Path:
    """A server's data, all of which says the same."""
    (folder / "skill").mkdir(parents=True)
    (folder / "channels.json").write_text(text)
    (folder / "ids.json").write_text(json.dumps({"schema": 1, "epoch": text, "reserved": 5}))
    with closing(sqlite3.connect(folder / "skill" / "some.db")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE words (word TEXT)")
        connection.execute("INSERT INTO words VALUES (?)", (text,))
        connection.execute("PRAGMA user_version=3")
        connection.commit()
    return folder


def says(folder: Path) -> set[str]:
    """What the data says, read from all of its files."""
    with closing(database.open_reader(folder / "skill" / "some.db")) as connection:
        found = {row[0] for row in connection.execute("SELECT word FROM words")}
    return found | {(folder / "channels.json").read_text()}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return data_folder(tmp_path / "data" / "spark", "old")


@pytest.fixture
def file(data: Path) -> Path:
    """A backup that says ``old``, while the data says ``new`` by now."""
    made, _ = backup(data)
    shutil.rmtree(data)
    data_folder(data, "new")
    return made


def put_back(file: Path, data: Path) -> Path:
    aside = data.with_name(f"spark.before-{STAMP}")
    with file.open("rb") as source, restore.unpacked(source, data, {}, STAMP, nothing) as unpacked:
        restore.put_in_place(unpacked.data, data, aside)
    return aside


def test_the_data_is_as_it_was_and_the_former_is_kept(file: Path, data: Path) -> None:
    aside = put_back(file, data)
    assert (says(data), says(aside)) == ({"old"}, {"new"})
    assert sorted(each.name for each in data.parent.iterdir()) == ["backup.tar.gz", "spark", aside.name]
    assert {each.stat().st_mode & 0o077 for each in data.rglob("*")} == {0}


def test_ids_go_on_in_a_new_epoch(file: Path, data: Path) -> None:
    put_back(file, data)
    first = ids.Ids(data / ids.FILE, "spark")
    assert first.epoch not in ("old", "new") and first.stamp().seq == 1
    shutil.rmtree(data.with_name(f"spark.before-{STAMP}"))
    put_back(file, data)
    assert ids.Ids(data / ids.FILE, "spark").epoch != first.epoch


def test_where_there_was_nothing_nothing_is_kept(file: Path, data: Path) -> None:
    shutil.rmtree(data)
    lock = FileLock(data / "lock")
    lock.acquire("me")
    aside = put_back(file, data)
    lock.release()
    assert says(data) == {"old"} and not aside.exists()


@pytest.mark.parametrize("step", range(20))
def test_whoever_is_killed_leaves_one_or_the_other(
    file: Path, data: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every call that changes the disk fails in its turn, before or after it was made, and nothing is cleaned up."""
    left = step

    def mortal(call: Callable[..., object]) -> Callable[..., object]:
        def dying(*args: object, **options: object) -> object:
            nonlocal left
            if left in (0, 1):
                if left == 1:
                    call(*args, **options)
                left = -1
            if left < 0:
                raise Killed
            left -= 2
            return call(*args, **options)

        return dying

    with monkeypatch.context() as patch:
        for place, name in (
            (os, "rename"),
            (os, "replace"),
            (restore, "exchange"),
            (files, "sync_directory"),
            (restore, "sync_directory"),
            (shutil, "rmtree"),
        ):
            patch.setattr(place, name, mortal(getattr(place, name)))
        try:
            put_back(file, data)
        except Killed:
            pass
    assert says(data) in ({"old"}, {"new"})
    everything = {text for each in data.parent.iterdir() if each.is_dir() for text in _said(each)}
    assert "new" in everything, "the former data is lost"
    aside = data.with_name(f"spark.before-{STAMP}")
    if aside.exists():
        aside.rename(aside.with_name("elsewhere"))
    put_back(file, data)
    assert says(data) == {"old"}


def _said(folder: Path) -> set[str]:
    inside = folder / "data" if (folder / "data").is_dir() else folder
    return says(inside) if (inside / "skill" / "some.db").exists() else set()


def test_a_refused_backup_changes_nothing(file: Path, data: Path) -> None:
    whole = file.read_bytes()
    for broken in (whole[:-10], whole[: len(whole) // 2], b"hello"):
        with (
            pytest.raises(BadBackup),
            restore.unpacked(io.BytesIO(broken), data, {}, STAMP, nothing),
        ):
            pytest.fail("it was unpacked")
        assert says(data) == {"new"}
        assert [each.name for each in data.parent.iterdir() if each.name != file.name] == ["spark"]


def test_what_has_no_room_is_refused_at_once(file: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(data)._replace(free=100)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(BadBackup, match="100 bytes free"):
        put_back(file, data)
    assert says(data) == {"new"}


def test_a_database_of_a_newer_program_is_refused(file: Path, data: Path) -> None:
    with (
        pytest.raises(BadBackup, match="schema 3"),
        file.open("rb") as source,
        restore.unpacked(source, data, {"skill/some.db": 2}, STAMP, nothing),
    ):
        pytest.fail("it was unpacked")


def test_two_restores_at_once_are_one_too_many(file: Path, data: Path) -> None:
    with file.open("rb") as source, restore.unpacked(source, data, {}, STAMP, nothing) as first:
        with pytest.raises(BadBackup, match=f"under way .pid {os.getpid()}"):
            put_back(file, data)
        assert says(first.data) == {"old"}


def test_what_a_killed_restore_had_unpacked_is_removed(file: Path, data: Path) -> None:
    left = data.with_name("spark.unpacking-20200101T000000Z")
    (left / "data").mkdir(parents=True)
    put_back(file, data)
    assert not left.exists()


def test_a_file_that_is_replaced_is_kept_aside(tmp_path: Path) -> None:
    new, path = tmp_path / "new", tmp_path / "accounts.json"
    new.write_text("new")
    assert restore.put_file(new, path, STAMP) is None and path.read_text() == "new"
    assert restore.put_file(new, path, STAMP) is None
    path.write_text("other")
    aside = restore.put_file(new, path, STAMP)
    assert aside == tmp_path / f"accounts.json.before-{STAMP}"
    assert (path.read_text(), aside.read_text(), aside.stat().st_mode & 0o777) == ("new", "other", 0o600)
