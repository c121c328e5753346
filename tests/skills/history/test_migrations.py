"""A file of any earlier version is opened by this one, with all that is in it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from culture.server.database import TooNew, version
from culture.skills.history.sqlite import SQLiteStore
from culture.skills.history.sqlite.schema import STEPS
from culture.skills.history.store import Arrival, Gap, View, position_at
from culture.skills.history.words import query
from tests.skills.history.entries import PLACE, START, ask, entry, numbers, redaction, texts

# The first schema and rows of it, as they were. Never changed: files like this are out there.
FIRST = """
CREATE TABLE places (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    one TEXT NOT NULL DEFAULT '',
    other TEXT NOT NULL DEFAULT '',
    one_nick TEXT NOT NULL DEFAULT '',
    other_nick TEXT NOT NULL DEFAULT ''
);
CREATE INDEX places_of_one ON places (one) WHERE one <> '';
CREATE INDEX places_of_other ON places (other) WHERE other <> '';
CREATE TABLE lines (
    id INTEGER PRIMARY KEY,
    origin TEXT NOT NULL,
    epoch TEXT NOT NULL,
    UNIQUE (origin, epoch)
);
CREATE TABLE entries (
    position INTEGER PRIMARY KEY,
    place INTEGER NOT NULL,
    sort INTEGER NOT NULL,
    line INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    verb TEXT NOT NULL,
    source TEXT NOT NULL,
    account TEXT,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    target TEXT NOT NULL,
    status TEXT NOT NULL,
    closed INTEGER NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX entries_in_place ON entries (place, sort, position, closed, status);
CREATE UNIQUE INDEX entries_by_id ON entries (line, seq, place);
CREATE VIRTUAL TABLE words USING fts5(text, content='', columnsize=0, detail=none, tokenize='ascii');
INSERT INTO places VALUES (1, '#general', '#General', '', '', '', '');
INSERT INTO places VALUES (2, 'a:ada n:cyd', '', 'a:ada', 'n:cyd', 'ada', 'Cyd');
INSERT INTO lines VALUES (1, 'spark', 'e1');
INSERT INTO entries VALUES
    (1792000000000000000, 1, 0, 1, 1, 'PRIVMSG', 'ada!a@here', 'ada', '', 'C++ and 日本', '#General', '', 0, ''),
    (1792000000000000001, 1, 1, 1, 2, 'JOIN', 'cyd!c@there', NULL, '', 'Cyd', '#General', '', 0, ''),
    (1792000000000001024, 2, 0, 1, 3, 'PRIVMSG', 'ada!a@here', 'ada', '', 'hush', 'Cyd', '', 0, ''),
    (1792000000000002048, 1, 2, 1, 4, '', '', NULL, '', '', '#General', '', 0, '');
INSERT INTO words (rowid, text) VALUES
    (1792000000000000000, char(0xE000) || '1 c and 日 本 日本'),
    (1792000000000001024, char(0xE000) || '2 hush');
PRAGMA user_version = 1;
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "history.db"
    connection = sqlite3.connect(path)
    connection.executescript(FIRST)
    connection.close()
    return path


def schema(path: Path) -> list[tuple[str, str]]:
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()
    connection.close()
    return [(name, " ".join(sql.split())) for name, sql in found]


@pytest.mark.requirement("D13")
def test_the_first_schema_becomes_the_newest(path: Path, tmp_path: Path) -> None:
    store = SQLiteStore(path)
    store.open()
    assert list(store.verify()) == []
    assert texts(ask(store)) == ["C++ and 日本"]
    assert numbers(ask(store, View(PLACE, events=True))) == [1, 2]
    assert texts(store.search(View(PLACE), query("c++ 日本"), 10, 1.0)) == ["C++ and 日本"]
    assert [talk.name for talk in store.talks("a:ada", 0, [], 0, START * 2)] == ["Cyd"]
    assert [each.name for each in store.stats()] == ["#General", "*"]
    assert store.position(PLACE, "spark.e1.1") == position_at(START)
    assert [each.kept.entry.seq for each in store.missed([View(PLACE), View("a:ada n:cyd")], Arrival(-1), 10)] == [1, 3]
    store.write([entry(1), entry(4, "taken back"), entry(5, "new"), redaction(6, "spark.e1.1")])
    store.note_gap(START, START + 1, 7)
    assert texts(ask(store)) == ["new"]
    assert store.search(View(PLACE), query("c++"), 10, 1.0) == []
    assert store.gaps() == [Gap(START, START + 1, 7)]
    assert list(store.verify()) == []
    store.close()
    fresh = SQLiteStore(tmp_path / "fresh.db")
    fresh.open()
    fresh.close()
    assert schema(path) == schema(fresh.path)


def test_messages_that_were_indexed_with_invisible_characters_are_found_and_can_be_taken_back(path: Path) -> None:
    connection = sqlite3.connect(path)
    before = {5: ("re\u200bsume", "re sume"), 6: ("\x1b[1mbold\x02 é", "1mbold e"), 7: ("a\x1b[2Jb", "a [2Jb")}
    for seq, (said, words) in before.items():
        position = 1792000000000000000 + 1024 * seq
        row = (position, 1, 0, 1, seq, "PRIVMSG", "ada!a@here", "ada", "", said, "#General", "", 0, "")
        connection.execute(f"INSERT INTO entries VALUES ({','.join('?' * len(row))})", row)
        connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (position, f"\ue0001 {words}"))
    connection.commit()
    connection.close()
    store = SQLiteStore(path)
    store.open()
    assert texts(store.search(View(PLACE), query("resume"), 10, 1.0)) == ["re\u200bsume"]
    assert texts(store.search(View(PLACE), query("bold"), 10, 1.0)) == ["\x1b[1mbold\x02 é"]
    assert list(store.verify()) == []
    store.write([redaction(8 + seq, f"spark.e1.{seq}") for seq in before])
    assert store.search(View(PLACE), query("resume"), 10, 1.0) == []
    assert list(store.verify()) == []
    store.close()


def test_what_was_migrated_is_not_migrated_again(path: Path) -> None:
    for _ in range(2):
        store = SQLiteStore(path)
        store.open()
        store.note_gap(START, START, 1)
        store.close()
    store.open()
    assert len(store.gaps()) == 2
    store.close()


def test_a_file_of_a_newer_version_is_left_alone(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {len(STEPS) + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(TooNew):
        SQLiteStore(path).open()
    assert path.read_bytes()[100:] == before[100:]
    with closing(sqlite3.connect(path)) as connection:
        assert version(connection) == len(STEPS) + 1
