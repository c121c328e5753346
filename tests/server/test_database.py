"""SQLite files: durable, private, and brought to the newest schema all at once or not at all."""

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.server.database import TooNew, migrate, open_database, open_reader, pieces, transaction, version
from tests.support.waiting import PATIENCE

FIRST = "CREATE TABLE messages (id INTEGER PRIMARY KEY, text TEXT NOT NULL); CREATE INDEX texts ON messages (text)"
SECOND = "ALTER TABLE messages ADD COLUMN nick TEXT NOT NULL DEFAULT ''"
TRIGGER = """
    CREATE TRIGGER counted AFTER INSERT ON messages BEGIN
        UPDATE counts SET number = number + 1;
        UPDATE counts SET last = new.text || ';';
    END
"""


def third(connection: sqlite3.Connection) -> None:
    """A step that SQL alone does not make."""
    for number, text in connection.execute("SELECT id, text FROM messages").fetchall():
        connection.execute("UPDATE messages SET text = ? WHERE id = ?", (text.upper(), number))


def broken(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM messages")
    raise RuntimeError("in the middle")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of the first schema with a message in it."""
    path = tmp_path / "deep" / "history.db"
    with closing(open_database(path, [FIRST])) as connection:
        connection.execute("INSERT INTO messages (text) VALUES ('hello')")
    return path


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(open_reader(path)) as connection:
        return connection.execute(query).fetchall()


def columns(path: Path) -> list[object]:
    return [row[1] for row in rows(path, "PRAGMA table_info(messages)")]


def pragma(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def test_a_commit_is_on_disk_when_it_returns(file: Path) -> None:
    with closing(open_database(file, [FIRST])) as connection:
        assert pragma(connection, "journal_mode") == "wal"
        assert pragma(connection, "synchronous") == 2, "FULL"
        assert pragma(connection, "foreign_keys") == 1
        assert connection.isolation_level is None


def test_the_file_and_its_log_are_the_owners_alone(file: Path) -> None:
    with closing(open_database(file, [FIRST])) as connection:
        connection.execute("INSERT INTO messages (text) VALUES ('again')")
        made = {each.name: each.stat().st_mode & 0o777 for each in file.parent.iterdir()}
    assert made == {"history.db": 0o600, "history.db-wal": 0o600, "history.db-shm": 0o600}
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_a_symlink_is_refused(file: Path) -> None:
    link = file.parent / "link.db"
    link.symlink_to(file)
    with pytest.raises(OSError, match="symbolic link"):
        open_database(link, [FIRST])


def test_a_new_file_and_an_old_one_end_up_the_same(file: Path, tmp_path: Path) -> None:
    steps = [FIRST, SECOND, third]
    fresh = tmp_path / "fresh.db"
    for path in (file, fresh):
        with closing(open_database(path, steps)) as connection:
            assert version(connection) == 3
    schema = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
    assert rows(file, schema) == rows(fresh, schema)
    assert rows(file, "SELECT text, nick FROM messages") == [("HELLO", "")]


def test_each_step_is_made_once(file: Path) -> None:
    made: list[str] = []
    for _ in range(2):
        open_database(file, [FIRST, lambda _: made.append("second")]).close()
    assert made == ["second"]


def test_a_step_that_fails_leaves_the_file_as_it_was(file: Path) -> None:
    with pytest.raises(RuntimeError, match="in the middle"):
        open_database(file, [FIRST, SECOND, broken])
    assert columns(file) == ["id", "text"]
    assert rows(file, "SELECT text FROM messages") == [("hello",)]
    assert rows(file, "PRAGMA user_version") == [(1,)]
    with closing(open_database(file, [FIRST, SECOND])) as connection:
        assert version(connection) == 2


def test_a_file_of_a_newer_program_is_not_touched(file: Path) -> None:
    open_database(file, [FIRST, SECOND]).close()
    before = file.read_bytes()
    with pytest.raises(TooNew, match="schema 2, and this program knows 1: use the newer version"):
        open_database(file, [FIRST])
    assert file.read_bytes() == before


def test_a_step_may_have_statements_within_statements_and_semicolons_in_text(file: Path) -> None:
    counts = "CREATE TABLE counts (number INTEGER, last TEXT); INSERT INTO counts VALUES (0, ';')"
    with closing(open_database(file, [FIRST, counts, TRIGGER])) as connection:
        connection.execute("INSERT INTO messages (text) VALUES ('one')")
    assert rows(file, "SELECT number, last FROM counts") == [(1, "one;")]


@pytest.mark.parametrize("step", ["CREATE TABLE", "CREATE TABLE a (b", "SELECT 'no end"])
def test_a_statement_without_an_end_is_an_error(file: Path, step: str) -> None:
    with pytest.raises(sqlite3.Error):
        open_database(file, [FIRST, step])
    assert rows(file, "PRAGMA user_version") == [(1,)]


def test_two_who_migrate_at_once_do_it_once(file: Path) -> None:
    """The second has seen the old schema, waits for its turn, and finds the work done."""
    made: list[str] = []
    with closing(open_database(file, [FIRST], busy=10.0)) as second, ThreadPoolExecutor(1) as pool:
        looked = threading.Event()
        second.set_trace_callback(lambda statement: looked.set() if "BEGIN" in statement else None)
        waiting = []

        def slow(_: sqlite3.Connection) -> None:
            made.append("first")
            waiting.append(pool.submit(migrate, second, [FIRST, lambda _: made.append("second")]))
            assert looked.wait(PATIENCE)

        open_database(file, [FIRST, slow]).close()
        waiting[0].result(PATIENCE)
        assert version(second) == 2
    assert made == ["first"]


def test_a_reader_writes_nothing(file: Path) -> None:
    with closing(open_reader(file)) as connection, pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM messages")


@pytest.fixture
def writer(file: Path) -> Iterator[sqlite3.Connection]:
    """Somebody in the middle of a change."""
    with closing(open_database(file, [FIRST])) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO messages (text) VALUES ('unfinished')")
        yield connection
        connection.execute("ROLLBACK")


def test_readers_are_not_held_up_and_see_what_is_committed(file: Path, writer: sqlite3.Connection) -> None:
    assert rows(file, "SELECT text FROM messages") == [("hello",)]


def test_a_second_writer_is_told(file: Path, writer: sqlite3.Connection) -> None:
    with (
        closing(open_database(file, [FIRST], busy=0.01)) as second,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        second.execute("BEGIN IMMEDIATE")


@given(st.integers(0, 5_000))
def test_rows_go_in_their_order_and_in_few_pieces_of_few_sizes(count: int) -> None:
    some = list(pieces(range(count)))
    assert [row for piece in some for row in piece] == list(range(count))
    assert {len(piece) for piece in some} <= {1 << bit for bit in range(10)}
    assert len(some) <= count // 512 + 9


def test_a_further_connection_does_not_let_others_take_the_files_away(tmp_path: Path) -> None:
    """POSIX drops all locks of a process on a file with any descriptor of it that the process closes."""
    path = tmp_path / "a.db"
    steps = ("CREATE TABLE t (a)",)
    with closing(open_database(path, steps)) as first:
        open_database(path, steps).close()
        program = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM t'); c.close()"
        subprocess.run([sys.executable, "-c", program, str(path)], check=True)
        with transaction(first):
            first.execute("INSERT INTO t VALUES (1)")
        assert (tmp_path / "a.db-wal").stat().st_size
