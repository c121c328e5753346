"""``culture history``: the owner of the machine looks into what was said, and the server goes on."""

import json
import os
import pty
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from culture.cli.app import app
from culture.cli.history.command import _PAUSE
from culture.cli.progress import Progress, elapsing
from culture.skills.history.entry import Entry
from culture.skills.history.sqlite import SQLiteStore
from tests.cli.shell import Shell
from tests.skills.history.entries import SECOND, START, entry, event, private
from tests.support.client import registered
from tests.support.postgres import postgres
from tests.support.waiting import PATIENCE

ADA, BOB = ("ada", "spark-ada"), (None, "spark-bob")
DAY = 86_400


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """``run("stats")``: the command on the history in a home folder of its own."""
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "culture.yaml").write_text("name: spark\n")

    def command(*arguments: str) -> Ran:
        with pytest.raises(SystemExit) as ended:
            app(["history", *arguments])
        out, err = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, out, err)

    return command


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    """A history that somebody has open, as a running server has."""
    opened = SQLiteStore(tmp_path / "data" / "spark" / "history" / "history.db")
    opened.open()
    yield opened
    opened.close()


def both(seq: int) -> list[Entry]:
    return [entry(seq, f"word {seq}"), entry(seq + 1000, f"word {seq}", place="#logs", target="#Logs")]


def test_without_a_history_it_says_so(run: Run, tmp_path: Path) -> None:
    for command in ("stats", "verify", "export"):
        ran = run(command)
        assert ran.code == 1 and "spark has stored nothing yet" in ran.err
    assert not (tmp_path / "data").exists()


async def test_a_server_of_another_name_is_named(shell: Shell) -> None:
    await shell.serve("--name", "spark")
    for command in (("history", "stats"), ("backup",)):
        refused = await shell.run(*command)
        assert refused.code == 2 and "Say --name spark" in refused.err


class TestSearch:
    def test_the_newest_of_all_channels_oldest_first(self, run: Run, store: SQLiteStore) -> None:
        store.write([each for seq in range(4) for each in both(seq)])
        ran = run("search", "--limit", "3", "word")
        assert ran.code == 0
        assert [line.split("\t")[1:] for line in ran.lines] == [["#Logs", "ada", f"word {seq}"] for seq in (1, 2, 3)]
        assert ran.lines[0].startswith("2025-06-15 15:23:21\t")

    def test_one_channel_and_not_before(self, run: Run, store: SQLiteStore) -> None:
        store.write([each for seq in range(4) for each in both(seq)])
        ran = run("search", "word", "--channel", "#GENERAL", "--since", "2025-06-15T15:06:42")
        assert [line.split("\t")[3] for line in ran.lines] == ["word 2", "word 3"]

    def test_private_ones_only_when_asked_for(self, run: Run, store: SQLiteStore) -> None:
        store.write([entry(1, "a word"), private(2, "a Wordy secret", ADA, BOB)])
        assert "secret" not in run("search", "word").out
        ran = run("search", "word", "--private")
        assert [line.split("\t")[1] for line in ran.lines] == ["#general", "ada,spark-bob"]
        assert "secret" not in run("search", "nothing", "--private").out

    def test_what_was_said_for_some_or_behind_closed_doors_is_found(self, run: Run, store: SQLiteStore) -> None:
        store.write([entry(1, "word 1", status="@"), entry(2, "word 2", closed=True), entry(3, "word 3", status="+")])
        assert len(run("search", "word").lines) == 3

    def test_as_json(self, run: Run, store: SQLiteStore) -> None:
        store.write([entry(1, "日本語 word")])
        (line,) = run("search", "--json", "日本").lines
        assert json.loads(line)["text"] == "日本語 word"

    def test_nothing_found_is_an_answer(self, run: Run, store: SQLiteStore) -> None:
        store.write([entry(1)])
        ran = run("search", "nothing like it")
        assert (ran.code, ran.out, ran.err) == (1, "", "Nothing found.\n")

    def test_a_channel_that_never_was_is_told_with_the_nearest(self, run: Run, store: SQLiteStore) -> None:
        store.write([entry(1)])
        ran = run("search", "--channel", "#genral", "x")
        assert ran.code == 1 and "did you mean #general?" in ran.err

    def test_no_text_commands_the_terminal(self, run: Run, store: SQLiteStore) -> None:
        store.write([entry(1, "word \x1b]0;title\x07 \x9b31m")])
        assert not {"\x1b", "\x07", "\x9b"} & set(run("search", "word").out)
        (line,) = run("search", "--json", "word").lines
        assert line.isprintable() and json.loads(line)["text"] == "word \x1b]0;title\x07 \x9b31m"

    def test_a_date_that_is_none_is_told(self, run: Run, store: SQLiteStore) -> None:
        ran = run("search", "--since", "yesterday", "x")
        assert ran.code == 2 and "is not a date such as" in ran.err


