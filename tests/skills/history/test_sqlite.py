"""What only the store in SQLite has: its file, its index, its plans, and others who have the file open."""

import sqlite3
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from culture.skills.history.sqlite import SQLiteStore, rows
from culture.skills.history.store import LATEST, Damaged, TooSlow, Unavailable, View
from culture.skills.history.words import query
from tests.skills.history.entries import PLACE, START, ask, entry, event, numbers, redaction, texts


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(tmp_path / "history.db")
    store.open()
    yield store
    store.close()


def change(store: SQLiteStore, sql: str) -> None:
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute(sql)


def answer(store: SQLiteStore, sql: str, *values: object) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        return connection.execute(sql, values).fetchall()


@pytest.mark.requirement("D13")
def test_the_file_is_for_its_owner_alone(kept: SQLiteStore) -> None:
    kept.write([entry(1)])
    for path in kept.path.parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_nothing_of_what_was_taken_back_is_in_the_file(kept: SQLiteStore) -> None:
    secret = "a-very-particular-secret"
    kept.write([entry(seq) for seq in range(10)] + [entry(20, secret, data=f'{{"tags":{{"x":"{secret}"}}}}')])
    kept.write([redaction(21, "spark.e1.20"), entry(22)])
    kept.close()
    assert secret.encode() not in kept.path.read_bytes()
    kept.open()


DAMAGE = {
    "an entry's place is gone": ("DELETE FROM places", "1 entries whose place is unknown"),
    "an entry's line is gone": ("DELETE FROM lines", "1 entries whose line is unknown"),
    "a message is not in the index": (
        "INSERT INTO words (words, rowid, text) SELECT 'delete', position, char(0xE000) || place || ' hello'"
        " FROM entries",
        "1 messages that no search finds",
    ),
    "a message was removed without its words": (
        "DELETE FROM entries",
        "1 messages in the index that are not there",
    ),
    "a message is in the index of another place": (
        "UPDATE entries SET place = 2",
        "1 messages that no search finds",
    ),
    "a message has other words": (
        "UPDATE entries SET text = 'hello you'",
        "the index has 2 words, the messages have 3",
    ),
    "a row of an index is missing": ("REINDEX", "the file: row 1 missing from index entries_by_id"),
}


