"""The store in PostgreSQL: several servers at once, a database that goes and comes, and who is not let in."""

import asyncio
import importlib.util
import json
import logging
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import pytest

from culture.config.installation import installation
from culture.config.skills import Embeddings, HistoryConfig
from culture.server.database import TooNew
from culture.skills.history.entry import Entry
from culture.skills.history.postgres import PostgresStore, connections, driver, searching
from culture.skills.history.postgres.address import shown
from culture.skills.history.postgres.schema import STEPS, Step, migrate
from culture.skills.history.store import Misconfigured, Unavailable, View
from culture.skills.history.words import query
from tests.skills.history.entries import PLACE, START, ask, entry, event, numbers, private, redaction, texts
from tests.support.client import registered
from tests.support.postgres import Postgres, postgres
from tests.support.servers import serving
from tests.support.waiting import PATIENCE

PASSWORD = "s3cret-Pa/ss"


@pytest.fixture(scope="module")
def server() -> Postgres:
    return postgres()


@pytest.fixture
def database(server: Postgres) -> Iterator[str]:
    with server.database() as name:
        yield name


@contextmanager
def opened(url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(url)
    store.open()
    try:
        yield store
    finally:
        store.close()


@pytest.fixture
def pair(server: Postgres, database: str) -> Iterator[tuple[PostgresStore, PostgresStore]]:
    """Two servers' stores, which are one."""
    with opened(server.url(database)) as one, opened(server.url(database)) as other:
        yield one, other


def together(*acts: Callable[[], object]) -> None:
    """Do all of it at once."""
    wrong: list[BaseException] = []
    start = threading.Barrier(len(acts))

    def run(act: Callable[[], object]) -> None:
        try:
            start.wait(PATIENCE)
            act()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not wrong and not any(thread.is_alive() for thread in threads)


class TestSeveralServers:
    """One history, written by more than one."""

    def test_what_both_heard_is_there_once(self, pair: tuple[PostgresStore, PostgresStore]) -> None:
        one, other = pair
        heard = [entry(seq) for seq in range(50)]
        one.write([*heard, entry(1, "of one", at=START, origin="one")])
        other.write([*heard, entry(1, "of the other", at=START, origin="other")])
        assert ask(one) == ask(other)
        assert sorted(texts(ask(one))[:3]) == ["hello", "of one", "of the other"]
        assert len(ask(one)) == 52

    def test_they_write_at_once_and_nothing_is_lost(self, pair: tuple[PostgresStore, PostgresStore]) -> None:
        """Few times and many entries, so that they want the same positions; each hears all in its own order."""
        said = [entry(seq, at=START + seq % 7, place=f"#room{seq % 5}") for seq in range(600)]
        said += [private(600 + seq, "x", ("ada", f"ada{seq}"), ("ben", f"ben{seq % 3}")) for seq in range(60)]
        said += [redaction(700 + seq, f"spark.e1.{seq}", place=f"#room{seq % 5}") for seq in range(0, 100, 10)]

        def write(store: PostgresStore, order: int) -> None:
            shuffled = random.Random(order).sample(said, len(said))
            for start in range(0, len(shuffled), 37):
                store.write(shuffled[start : start + 37])

        together(*(lambda store=store, order=order: write(store, order) for order, store in enumerate(pair * 2)))
        kept = list(pair[0].everything())
        assert sorted((each.entry.place, each.entry.seq) for each in kept) == sorted((e.place, e.seq) for e in said)
        assert len({each.position for each in kept}) == len(said)
        assert len([each for each in kept if each.entry.text == "hello"]) == 590
        assert list(pair[1].verify()) == []

    def test_a_message_and_its_redaction_meet(self, pair: tuple[PostgresStore, PostgresStore]) -> None:
        one, other = pair
        for seq in range(0, 60, 2):
            together(
                lambda: one.write([entry(seq, "a secret")]),  # noqa: B023
                lambda: other.write([redaction(seq + 1, f"spark.e1.{seq}")]),  # noqa: B023
            )
        assert ask(one) == []
        assert "secret" not in json.dumps([each.entry for each in other.everything()])

    def test_one_learns_that_the_other_moved_a_channel(self, pair: tuple[PostgresStore, PostgresStore]) -> None:
        one, other = pair
        one.write([entry(1, "apples")])
        other.write([entry(2, "pears")])
        one.move(PLACE, "#new", "#New")
        other.write([entry(3, "plums", place="#new"), entry(4, "figs")])
        assert texts(ask(one, "#new")) == ["apples", "pears", "plums"]
        assert texts(ask(one)) == ["figs"]

    def test_they_start_at_once(self, server: Postgres, database: str) -> None:
        stores = [PostgresStore(server.url(database)) for _ in range(4)]
        try:
            together(*(store.open for store in stores))
            together(*(lambda store=store: store.write([entry(1)]) for store in stores))
            assert [numbers(ask(store)) for store in stores] == [[1]] * 4
        finally:
            for store in stores:
                store.close()

    def test_one_that_hangs_holds_the_others_up_for_a_while(
        self, server: Postgres, database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(connections._WRITER, "lock_timeout", "100ms")
        monkeypatch.setitem(connections._WRITER, "idle_in_transaction_session_timeout", "500ms")
        hangs, asked = threading.Event(), threading.Event()
        with opened(server.url(database)) as one, opened(server.url(database)) as other:

            async def hang(connection: driver.Connection) -> None:
                hangs.set()
                asked.wait(PATIENCE)  # and with it all that this server does with the database

            thread = threading.Thread(target=lambda: one._change(hang))
            thread.start()
            assert hangs.wait(PATIENCE)
            with pytest.raises(Unavailable, match="lock timeout"):
                other.write([entry(1)])
            asked.set()
            thread.join(PATIENCE)
            other.write([entry(1)])
            assert numbers(ask(other)) == [1]


class TestComesAndGoes:
    """The database is not always to be had."""

    def test_it_is_restarted(self, server: Postgres, database: str) -> None:
        with opened(server.url(database)) as store:
            store.write([entry(1)])
            assert numbers(ask(store)) == [1]
            server.kill()
            for _ in range(2):
                with pytest.raises(Unavailable):
                    store.write([entry(2)])
                with pytest.raises(Unavailable):
                    ask(store)
            server.start()
            store.write([entry(2)])
            assert numbers(ask(store)) == [1, 2]
            assert list(store.verify()) == []

    def test_it_goes_while_everything_is_read(self, server: Postgres, database: str) -> None:
        with opened(server.url(database)) as store:
            store.write([entry(seq) for seq in range(3_000)])
            reading = store.everything()
            next(reading)
            server.kill()
            with pytest.raises(Unavailable):
                list(reading)
            server.start()
            assert len(list(store.everything())) == 3_000

    def test_it_comes_later_than_we_do(self, server: Postgres, database: str) -> None:
        server.kill()
        store = PostgresStore(server.url(database))
        for _ in range(2):
            with pytest.raises(Unavailable, match=r"127\.0\.0\.1"):
                store.open()
        server.start()
        store.open()
        store.write([entry(1)])
        assert numbers(ask(store)) == [1]
        store.close()

    def test_what_a_killed_database_had_said_yes_to_is_there(self, server: Postgres, database: str) -> None:
        with opened(server.url(database)) as store:
            written: list[int] = []

            def write() -> None:
                for seq in range(100_000):
                    try:
                        store.write([entry(seq), entry(seq, place="#other")])
                    except Unavailable:
                        return
                    written.append(seq)
                    if len(written) == 50:
                        half.set()

            half = threading.Event()
            thread = threading.Thread(target=write)
            thread.start()
            assert half.wait(PATIENCE)
            server.kill()
            thread.join(PATIENCE)
            server.start()
            kept = numbers(ask(store, limit=100_000))
            assert kept[: len(written)] == written
            assert len(kept) - len(written) <= 1
            assert numbers(ask(store, "#other", limit=100_000)) == kept
            assert list(store.verify()) == []

    @pytest.mark.parametrize("code", ["53100", "53200", "58030", "57P01", "40001"])
    def test_it_has_no_room(self, server: Postgres, database: str, code: str) -> None:
        """Its disk is full, its memory is, its disk fails, it is being stopped, it wants us to begin again."""
        with opened(server.url(database)) as store:
            store.write([entry(1)])
            server.sql(
                database,
                "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
                f" $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '{code}'; END $$;"
                "CREATE TRIGGER full_disk BEFORE INSERT ON history_entries EXECUTE FUNCTION full_disk()",
            )
            with pytest.raises(Unavailable, match="no room"):
                store.write([entry(2, place="#new")])
            assert not store.exists("#new")
            server.sql(database, "DROP TRIGGER full_disk ON history_entries")
            store.write([entry(2)])
            assert numbers(ask(store)) == [1, 2]

    def test_it_has_no_connection_left(self, server: Postgres, database: str) -> None:
        server.sql(database, "DROP ROLE IF EXISTS crowd")
        server.sql(database, "CREATE ROLE crowd LOGIN CONNECTION LIMIT 1; GRANT ALL ON SCHEMA public TO crowd")
        try:
            with opened(server.url(database, "crowd")) as one:
                with pytest.raises(Unavailable, match="too many connections"):
                    PostgresStore(server.url(database, "crowd")).open()
                one.write([entry(1)])
                with pytest.raises(Unavailable):
                    ask(one)
                server.sql(database, "ALTER ROLE crowd CONNECTION LIMIT 10")
                assert numbers(ask(one)) == [1]
        finally:
            server.sql(database, "DROP OWNED BY crowd; DROP ROLE crowd")

    def test_it_forgets_us_and_its_tables_for_a_while(self, server: Postgres, database: str) -> None:
        """What would be refused at the start is waited for later: nothing that was said meanwhile is lost."""
        with opened(server.url(database)) as store:
            store.write([entry(1)])
            server.sql(database, "ALTER TABLE history_entries RENAME TO aside")
            with pytest.raises(Unavailable, match="history_entries"):
                store.write([entry(2)])
            server.sql(database, "ALTER TABLE aside RENAME TO history_entries")
            store.write([entry(2)])
            server.kill()
            server.start()
            server.sql("postgres", f"ALTER DATABASE {database} RENAME TO elsewhere")
            with pytest.raises(Unavailable, match="does not exist"):
                store.write([entry(3)])
            server.sql("postgres", f"ALTER DATABASE elsewhere RENAME TO {database}")
            store.write([entry(3)])
            assert numbers(ask(store)) == [1, 2, 3]

    def test_it_may_only_be_read(self, server: Postgres, database: str) -> None:
        with opened(server.url(database)) as store:
            store.write([entry(1)])
        server.sql("postgres", f"ALTER DATABASE {database} SET default_transaction_read_only = on")
        with opened(server.url(database)) as store:
            with pytest.raises(Unavailable, match="read-only"):
                store.write([entry(2)])
            assert numbers(ask(store)) == [1]
        with pytest.raises(Unavailable):
            PostgresStore(f"{server.url(database)}?target_session_attrs=read-write").open()

    def test_the_one_that_takes_writing_is_read_too(self, server: Postgres, database: str) -> None:
        hosts = f"127.0.0.1:1,127.0.0.1:{server.port}"
        with opened(f"postgresql://culture@{hosts}/{database}?target_session_attrs=read-write") as store:
            store.write([entry(1)])
            assert numbers(ask(store)) == [1]

    def test_every_commit_is_on_disk(self, server: Postgres, database: str) -> None:
        server.sql("postgres", f"ALTER DATABASE {database} SET synchronous_commit = off")
        with opened(server.url(database)) as store:
            assert store._change(lambda connection: connection.fetchval("SHOW synchronous_commit")) == "on"


class TestLetIn:
    """Who may use which database; a password is shown to nobody."""

    @pytest.fixture
    def keyed(self, server: Postgres, database: str) -> Iterator[str]:
        """Somebody with a password, whose database it is."""
        server.sql("postgres", f"CREATE ROLE keyed LOGIN PASSWORD '{PASSWORD}'")
        server.sql("postgres", f"ALTER DATABASE {database} OWNER TO keyed")
        yield f"127.0.0.1:{server.port}/{database}"
        server.sql("postgres", f"ALTER DATABASE {database} OWNER TO culture")
        server.sql(database, "REASSIGN OWNED BY keyed TO culture; DROP OWNED BY keyed")
        server.sql("postgres", "DROP ROLE keyed")

    def test_with_the_password(self, keyed: str) -> None:
        with opened(f"postgresql://keyed:{PASSWORD.replace('/', '%2F')}@{keyed}") as store:
            store.write([entry(1)])
            assert numbers(ask(store)) == [1]

    @pytest.mark.parametrize("password", ["wrong", PASSWORD, "a#b", "12?x", "q@r/s"])
    def test_not_with_another_and_it_is_not_shown(
        self, keyed: str, password: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        with pytest.raises(Misconfigured) as raised:
            PostgresStore(f"postgresql://keyed:{password}@{keyed}").open()
        said = f"{raised.value} {raised.value.__cause__} {caplog.text}"
        assert password not in said
        assert "password" in str(raised.value)

    def test_not_without_one(self, keyed: str) -> None:
        with pytest.raises(Misconfigured, match="password"):
            PostgresStore(f"postgresql://keyed@{keyed}").open()

    def test_not_into_a_database_that_is_not_there(self, server: Postgres) -> None:
        with pytest.raises(Misconfigured, match='"nowhere" does not exist'):
            PostgresStore(server.url("nowhere")).open()

    def test_not_as_somebody_unknown(self, server: Postgres, database: str) -> None:
        with pytest.raises(Misconfigured, match='"stranger" does not exist'):
            PostgresStore(server.url(database, "stranger")).open()

    def test_not_where_nothing_may_be_made(self, server: Postgres, database: str) -> None:
        server.sql("postgres", "CREATE ROLE guest LOGIN")
        try:
            with pytest.raises(Misconfigured, match="permission denied"):
                PostgresStore(server.url(database, "guest")).open()
        finally:
            server.sql("postgres", "DROP ROLE guest")

    def test_not_with_an_encoding_that_lacks_characters(self, server: Postgres) -> None:
        server.sql("postgres", "CREATE DATABASE narrow ENCODING 'LATIN1' TEMPLATE template0")
        try:
            with pytest.raises(Misconfigured, match="LATIN1"):
                PostgresStore(server.url("narrow")).open()
        finally:
            server.sql("postgres", "DROP DATABASE narrow")

    @pytest.mark.parametrize(
        ("url", "expected"),
        [
            (
                "postgresql://culture:secret@db.example:5433/chat?sslmode=require",
                "postgresql://culture@db.example:5433/chat",
            ),
            ("postgres://culture@db/chat", "postgres://culture@db/chat"),
            ("postgresql:///chat?host=/run/postgresql&password=secret", "postgresql:///chat"),
            ("postgresql://u:se/cret@db/chat", "postgresql://…"),
            ("postgresql://u:p@one:5432,two:5433/chat", "postgresql://u@one:5432,two:5433/chat"),
        ],
    )
    def test_an_address_is_shown_without_its_password(self, url: str, expected: str) -> None:
        assert shown(url) == expected


class TestSchema:
    """The tables have a version."""

    def test_a_newer_one_is_refused(self, server: Postgres, database: str) -> None:
        with opened(server.url(database)) as store:
            store.write([entry(1)])
        server.sql(database, "UPDATE history_schema SET version = 99")
        with pytest.raises(TooNew, match="99"):
            PostgresStore(server.url(database)).open()

    def test_an_older_one_goes_forward_and_keeps_what_it_has(self, server: Postgres, database: str) -> None:
        newer = (*STEPS, "ALTER TABLE history_gaps ADD COLUMN why text")
        with opened(server.url(database)) as store:
            store.write([entry(1)])
            store._loop.run(_migrated(store, newer))
            assert server.sql(database, "SELECT version FROM history_schema") == str(len(newer))
            assert numbers(ask(store)) == [1]

    def test_a_step_that_fails_leaves_nothing(self, server: Postgres, database: str) -> None:
        with opened(server.url(database)) as store:
            with pytest.raises(driver.asyncpg.PostgresError):
                store._loop.run(_migrated(store, (*STEPS, "CREATE TABLE half (x integer)", "SELECT nonsense")))
            assert server.sql(database, "SELECT version FROM history_schema") == str(len(STEPS))
            assert server.sql(database, "SELECT to_regclass('half')") == ""


def test_the_first_schema_becomes_the_newest(server: Postgres, database: str) -> None:
    """D13: what is from before it was known who wrote it came to everybody in the order of time"""
    server.sql(
        database, "CREATE TABLE history_schema (version integer NOT NULL); INSERT INTO history_schema VALUES (1)"
    )
    server.sql(database, str(STEPS[0]))
    server.sql(database, "INSERT INTO history_places (key, name) VALUES ('#general', '#General')")
    server.sql(database, "INSERT INTO history_lines (origin, epoch) VALUES ('spark', 'e1')")
    server.sql(
        database,
        "INSERT INTO history_entries SELECT (1750000000000000 + seq * 1000000) * 1024, seq, 1, 1, 0, false, 'PRIVMSG',"
        " 'ada!a@here', 'ada', '', 'old', '#general', '', '', to_tsvector('simple', '') FROM generate_series(1, 3) seq",
    )
    with opened(server.url(database)) as store:
        assert numbers(ask(store)) == [1, 2, 3]
        store.write([entry(2, "told again"), entry(4)])
        (after,) = store.arrivals("spark.e1.1").values()
        assert [each.kept.entry.seq for each in store.missed([View(PLACE)], after, 10)] == [2, 3, 4]


def test_messages_that_were_indexed_with_invisible_characters_are_found(server: Postgres, database: str) -> None:
    with opened(server.url(database)) as store:
        store.write([entry(1, "re\u200bsume \x1b[1mbold"), entry(2, "resume")])
    server.sql(database, "UPDATE history_entries SET words = '\ue0001 re sume 1mbold' WHERE seq = 1")
    server.sql(database, f"UPDATE history_schema SET version = {len(STEPS) - 1}")
    with opened(server.url(database)) as store:
        assert numbers(store.search(View(PLACE), query("resume"), 10, 1.0)) == [1, 2]
        assert list(store.verify()) == []


async def _migrated(store: PostgresStore, steps: tuple[Step, ...]) -> None:
    await migrate(await store._connections.writer(), steps)


SAID = [
    entry(seq, f"all {'often ' * (seq % 4 == 0)}{'rare' * (seq % 97 == 0)} n{seq} C{'+' * (seq % 3)}")
    for seq in range(800)
]
QUESTIONS: dict[str, Callable[[int], bool]] = {
    "all": lambda seq: True,
    "often": lambda seq: seq % 4 == 0,
    "rare": lambda seq: seq % 97 == 0,
    "often all rare": lambda seq: seq % 388 == 0,
    "n17": lambda seq: seq == 17,
    "C++": lambda seq: seq % 3 == 2,
    "never": lambda seq: False,
}


class TestSearch:
    """However a word is looked for, the same is found."""

    @pytest.mark.parametrize(("newest", "dearer"), [(10_000, 1), (50, 1_000_000), (50, 0), (50, 5)])
    @pytest.mark.parametrize("limit", [1, 20, 400])
    def test_newest_first(
        self, server: Postgres, database: str, newest: int, dearer: int, limit: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(searching, "_NEWEST", newest)
        monkeypatch.setattr(searching, "_DEARER", dearer)
        with opened(server.url(database)) as store:
            store.write([*SAID, entry(900, "all often rare", place="#other"), event(901)])
            for text, fits in QUESTIONS.items():
                expected = [each.seq for each in SAID if fits(each.seq)][-limit:]
                assert numbers(store.search(View(PLACE), query(text), limit, 10.0)) == expected, text

    def test_a_word_that_is_very_long(self, server: Postgres, database: str) -> None:
        word = "ab" * 3_000
        with opened(server.url(database)) as store:
            store.write([entry(1, word), entry(2, " ".join(f"{n}x" for n in range(30_000)))])
            assert numbers(store.search(View(PLACE), query(word), 10, 10.0)) == [1]
            assert numbers(store.search(View(PLACE), query("7x 19000x"), 10, 10.0)) == [2]
            assert list(store.verify()) == []


def test_what_is_wrong_is_found(server: Postgres, database: str) -> None:
    with opened(server.url(database)) as store:
        store.write([entry(1, "apples"), entry(2, "pears"), entry(3, place="#lost"), event(4)])
        assert list(store.verify()) == []
        server.sql(database, "UPDATE history_entries SET text = 'figs' WHERE text = 'apples'")
        server.sql(database, "UPDATE history_entries SET words = NULL WHERE text = 'pears'")
        server.sql(database, "DELETE FROM history_places WHERE key = '#lost'; DELETE FROM history_lines")
        found = list(store.verify())
        assert found[:2] == ["1 entries whose place is unknown", "4 entries whose line is unknown"]
        assert len(found) == 4


def test_without_the_driver_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    spec = importlib.util.spec_from_file_location("driverless", driver.__file__)
    assert spec is not None and spec.loader is not None
    with pytest.raises(ImportError, match=f"asyncpg: {re.escape(installation().extend('postgres'))}"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def history(url: str) -> HistoryConfig:
    return HistoryConfig(store=url, semantic=Embeddings(enabled=False))


async def test_two_servers_have_one_history(server: Postgres, database: str, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        clients = []
        for name in ("spark", "thor"):
            settings = {"name": name, "history": history(server.url(database))}
            ircd = await stack.enter_async_context(serving(tmp_path / name, **settings))
            client = await stack.enter_async_context(registered(ircd.port, f"{name}-ada"))
            await client.join("#a")
            clients.append(client)
        spark, thor = clients
        spark.send("PRIVMSG #a :said on spark")
        spark.send("HISTORY RECENT #a 5")
        assert (await spark.expect("HISTORY")).params[-1] == "said on spark"
        thor.send("PRIVMSG #a :said on thor")
        thor.send("HISTORY SEARCH #a :said")
        assert [(await thor.expect("HISTORY")).params[-1] for _ in range(2)] == ["said on spark", "said on thor"]


async def test_messages_flow_while_the_database_is_away(server: Postgres, database: str, tmp_path: Path) -> None:
    async with (
        serving(tmp_path, history=history(server.url(database))) as ircd,
        registered(ircd.port, "spark-ada") as ada,
        registered(ircd.port, "spark-ben") as ben,
    ):
        await ada.join("#a")
        await ben.join("#a")
        ada.send("PRIVMSG #a :before")
        await ben.expect("PRIVMSG")
        server.kill()
        ada.send("PRIVMSG #a :while it was away")
        assert (await ben.expect("PRIVMSG")).params[-1] == "while it was away"
        server.start()
        said: list[str] = []
        async with asyncio.timeout(PATIENCE):
            while len(said) < 2:
                ben.send("HISTORY RECENT #a 5")
                said = [row.params[-1] for row in await ben.sync() if row.verb == "HISTORY"]
        assert said == ["before", "while it was away"]


def test_many_entries_of_all_kinds(server: Postgres, database: str) -> None:
    """What goes in comes out, whatever characters it has."""
    strange = [
        "",
        " ",
        "'",
        "\\",
        "\\'",
        "a:*&|!()",
        "\x01ACTION\x01",
        "\ue0001",
        "日本語",
        "😀",
        "{}",
        "NULL",
        "\x1f\x02",
    ]
    said: list[Entry] = [entry(seq, text, source=f"{text}!u@h", kind=text) for seq, text in enumerate(strange)]
    with opened(server.url(database)) as store:
        store.write(said)
        assert [each.entry for each in ask(store)] == said
        assert list(store.verify()) == []