def entry_of(said: dict[str, Any]) -> Entry:
    """An exported line as an entry again, as an import would make it."""
    origin, epoch, seq = said["msgid"].rsplit(".", 2)
    at = said["time"].removesuffix("Z")
    whole, micro = at.split(".")
    seconds = int(time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S"))) - time.timezone
    more = {key: said[key] for key in ("tags", "mentions", "lines") if said[key]} | said["data"]
    return Entry(
        said["place"],
        origin,
        epoch,
        int(seq),
        seconds * SECOND + int(micro),
        said["verb"],
        said["source"],
        said["account"],
        said["class"],
        said["text"],
        said["target"],
        said["status"],
        said["closed"],
        json.dumps(more, ensure_ascii=False, separators=(",", ":")) if more else "",
    )


EVERYTHING = [
    entry(1, "hello", data='{"tags":{"+a":"b"},"mentions":["spark-bob"]}', kind="human"),
    entry(2, "two\nlines", data='{"lines":[["two",false],["lines",true]]}', at=START + 2 * SECOND + 123_456),
    entry(3, "ops", status="@", account=None),
    entry(4, "inside", closed=True, verb="NOTICE"),
    entry(5, "Ada", verb="JOIN", data='{"status":"o"}'),
    entry(6, "away", verb="KICK", data='{"nick":"spark-bob"}'),
    event(7, "MODE", data='{"changes":[[true,"k","secret"]]}'),
    entry(8, "topical", verb="TOPIC"),
    entry(9, "regretted"),
    entry(10, "", verb="REDACT", data='{"msgid":"spark.e1.9"}'),
    event(12, "TAGMSG", data='{"tags":{"+draft/react":"👍"}}'),
    entry(11, "\x01ACTION waves\x01", place="#logs", target="#Logs"),
]


class TestExport:
    def test_every_field_comes_out(self, run: Run, store: SQLiteStore) -> None:
        store.write([*EVERYTHING, private(13, "psst", ADA, BOB)])
        ran = run("export", "--private")
        assert [entry_of(json.loads(line)) for line in ran.lines] == [each.entry for each in store.everything()]
        assert "regretted" not in ran.out

    def test_text_reads_like_a_log(self, run: Run, store: SQLiteStore) -> None:
        store.write(EVERYTHING)
        ran = run("export", "--channel", "#general", "--format", "text")
        assert [line.split("\t", 1)[1] for line in ran.lines] == [
            "ada\thello",
            "ada\ttwo",
            " |\tlines",
            "ada\tops",
            "--\tNotice(ada): inside",
            "-->\tada (a@here) has joined #general",
            "<--\tada has kicked spark-bob (away)",
            "--\tMode #general [+k *] by ada",
            "--\tada has changed the topic of #general to: topical",
            "--\tada took back an earlier message",
        ]

    def test_of_several_channels_each_line_says_which(self, run: Run, store: SQLiteStore) -> None:
        store.write(EVERYTHING)
        lines = run("export", "--format", "text").lines
        assert {line.split("\t")[1] for line in lines} == {"#general", "#Logs"}

    def test_private_conversations_are_left_out_unless_asked_for(self, run: Run, store: SQLiteStore) -> None:
        store.write([entry(1), private(2, "psst", ADA, BOB), entry(3, place="#logs")])
        assert len(run("export").lines) == 2
        both = run("export", "--channel", "#logs", "--private").lines
        assert [json.loads(line)["msgid"] for line in both] == ["spark.e1.2", "spark.e1.3"]

    def test_between_two_times(self, run: Run, store: SQLiteStore) -> None:
        store.write([entry(seq, at=START + seq * DAY * SECOND) for seq in range(10)])
        ran = run("export", "--since", "2025-06-17", "--until", "2025-06-19 15:06:40")
        assert [json.loads(line)["msgid"] for line in ran.lines] == ["spark.e1.2", "spark.e1.3"]

    def test_a_file_is_for_its_owner_alone_and_never_overwritten(
        self, run: Run, store: SQLiteStore, tmp_path: Path
    ) -> None:
        store.write([entry(1)])
        assert run("export", "--output", "out.jsonl") == Ran(0, "", "")
        file = tmp_path / "out.jsonl"
        assert json.loads(file.read_text())["text"] == "hello" and file.stat().st_mode & 0o777 == 0o600
        file.write_text("mine")
        again = run("export", "--output", "out.jsonl")
        assert again.code == 1 and file.read_text() == "mine"

    def test_an_export_that_fails_leaves_no_file(
        self, run: Run, store: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object) -> Iterator[object]:
            yield from list(store.everything())[:1]
            error = sqlite3.DatabaseError("malformed")
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT  # type: ignore[misc]
            raise error

        store.write([entry(1), entry(2)])
        monkeypatch.setattr("culture.cli.history.export._wanted", broken)
        ran = run("export", "--output", "out.jsonl")
        assert ran.code == 1 and "is damaged: malformed" in ran.err
        assert not (tmp_path / "out.jsonl").exists()


class TestStats:
    def test_the_table(self, run: Run, store: SQLiteStore) -> None:
        store.write([*EVERYTHING, private(13, "psst", ADA, BOB)])
        store.note_gap(START, START + 60 * SECOND, 17)
        lines = run("stats").lines
        assert lines[0].split() == ["channel", "messages", "events", "size", "first", "last"]
        assert lines[1].split()[:3] == ["#Logs", "1", "0"]
        assert lines[2].split()[:3] == ["#general", "4", "6"]
        assert lines[3].split()[:3] == ["(private)", "1", "0"]
        assert "history.db, " in lines[5] and "schema " in lines[5]
        assert lines[6] == "17 messages between 2025-06-15 15:06:40 and 2025-06-15 15:07:40 could not be stored."

    def test_as_json(self, run: Run, store: SQLiteStore) -> None:
        store.write([entry(1)])
        store.note_gap(START, START + SECOND, 1)
        said = json.loads(run("stats", "--json").out)
        assert said["channels"] == [
            {
                "name": "#general",
                "messages": 1,
                "events": 0,
                "bytes": 5,
                "first": "2025-06-15T15:06:41.000000Z",
                "last": "2025-06-15T15:06:41.000000Z",
            }
        ]
        assert said["gaps"][0]["lost"] == 1 and said["size"] > 0 and said["schema"] >= 1


class TestVerify:
    def test_what_is_whole_is_counted(self, run: Run, store: SQLiteStore) -> None:
        store.write(EVERYTHING)
        assert run("verify") == Ran(0, "11 entries, all intact.\n", "")

    def test_gaps_are_told_and_are_no_damage(self, run: Run, store: SQLiteStore) -> None:
        store.write([entry(1)])
        store.note_gap(START, START + 5 * SECOND, 7)
        ran = run("verify")
        assert ran.code == 0
        assert ran.lines[0] == "1 entry, all intact."
        assert ran.lines[1].startswith("7 messages between 2025-06-15") and "could not be stored" in ran.lines[1]

    def test_each_problem_is_told(self, run: Run, store: SQLiteStore) -> None:
        store.write([entry(1), entry(2)])
        with sqlite3.connect(store.path) as connection:
            connection.execute("DELETE FROM lines")
        connection.close()
        ran = run("verify")
        assert ran.code == 1 and "2 entries whose line is unknown" in ran.out and "is damaged" in ran.err

    def test_what_is_no_database_is_told(self, run: Run, store: SQLiteStore) -> None:
        store.close()
        store.path.write_bytes(b"SQLite format 3\0" + os.urandom(8192))
        ran = run("verify")
        assert ran.code == 1 and str(store.path) in ran.err

    def test_a_newer_history_is_left_alone(self, run: Run, store: SQLiteStore) -> None:
        with sqlite3.connect(store.path) as connection:
            connection.execute("PRAGMA user_version=999")
        connection.close()
        ran = run("verify")
        assert ran.code == 1 and "newer version of culture" in ran.err


class TestPrune:
    @pytest.fixture(autouse=True)
    def _talk(self, store: SQLiteStore) -> None:
        now = time.time_ns() // 1000
        for seq in range(10):
            at = now - (10 - seq) * DAY * SECOND
            store.write([entry(seq, "x" * 100, at=at), entry(seq, at=at, place="#logs")])
            store.write([private(seq + 100, "psst", ADA, BOB)._replace(at=at)])

    def left(self, store: SQLiteStore) -> tuple[int, int, int]:
        found = [each.entry.place for each in store.everything()]
        return found.count("#general"), found.count("#logs"), sum(" " in place for place in found)

    def test_what_is_old_in_a_channel_goes(self, run: Run, store: SQLiteStore) -> None:
        ran = run("prune", "--channel", "#general", "--older-than", "84h", "--yes")
        assert ran.code == 0 and "#general: 7 entries removed." in ran.out and "keeps its" in ran.out
        assert self.left(store) == (3, 10, 10)
        assert list(store.verify()) == []

    def test_private_conversations(self, run: Run, store: SQLiteStore) -> None:
        assert run("prune", "--private", "--older-than", "3.5d", "--yes").code == 0
        assert self.left(store) == (10, 10, 3)

    def test_everywhere(self, run: Run, store: SQLiteStore) -> None:
        assert run("prune", "--all", "--older-than", "3.5d", "--yes").code == 0
        assert self.left(store) == (3, 3, 3)

    def test_by_size(self, run: Run, store: SQLiteStore) -> None:
        assert run("prune", "--all", "--keep-size", "0.45kB", "--yes").code == 0
        assert self.left(store) == (4, 10, 10)

    def test_a_dry_run_only_tells(self, run: Run, store: SQLiteStore) -> None:
        ran = run("prune", "--all", "--older-than", "3.5d", "--dry-run")
        assert [line.partition(" from")[0] for line in sorted(ran.lines)] == [
            "#general: 7 entries",
            "#logs: 7 entries",
            "private conversations: 7 entries",
        ]
        assert self.left(store) == (10, 10, 10)

    def test_without_a_terminal_it_wants_to_be_told(self, run: Run, store: SQLiteStore) -> None:
        ran = run("prune", "--all", "--older-than", "1d")
        assert ran.code == 2 and "--yes" in ran.err
        assert self.left(store) == (10, 10, 10)

    @pytest.mark.parametrize(("answer", "removed"), [("n", 0), ("y", 7)])
    def test_at_a_terminal_it_asks(
        self, run: Run, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch, answer: str, removed: int
    ) -> None:
        leader, follower = pty.openpty()
        os.write(leader, f"{answer}\n".encode())
        with open(follower, encoding="utf-8") as terminal:
            monkeypatch.setattr("sys.stdin", terminal)
            ran = run("prune", "--channel", "#general", "--older-than", "3.5d")
        os.close(leader)
        assert "Remove this for good?" in ran.err and ran.code == (0 if removed else 1)
        assert self.left(store) == (10 - removed, 10, 10)

    @pytest.mark.parametrize(
        "arguments",
        [("--older-than", "1d"), ("--all",), ("--all", "--older-than", "soon"), ("--all", "--keep-size", "much")],
    )
    def test_what_is_not_said_in_full_is_not_done(self, run: Run, store: SQLiteStore, arguments: tuple[str]) -> None:
        assert run("prune", "--yes", *arguments).code == 2
        assert self.left(store) == (10, 10, 10)

    def test_nothing_to_remove_is_no_error(self, run: Run) -> None:
        assert run("prune", "--all", "--older-than", "100d", "--yes") == Ran(0, "There is nothing to remove.\n", "")

    def test_it_waits_for_a_turn(self, run: Run, store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        """Somebody else holds the lock, and lets go of it when the command pauses."""
        holder = sqlite3.connect(store.path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        pauses = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if holder.in_transaction:
                holder.execute("ROLLBACK")

        monkeypatch.setattr("culture.cli.history.command.time.sleep", pause)
        ran = run("prune", "--channel", "#general", "--older-than", "3.5d", "--yes")
        holder.close()
        assert ran.code == 0 and pauses.count(_PAUSE) == 1
        assert self.left(store) == (3, 10, 10)


async def test_a_running_server_goes_on(shell: Shell) -> None:
    """Also one that was started with options of its own: the name is enough to find its history."""
    folder = shell.folder / "elsewhere"
    started = await shell.run("server", "start", "--name", "spark", "--port", "0", "--data-dir", str(folder))
    async with registered(started.port, "spark-ori", "echo-message message-tags agentirc.dev/receipts") as ori:
        await ori.join("#general")

        async def say(text: str) -> None:
            ori.send(f"PRIVMSG #general :{text}")
            await ori.expect("TAGMSG")

        await say("first")
        exported = await shell.run("history", "export", "--name", "spark", "--format", "text", "--channel", "#general")
        assert exported.out.endswith("\tspark-ori\tfirst\n")
        pruned = await shell.run(
            "history", "prune", "--name", "spark", "--channel", "#general", "--older-than", "1ms", "--yes"
        )
        assert pruned.code == 0, pruned.err
        await say("second")
        found = await shell.run("history", "search", "--name", "spark", "second")
        assert found.out.endswith("spark-ori\tsecond\n")
        verified = await shell.run("history", "verify", "--name", "spark")
        assert (verified.code, verified.out) == (0, "1 entry, all intact.\n")
        assert await ori.sync() == []


def test_a_history_in_postgresql(run: Run, tmp_path: Path) -> None:
    from culture.skills.history.postgres import PostgresStore

    server = postgres()
    with server.database() as name:
        url = server.url(name)
        (tmp_path / "culture.yaml").write_text(f"name: spark\nhistory: {{store: '{url}'}}\n")
        opened = PostgresStore(url)
        opened.open()
        opened.write([*EVERYTHING, private(13, "psst", ADA, BOB)])
        assert [entry_of(json.loads(line)) for line in run("export", "--private").lines] == [
            each.entry for each in opened.everything()
        ]
        assert run("search", "hello").out.endswith("#general\tada\thello\n")
        stats = run("stats")
        assert stats.lines[-1].startswith("postgresql://") and "#general" in stats.out
        assert run("verify").out == "12 entries, all intact.\n"
        assert "removed" in run("prune", "--all", "--older-than", "1ms", "--yes").out
        assert list(opened.everything()) == []
        opened.close()


def test_a_database_that_is_not_to_be_reached_is_told_without_its_password(run: Run, tmp_path: Path) -> None:
    url = "postgresql://culture:secret@127.0.0.1:1/culture"
    (tmp_path / "culture.yaml").write_text(f"name: spark\nhistory: {{store: '{url}'}}\n")
    ran = run("stats")
    assert ran.code == 1 and "secret" not in ran.out + ran.err and ran.err.startswith("culture: ")


def test_a_database_that_does_not_exist_is_told(run: Run, tmp_path: Path) -> None:
    url = postgres().url("nowhere")
    (tmp_path / "culture.yaml").write_text(f"name: spark\nhistory: {{store: '{url}'}}\n")
    ran = run("stats")
    assert ran.code == 1 and ran.err == f'culture: {url}: database "nowhere" does not exist\n'


class Terminal:
    """What a program wrote to a terminal."""

    def __init__(self, is_one: bool = True) -> None:
        self.is_one = is_one
        self.text = ""
        self.written = threading.Event()

    def isatty(self) -> bool:
        return self.is_one

    def write(self, text: str) -> int:
        self.text += text
        self.written.set()
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


class TestProgress:
    def test_it_shows_how_far_it_is_and_goes(self) -> None:
        terminal = Terminal()
        with Progress("Copying [a]", 200, terminal, long=0) as bar:  # type: ignore[arg-type]
            bar.step(50)
        assert "Copying [a] " in terminal.text and " 25%" in terminal.text
        assert terminal.text.endswith("\r\x1b[1A\x1b[2K"), "the line is removed"
        assert "\x1b[?25" not in terminal.text, "a killed program leaves no terminal without a cursor"

    def test_work_of_unknown_length_shows_what_is_done(self) -> None:
        terminal = Terminal()
        with Progress("Copying", 0, terminal, long=0) as bar:  # type: ignore[arg-type]
            bar.step(50)
        assert "Copying 50" in terminal.text and "%" not in terminal.text

    def test_short_work_and_files_see_nothing(self) -> None:
        for terminal, long in ((Terminal(), 100.0), (Terminal(is_one=False), 0.0)):
            with Progress("Copying", 200, terminal, long=long) as bar, elapsing("Checking", terminal, long):  # type: ignore[arg-type]
                bar.step(50)
            assert terminal.text == ""

    def test_what_is_printed_meanwhile_goes_where_it_went_before(self) -> None:
        terminal, out = Terminal(), sys.stdout
        with Progress("Copying", 200, terminal, long=0) as bar:  # type: ignore[arg-type]
            bar.step(50)
            assert sys.stdout is out

    def test_work_without_steps_shows_its_time(self) -> None:
        terminal = Terminal()
        with elapsing("Checking", terminal, long=0):  # type: ignore[arg-type]
            assert terminal.written.wait(PATIENCE)
        assert "Checking … " in terminal.text and "0:00:00" in terminal.text
        assert terminal.text.endswith("\r\x1b[1A\x1b[2K")