@pytest.mark.parametrize(("sql", "problem"), DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_is_found(kept: SQLiteStore, sql: str, problem: str) -> None:
    kept.write([entry(1)])
    assert list(kept.verify()) == []
    if sql == "REINDEX":
        _lose_a_row_of_an_index(kept)
    else:
        change(kept, sql)
    assert problem in list(kept.verify())


def _lose_a_row_of_an_index(store: SQLiteStore) -> None:
    """Hide the index from a removal of the row, and put the row back with the index still hidden."""
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'entries_by_id'").fetchone()
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'entries_by_id'", (f"{sql} WHERE seq > 5",))
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute("REINDEX entries_by_id")
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'entries_by_id'", (sql,))


class TestOthersWithTheFileOpen:
    """The command line, while the server writes."""

    @pytest.fixture
    def other(self, kept: SQLiteStore) -> Iterator[SQLiteStore]:
        store = SQLiteStore(kept.path)
        store.open()
        yield store
        store.close()

    def test_both_write_in_the_same_microsecond(self, kept: SQLiteStore, other: SQLiteStore) -> None:
        kept.write([entry(1, at=START)])
        other.write([entry(2, at=START + 1), entry(3, at=START + 1)])
        kept.write([entry(4, at=START + 1), entry(5, at=START), entry(2, at=START + 1)])
        other.write([entry(6, at=START + 1)])
        assert numbers(ask(kept)) == [1, 5, 2, 3, 4, 6]
        assert list(kept.verify()) == []

    def test_one_moves_or_removes_what_the_other_knows(self, kept: SQLiteStore, other: SQLiteStore) -> None:
        kept.write([entry(1), entry(2, place="#other")])
        other.move(PLACE, "#other", "#other")
        other.prune("#other", LATEST)
        kept.write([entry(3), entry(4, place="#other")])
        assert numbers(ask(other)) == [3]
        assert numbers(ask(other, "#other")) == [4]
        assert list(kept.verify()) == []

    @pytest.mark.fault("B11")
    def test_while_one_holds_the_file_the_other_is_told(self, kept: SQLiteStore) -> None:
        kept.write([entry(1)])
        with closing(sqlite3.connect(kept.path, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable):
                kept.write([entry(2)])
            assert numbers(ask(kept)) == [1]
        kept.write([entry(2)])
        assert numbers(ask(kept)) == [1, 2]


def test_a_folder_that_is_none_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file")
    with pytest.raises(Unavailable):
        SQLiteStore(tmp_path / "folder" / "history.db").open()


def test_what_is_no_database_is_not_merely_unavailable(tmp_path: Path) -> None:
    (tmp_path / "history.db").write_bytes(b"something else entirely " * 100)
    with pytest.raises(Damaged, match="restore a backup"):
        SQLiteStore(tmp_path / "history.db").open()


class TestPlans:
    """Nothing is sorted, and nothing is read that is not asked for."""

    @pytest.fixture
    def plans(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """How SQLite answers what it is asked for positions."""
        found: list[str] = []
        ask = rows.positions

        def asked(connection: sqlite3.Connection, select: str, values: Sequence[str | int]) -> list[int]:
            found.extend(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {select}", values))
            return ask(connection, select, values)

        monkeypatch.setattr(rows, "positions", asked)
        return found

    @pytest.mark.parametrize("newest", [True, False])
    def test_a_page_is_answered_from_the_index_alone(self, kept: SQLiteStore, plans: list[str], newest: bool) -> None:
        kept.write([entry(1)])
        ask(kept, View(PLACE, ranks=("", "@"), closed_since=START), after=1, newest=newest)
        assert plans == [
            "SEARCH e USING COVERING INDEX entries_in_place (place=? AND sort=? AND position>? AND position<?)"
        ]

    @pytest.mark.parametrize("text", ["word", "two words", "c++"])
    def test_a_search_goes_by_the_words(self, kept: SQLiteStore, plans: list[str], text: str) -> None:
        kept.write([entry(1)])
        kept.search(View(PLACE), query(text), 10, 1.0)
        words, entries = plans
        assert words.startswith("SCAN w VIRTUAL TABLE INDEX")
        assert entries == "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)"

    def test_a_search_for_what_is_no_word_goes_through_the_place(self, kept: SQLiteStore, plans: list[str]) -> None:
        kept.write([entry(1)])
        kept.search(View(PLACE), query("->"), 10, 1.0)
        assert [plan.partition(" (")[0] for plan in plans] == ["SEARCH e USING INDEX entries_in_place"]

    def test_all_messages_come_in_their_order(self, kept: SQLiteStore, plans: list[str]) -> None:
        kept.write([entry(1)])
        kept.messages(0, 10)
        assert plans[0] == "SEARCH e USING INTEGER PRIMARY KEY (rowid>?)"
        assert not any("TEMP" in plan for plan in plans)


def test_what_is_removed_is_gone_from_the_index(kept: SQLiteStore) -> None:
    kept.write([entry(seq, f"word{seq} shared") for seq in range(100)])
    kept.prune(PLACE, LATEST)
    change(kept, "CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, row)")
    assert answer(kept, "SELECT * FROM vocabulary") == []


def test_late_ones_do_not_scatter_the_index(kept: SQLiteStore) -> None:
    kept.write([entry(10_000)])
    kept.write([entry(seq, "late") for seq in range(500, 0, -1)])
    (segments,) = answer(kept, "SELECT count(DISTINCT segid) FROM words_idx")[0]
    assert isinstance(segments, int)
    assert segments <= 2


def test_one_that_reads_while_it_is_closed_ends_well(kept: SQLiteStore) -> None:
    kept.write([entry(seq, "word +") for seq in range(2_000)])
    ended: list[object] = []
    begun = threading.Barrier(5)

    def read() -> None:
        begun.wait(10)
        try:
            while True:
                kept.search(View(PLACE), query("+"), 2_000, 10.0)
        except Exception as error:
            ended.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait(10)
    kept.close()
    for thread in threads:
        thread.join(30)
    assert [type(each) for each in ended] == [Unavailable] * 4
    assert not kept.path.with_name("history.db-wal").exists()
    kept.open()
    assert len(ask(kept, limit=5_000)) == 2_000


@pytest.mark.parametrize("change", ["taken back", "removed"])
def test_what_is_read_is_of_one_moment(kept: SQLiteStore, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    kept.write([entry(1, "a + b")])
    look = rows.positions

    def interrupted(connection: sqlite3.Connection, select: str, values: Sequence[str | int]) -> list[int]:
        found = look(connection, select, values)
        monkeypatch.setattr(rows, "positions", look)
        if change == "removed":
            kept.prune(PLACE, LATEST)
        else:
            kept.write([redaction(2, "spark.e1.1")])
        return found

    for ask_for in (lambda: ask(kept), lambda: kept.search(View(PLACE), query("a +"), 10, 1.0)):
        monkeypatch.setattr(rows, "positions", interrupted)
        assert texts(ask_for()) == ["a + b"]
        assert texts(ask_for()) == []
        kept.prune(PLACE, LATEST)
        kept.write([entry(1, "a + b")])


@pytest.mark.fault("B19")
def test_after_a_search_was_given_up_others_take_their_time(kept: SQLiteStore) -> None:
    kept.write([entry(seq, "word +") for seq in range(5_000)])
    for _ in range(3):
        with pytest.raises(TooSlow):
            kept.search(View(PLACE), query("-"), 10, 0.0)
        assert len(ask(kept, limit=5_000)) == 5_000


def test_a_stale_word_does_not_show_what_was_taken_back(kept: SQLiteStore) -> None:
    kept.write([entry(1, "hello"), event(2), redaction(3, "spark.e1.1")])
    change(kept, "INSERT INTO words (rowid, text) SELECT position, char(0xE000) || place || ' hello' FROM entries")
    assert texts(kept.search(View(PLACE), query("hello"), 10, 1.0)) == []
