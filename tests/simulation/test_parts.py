"""The simulator itself: crashes at a known point, power losses, cuts, threads, shrinking."""

import asyncio
import gc
import socket
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from culture.runtime import Runtime
from tests.simulation import databases
from tests.simulation.disk import Disk
from tests.simulation.shrinking import smallest
from tests.simulation.sockets import SimSocket
from tests.simulation.threads import BlockingCall, SimThread, calling_thread
from tests.simulation.world import Host, World


@pytest.fixture
def world() -> Iterator[World]:
    world = World("test")
    yield world
    world.close()


def _host(world: World, folder: Path) -> Host:
    host = world.boot(world.machine("spark"), Disk(folder))
    world.host = host
    return host


def _connect(host: Host, path: Path, level: str) -> sqlite3.Connection:
    connection = databases.connect(host, path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={level}")
    return connection


def _insert(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO numbers VALUES (?, ?)", (number, "x" * 3000))
    connection.execute("COMMIT")


def _after_power_loss(host: Host, world: World, target: Path) -> list[int]:
    assert host.disk is not None
    host.disk.copy(target, with_power=True, chance=world.chance)
    with sqlite3.connect(target / "some.db") as connection:
        return [number for (number,) in connection.execute("SELECT number FROM numbers ORDER BY number")]


@pytest.mark.parametrize("pages", [4, 1000])
def test_a_power_loss_leaves_each_commit_that_was_synced(world: World, tmp_path: Path, pages: int) -> None:
    host = _host(world, tmp_path / "0")
    connection = _connect(host, tmp_path / "0" / "some.db", "FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint={pages}")
    connection.execute("CREATE TABLE numbers (number, text)")
    for number in range(12):
        _insert(connection, number)
        assert _after_power_loss(host, world, tmp_path / f"after{number}") == list(range(number + 1))


def test_a_power_loss_may_take_commits_that_were_not_synced(world: World, tmp_path: Path) -> None:
    host = _host(world, tmp_path / "0")
    connection = _connect(host, tmp_path / "0" / "some.db", "FULL")
    connection.execute("PRAGMA wal_autocheckpoint=1000")
    connection.execute("CREATE TABLE numbers (number, text)")
    connection.execute("PRAGMA synchronous=NORMAL")
    for number in range(8):
        _insert(connection, number)
    left = [_after_power_loss(host, world, tmp_path / str(run)) for run in range(1, 20)]
    assert all(numbers == list(range(len(numbers))) for numbers in left), "a later commit without an earlier one"
    assert [] in left
    assert len({len(numbers) for numbers in left}) > 2, "a torn tail never kept anything"


def test_a_kill_leaves_all_that_was_written(world: World, tmp_path: Path) -> None:
    host = _host(world, tmp_path / "0")
    (tmp_path / "0" / "note").write_text("not synced")
    assert host.disk is not None
    host.disk.copy(tmp_path / "1", with_power=False, chance=world.chance)
    assert (tmp_path / "1" / "note").read_text() == "not synced"


def test_a_name_without_a_synced_folder_may_be_gone_and_never_leads_to_other_contents(
    world: World, tmp_path: Path
) -> None:
    host = _host(world, tmp_path / "0")
    path = tmp_path / "0" / "note"
    with path.open("w") as file:
        file.write("whole")
        file.flush()
        host.runtime.fsync(file.fileno())
    assert host.disk is not None
    found = set()
    for run in range(1, 20):
        host.disk.copy(tmp_path / str(run), with_power=True, chance=world.chance)
        copy = tmp_path / str(run) / "note"
        found.add(copy.read_text() if copy.exists() else None)
    assert found == {"whole", None}


def test_a_full_disk_refuses_a_commit_and_keeps_nothing_of_it(world: World, tmp_path: Path) -> None:
    host = _host(world, tmp_path / "0")
    connection = _connect(host, tmp_path / "0" / "some.db", "FULL")
    connection.execute("CREATE TABLE numbers (number, text)")
    assert host.disk is not None
    host.disk.drive.begin(0, "full", world.now + 1)
    with pytest.raises(sqlite3.OperationalError, match="full") as raised:
        _insert(connection, 1)
    assert raised.value.sqlite_errorcode == sqlite3.SQLITE_FULL
    host.disk.drive.mend(0)
    assert connection.execute("SELECT count(*) FROM numbers").fetchone() == (0,)


def test_a_one_way_cut_holds_back_one_direction_and_its_acknowledgements(world: World) -> None:
    hosts = [world.boot(world.machine(name)) for name in ("spark", "thor")]
    for name in ("spark", "thor"):
        world.network.address_of(name)
    one, other = SimSocket(hosts[0]), SimSocket(hosts[1])
    one.join(other)
    world.network.cut("spark", "thor")
    one.send(b"there")
    other.send(b"back")
    world.run(5)
    assert bytes(other.received) == b""
    assert bytes(one.received) == b"back"
    assert other.flow is not None and other.flow.unacknowledged == 4
    world.network.resume()  # something else was mended
    world.run(5)
    assert other.flow.unacknowledged == 4
    world.network.mend("spark", "thor")
    world.run(5)
    assert bytes(other.received) == b"there"
    assert other.flow.unacknowledged == 0


def test_a_blocking_call_on_the_thread_of_the_loop_is_a_complaint(world: World, tmp_path: Path) -> None:
    host = _host(world, tmp_path / "0")
    with pytest.raises(BlockingCall):
        host.runtime.event().wait(1.0)
    assert [each.kind for each in world.complaints] == ["blocking call"]


def test_threads_wait_in_virtual_time(world: World, tmp_path: Path) -> None:
    host = _host(world, tmp_path / "0")
    event, seen = host.runtime.event(), []

    def waits() -> None:
        seen.append(event.wait(5.0))
        host.runtime.sleep(3600.0)
        seen.append(event.wait(5.0))

    host.runtime.thread(waits, "waits").start()
    world.run(10)
    assert seen == [False]
    event.set()
    world.run(3600)
    assert seen == [False, True]


def test_a_late_wake_up_does_not_cut_a_wait_short(world: World, tmp_path: Path) -> None:
    host = _host(world, tmp_path / "0")
    event, ended = host.runtime.event(), []

    def waits() -> None:
        event.wait(1.0)
        calling_thread(host, "test").wait(5.0)
        ended.append(world.now)

    thread = SimThread(host, waits, "waits")
    thread.start()
    world.run(2)
    began = world.now
    thread.resume()  # as by an event whose wait had ended already
    assert not ended
    world.run(10)
    assert ended and 3 < ended[0] - began < 5


def test_a_lock_that_was_not_got_in_time_is_forgotten(world: World, tmp_path: Path) -> None:
    host = _host(world, tmp_path / "0")
    lock, got = host.runtime.lock(), []

    def holds() -> None:
        with lock:
            host.runtime.sleep(10.0)

    def tries(timeout: float) -> None:
        host.runtime.sleep(1.0)
        got.append((timeout, lock.acquire(timeout=timeout)))
        host.runtime.sleep(60.0)

    host.runtime.thread(holds, "holds").start()
    host.runtime.thread(tries, "impatient", 2.0).start()
    host.runtime.thread(tries, "patient", 20.0).start()
    world.run(5)
    assert got == [(2.0, False)]
    assert len(lock._waiting) == 1  # type: ignore[attr-defined]
    world.run(10)
    assert got == [(2.0, False), (20.0, True)]
    with pytest.raises(RuntimeError):
        host.runtime.lock().release()


def test_the_end_of_a_pool_waits_for_its_work(world: World, tmp_path: Path) -> None:
    host = _host(world, tmp_path / "0")
    pool, seen = host.runtime.pool(1, "pool"), []
    for seconds in (5.0, 7.0):
        pool.submit(lambda seconds=seconds: (host.runtime.sleep(seconds), seen.append(seconds)))

    def ends() -> None:
        host.runtime.sleep(1.0)
        pool.shutdown(wait=True, cancel_futures=True)
        seen.append(0.0)

    host.runtime.thread(ends, "ends").start()
    world.run(60)
    assert seen == [5.0, 0.0]


def test_each_member_of_the_runtime_is_simulated(world: World, tmp_path: Path) -> None:
    runtime = _host(world, tmp_path / "0").runtime
    members = {name for name in {**vars(Runtime), **Runtime.__annotations__} if not name.startswith("_")}
    assert len(members) > 20
    assert members <= vars(runtime).keys() | vars(type(runtime)).keys()


def test_a_socket_is_hung_up_once_both_directions_are_closed(world: World) -> None:
    hosts = [world.boot(world.machine(name)) for name in ("spark", "thor")]
    for name in ("spark", "thor"):
        world.network.address_of(name)
    one, other = SimSocket(hosts[0]), SimSocket(hosts[1])
    one.join(other)
    assert not hosts[0].runtime.is_hung_up(one)
    other.close()
    world.run(1)
    assert not hosts[0].runtime.is_hung_up(one)
    one.shutdown(socket.SHUT_WR)
    assert hosts[0].runtime.is_hung_up(one)


def test_the_exception_of_a_task_that_nobody_awaits_is_a_complaint(world: World, tmp_path: Path) -> None:
    host = _host(world, tmp_path / "0")

    async def fails() -> None:
        raise ValueError("lost")

    async def begins() -> None:
        cycle: list[object] = [asyncio.create_task(fails())]
        cycle.append(cycle)

    gc.disable()
    host.start(begins())
    world.run(1)
    assert not world.complaints
    world.collect()
    gc.enable()
    assert "lost" in world.complaints[0].text


def test_the_smallest_list_that_fails_is_found() -> None:
    tried: list[Sequence[int]] = []

    def fails(numbers: Sequence[int]) -> bool:
        tried.append(numbers)
        return {3, 11} <= set(numbers)

    assert smallest(range(20), fails) == (3, 11)
    assert len(tried) < 60
