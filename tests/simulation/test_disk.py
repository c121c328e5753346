"""The simulated disk: what is left after a crash, what a full disk refuses, and crashes at a commit or fsync."""

import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from culture.lib.files import replace_file
from tests.simulation import databases
from tests.simulation.disk import ArmedCrash, Disk
from tests.simulation.servers import SimServer
from tests.simulation.universe import LogWatch
from tests.simulation.world import Host, World

_RUNS = range(1, 120)


@pytest.fixture
def world() -> Iterator[World]:
    world = World("test")
    yield world
    world.close()


@pytest.fixture
def host(world: World, tmp_path: Path) -> Host:
    host = world.boot(world.machine("spark"), Disk(tmp_path / "0"))
    world.host = host
    return host


def _disk(host: Host) -> Disk:
    assert host.disk is not None
    return host.disk


def _after_power_losses(host: Host, name: str, folder: Path) -> set[str | None]:
    """Return what several power losses leave of a file; None: nothing."""
    found = set()
    for run in _RUNS:
        _disk(host).copy(folder / str(run), with_power=True, chance=host.world.chance)
        copy = folder / str(run) / name
        found.add(copy.read_text() if copy.exists() else None)
    return found


def test_a_removed_file_may_be_back_after_a_power_loss(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "0" / "note"
    replace_file(path, "whole", runtime=host.runtime)
    assert _after_power_losses(host, "note", tmp_path / "before") == {"whole"}
    path.unlink()
    assert _after_power_losses(host, "note", tmp_path / "after") == {"whole", None}


def test_a_replacement_without_fsync_may_be_the_old_file_or_a_part_of_the_new_one(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "0" / "note"
    replace_file(path, "old", runtime=host.runtime)
    replace_file(path, "new", durable=False, runtime=host.runtime)
    assert _after_power_losses(host, "note", tmp_path) == {"old", "", "n", "ne", "new"}


def test_a_new_folder_is_durable_once_something_in_it_is_synced(host: Host, tmp_path: Path) -> None:
    (tmp_path / "0" / "folder").mkdir()
    (tmp_path / "0" / "folder" / "note").write_text("some")
    assert None in _after_power_losses(host, "folder/note", tmp_path / "before")
    replace_file(tmp_path / "0" / "folder" / "other", "some", runtime=host.runtime)
    assert _after_power_losses(host, "folder/other", tmp_path / "after") == {"some"}


def test_a_full_disk_refuses_each_write(host: Host, tmp_path: Path) -> None:
    connection = databases.connect(host, tmp_path / "0" / "some.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE numbers (number)")
    _disk(host).drive.begin(1, "full", host.world.now + 1)
    for sql in ("INSERT INTO numbers VALUES (1)", "CREATE TABLE others (number)"):
        with pytest.raises(sqlite3.OperationalError, match="full"):
            connection.execute(sql)
    with pytest.raises(sqlite3.OperationalError, match="full"):
        connection.executemany("INSERT INTO numbers VALUES (?)", [(1,), (2,)])
    connection.execute("CREATE TABLE IF NOT EXISTS numbers (number)")
    connection.execute("DELETE FROM numbers")
    for durable in (True, False):
        with pytest.raises(OSError, match="No space left"):
            replace_file(tmp_path / "0" / "note", "some", durable=durable, runtime=host.runtime)
    _disk(host).drive.mend(1)
    connection.execute("INSERT INTO numbers VALUES (3)")
    assert connection.execute("SELECT number FROM numbers").fetchall() == [(3,)]


def test_a_failing_sync_is_seen_by_a_connection_that_syncs(host: Host, tmp_path: Path) -> None:
    connection = databases.connect(host, tmp_path / "0" / "some.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE numbers (number)")
    _disk(host).drive.begin(1, "sync", host.world.now + 1)
    with pytest.raises(sqlite3.OperationalError, match="I/O"):
        connection.execute("INSERT INTO numbers VALUES (1)")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("INSERT INTO numbers VALUES (2)")
    assert connection.execute("SELECT number FROM numbers").fetchall() == [(2,)]


def test_the_end_of_one_trouble_leaves_another(host: Host) -> None:
    drive = _disk(host).drive
    drive.begin(1, "full", host.world.now + 1)
    drive.begin(2, "sync", host.world.now + 9)
    assert (_disk(host).trouble, drive.trouble_until) == ("full", host.world.now + 9)
    drive.mend(1)
    assert _disk(host).trouble == "sync"
    drive.mend(2)
    assert _disk(host).trouble == ""


@pytest.mark.parametrize("place", ["loop", "thread"])
@pytest.mark.parametrize(("phase", "left"), [("before", "old"), ("after", "new")])
def test_a_crash_comes_within_a_replacement(host: Host, tmp_path: Path, place: str, phase: str, left: str) -> None:
    path = tmp_path / "0" / "note"
    replace_file(path, "old", runtime=host.runtime)
    world, disk = host.world, _disk(host)
    disk.crash = lambda with_power: world.end(host, with_power)
    disk.drive.armed = ArmedCrash(phase, 1, True)  # the second fsync is that of the folder
    after = []

    def replaces() -> None:
        replace_file(path, "new", runtime=host.runtime)
        after.append("returned")

    async def on_the_loop() -> None:
        replaces()

    if place == "loop":
        host.start(on_the_loop())
    else:
        host.runtime.thread(replaces, "replaces").start()
    world.run(5)
    assert not after
    assert host not in world.hosts
    assert path.read_text() == "new"
    found = _after_power_losses(host, "note", tmp_path)
    assert found == ({"old", "new"} if phase == "before" else {left})


def test_an_fsync_stops_the_event_loop_and_is_a_complaint_while_others_wait_for_it(host: Host, tmp_path: Path) -> None:
    world, ticks = host.world, []

    async def writes() -> None:
        host.loop.call_later(1e-5, lambda: ticks.append(world.now))
        began = world.now
        replace_file(tmp_path / "0" / "note", "some", runtime=host.runtime)
        ticks.append(world.now - began)

    host.start(writes())
    world.run(5)
    assert 1e-4 < ticks[0] < 1, "the fsync took no time, or a timer ran meanwhile"
    assert not world.complaints
    host.is_serving = True
    host.start(writes())
    world.run(5)
    assert {each.kind for each in world.complaints} == {"blocking call"}


def test_a_crash_that_is_armed_before_a_start_comes_within_it(world: World, tmp_path: Path) -> None:
    server = SimServer(world, "spark", tmp_path, {}, 0.0)
    server.drive.armed = ArmedCrash("before", 1, False)
    server.start()
    first = server.host
    while server.lives == 0:
        assert not server.is_running, "it started without a commit or fsync"
        assert world.step(world.now + 10)
    assert server.host is not first
    assert world.run_until(lambda: server.is_running, 10)


def test_an_error_during_trouble_is_excused_only_if_it_tells_of_the_disk(host: Host) -> None:
    log = logging.Logger("test")
    log.addHandler(LogWatch(host.world))
    log.error("cannot write: No space left on device")
    _disk(host).drive.begin(1, "full", host.world.now + 1)
    log.error("cannot write: No space left on device")
    log.error("a bug")
    assert [each.text for each in host.world.complaints] == ["cannot write: No space left on device", "a bug"]
