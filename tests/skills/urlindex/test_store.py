"""The links on disk: counted, bounded, taken back, moved, found again."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culture.skills.urlindex.facts import OPEN, Fact, MessageWithLinks, Moved, ReadableChannels, RedactedMessage
from culture.skills.urlindex.store import MENTIONS, STEPS, LinkReader, UrlIndexStore

ALL = ReadableChannels(frozenset(), {})
_numbers = count(1)


def heard(
    text: str, channel: str = "#a", room: float = OPEN, nick: str = "spark-ori", msgid: str = ""
) -> MessageWithLinks:
    number = next(_numbers)
    return MessageWithLinks(channel, room, nick, float(number), msgid or f"m{number}", text)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "links.db"


@pytest.fixture
def store(path: Path) -> Iterator[UrlIndexStore]:
    store = UrlIndexStore(path, keep=10_000)
    yield store
    store.close()


@pytest.fixture
def reader(path: Path, store: UrlIndexStore) -> LinkReader:
    return LinkReader(path, patience=10.0)


def shown(reader: LinkReader, channel: str = "#a", since: float | None = None) -> list[tuple[str, int]]:
    return [(link.url, link.times) for link in reader.recent(channel, since, 1000).links]


def test_the_same_link_again_is_counted_and_not_repeated(store: UrlIndexStore, reader: LinkReader) -> None:
    store.write(
        [heard("https://a.b/x"), heard("http://c.d"), heard("again HTTPS://A.b/x https://a.b/x", nick="spark-ada")]
    )
    assert shown(reader) == [("https://a.b/x", 2), ("http://c.d", 1)]
    newest = reader.recent("#A", None, 1).links[0]
    assert (newest.nick, newest.context) == ("spark-ada", "again HTTPS://A.b/x https://a.b/x")


def test_the_same_message_twice_counts_once(store: UrlIndexStore, reader: LinkReader) -> None:
    fact = heard("https://a.b/")
    store.write([fact])
    store.write([fact])
    assert shown(reader) == [("https://a.b/", 1)]


def test_what_is_taken_back_was_not_shared(store: UrlIndexStore, reader: LinkReader) -> None:
    store.write([heard("https://a.b/ first", msgid="one"), heard("https://a.b/ second", nick="spark-ada", msgid="two")])
    store.write([RedactedMessage("two"), RedactedMessage("unknown")])
    [link] = reader.recent("#a", None, 10).links
    assert (link.times, link.nick, link.context, link.msgid) == (1, "spark-ori", "https://a.b/ first", "one")
    store.write([RedactedMessage("one")])
    assert shown(reader) == []


def test_nothing_of_what_is_taken_back_stays_in_the_file(store: UrlIndexStore, path: Path) -> None:
    store.write([heard("https://a.b/ pssst-a-secret", msgid="one")])
    store.write([RedactedMessage("one")])
    store.close()
    assert b"pssst" not in path.read_bytes()
    assert not path.with_name("links.db-wal").exists()


def test_a_link_shared_often_keeps_its_first_and_its_latest_mentions(
    store: UrlIndexStore, path: Path, reader: LinkReader
) -> None:
    store.write([heard(f"https://a.b/ {number}", msgid=f"id{number}") for number in range(100)])
    with sqlite3.connect(path) as file:
        kept = [msgid for (msgid,) in file.execute("SELECT msgid FROM mentions ORDER BY id")]
    file.close()
    assert kept == ["id0", *(f"id{number}" for number in range(100 - MENTIONS, 100))]
    assert shown(reader) == [("https://a.b/", 100)]


def test_the_oldest_links_are_dropped(path: Path) -> None:
    store = UrlIndexStore(path, keep=3)
    store.write([heard(f"https://a.b/{number}") for number in range(5)])
    store.write([heard("https://a.b/2 once more"), heard("https://a.b/6")])
    assert shown(LinkReader(path, 10.0)) == [("https://a.b/6", 1), ("https://a.b/2", 2), ("https://a.b/4", 1)]
    store.close()


def test_a_renamed_channel_takes_its_links_along(store: UrlIndexStore, reader: LinkReader) -> None:
    store.write([heard("https://a.b/ http://old.b", "#new"), heard("https://a.b/ http://c.d", "#Old")])
    store.write([Moved("#Old", "#New")])
    assert shown(reader, "#old") == []
    assert sorted(shown(reader, "#new")) == [("http://c.d", 1), ("http://old.b", 1), ("https://a.b/", 2)]
    assert {link.channel for link in reader.recent("#new", None, 10).links} == {"#New"}


def test_and_none_from_behind_the_closed_doors_of_another_one(store: UrlIndexStore, reader: LinkReader) -> None:
    store.write([heard("http://theirs.b", "#new", room=500.0), heard("http://ours.b", "#old", room=400.0)])
    store.write([heard("http://open.b", "#new"), Moved("#old", "#new"), Moved("#new", "#NEW")])
    assert sorted(shown(reader, "#new", since=400.0)) == [("http://open.b", 1), ("http://ours.b", 1)]
    found = reader.search(ReadableChannels(frozenset(), {"#new": 400.0}), "theirs", 10)
    assert found.links == []


def test_a_channel_may_change_the_case_of_its_name(store: UrlIndexStore, reader: LinkReader) -> None:
    store.write([heard("https://a.b/", "#old"), Moved("#old", "#OLD")])
    assert [(link.channel, link.times) for link in reader.recent("#old", None, 10).links] == [("#OLD", 1)]


def test_what_was_shared_behind_a_closed_door_is_for_those_who_were_let_in(
    store: UrlIndexStore, reader: LinkReader
) -> None:
    store.write([heard("https://a.b/ http://c.d"), heard("https://a.b/ http://secret.b", room=500.0)])
    assert shown(reader) == [("http://c.d", 1), ("https://a.b/", 1)]
    assert shown(reader, since=500.0) == [("http://secret.b", 1), ("https://a.b/", 2), ("http://c.d", 1)]
    assert shown(reader, since=501.0) == [("http://c.d", 1), ("https://a.b/", 1)]
    for term in ("secret", ""):
        found = reader.search(ReadableChannels(frozenset(), {"#a": 501.0}), term, 10)
        assert "http://secret.b" not in [link.url for link in found.links]
    found = reader.search(ReadableChannels(frozenset(), {"#a": 500.0}), "SECRET", 10)
    assert [link.url for link in found.links] == ["http://secret.b", "https://a.b/"]


def test_a_search_sees_no_hidden_channel(store: UrlIndexStore, reader: LinkReader) -> None:
    store.write([heard("https://a.b/", "#a"), heard("https://a.b/", '#"b\\'), heard("https://a.b/", "#ü😀")])
    found = reader.search(ReadableChannels(frozenset({'#"b\\', "#ü😀"}), {}), "a.b", 10)
    assert [link.channel for link in found.links] == ["#a"]
    assert len(reader.search(ALL, "a.b", 10).links) == 3
    assert len(reader.search(ALL, "a.b", 2).links) == 2


def test_a_link_is_found_by_what_was_said_with_it_before(store: UrlIndexStore, reader: LinkReader) -> None:
    store.write([heard("the llama docs https://a.b/"), heard("as above https://a.b/")])
    assert [link.context for link in reader.search(ALL, "LLAMA", 10).links] == ["as above https://a.b/"]


@pytest.mark.parametrize("term", ["C++", "it's", "100%", "under_score", '"', "\\", "日本", "spark-harper", "STRASSE"])
def test_any_text_is_a_query_and_means_itself(store: UrlIndexStore, reader: LinkReader, term: str) -> None:
    store.write([heard("https://a.b/1 C++ it's 100% under_score \" \\ 日本語 spark-harper Straße")])
    store.write([heard("https://a.b/2 Cxx its 1000 underXscore 本 spark_harper")])
    assert [link.url for link in reader.search(ALL, term, 10).links] == ["https://a.b/1"]


@settings(max_examples=50)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_text_breaks_a_search(tmp_path_factory: pytest.TempPathFactory, term: str) -> None:
    path = tmp_path_factory.mktemp("any") / "links.db"
    store = UrlIndexStore(path, 10)
    store.write([heard("https://a.b/")])
    store.close()
    assert LinkReader(path, 10.0).search(ALL, term, 10).complete


@pytest.mark.fault("B19")
def test_a_search_ends_in_time_with_what_it_has(store: UrlIndexStore, path: Path) -> None:
    """B19"""
    store.write([heard("needle https://a.b/0")])
    for part in range(20):
        store.write([heard(f"{'hay ' * 70} https://a.b/{part}/{number}") for number in range(200)])
    found = LinkReader(path, patience=0.0).search(ALL, "needle", 1000)
    assert not found.complete
    assert [link.url for link in LinkReader(path, 10.0).search(ALL, "needle", 1000).links] == ["https://a.b/0"]


FACTS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from("xyz"), st.sampled_from(["#a", "#b"])),
        st.tuples(st.just("redact"), st.integers(0, 20), st.just("")),
        st.tuples(st.just("rename"), st.sampled_from(["#a", "#b"]), st.sampled_from(["#a", "#b", "#c"])),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(FACTS)
def test_counts_are_those_of_a_plain_list(tmp_path_factory: pytest.TempPathFactory, steps: list) -> None:
    """Whatever is said, taken back and renamed: the index agrees with somebody who remembers every message."""
    path = tmp_path_factory.mktemp("plain") / "links.db"
    said: dict[str, tuple[str, str]] = {}
    facts: list[Fact] = []
    for number, (what, one, other) in enumerate(steps):
        if what == "say":
            said[f"id{number}"] = (other, f"https://a.b/{one}")
            facts.append(heard(f"https://a.b/{one}", other, msgid=f"id{number}"))
        elif what == "redact":
            said.pop(f"id{one}", None)
            facts.append(RedactedMessage(f"id{one}"))
        else:
            said = {msgid: (other if channel == one else channel, url) for msgid, (channel, url) in said.items()}
            facts.append(Moved(one, other))
    store = UrlIndexStore(path, 1000)
    store.write(facts)
    store.close()
    for channel in ("#a", "#b", "#c"):
        wanted: dict[str, int] = {}
        for place, url in said.values():
            if place == channel:
                wanted[url] = wanted.get(url, 0) + 1
        assert dict(shown(LinkReader(path, 10.0), channel)) == wanted


_VICTIM = """
import os, signal, sys
from pathlib import Path
from culture.skills.urlindex.facts import OPEN, MessageWithLinks
from culture.skills.urlindex.store import UrlIndexStore

store = UrlIndexStore(Path(sys.argv[1]), 1000)
store.write([MessageWithLinks("#a", OPEN, "spark-ori", 1.0, f"m{n}", f"https://a.b/{n}") for n in range(100)])
store._drop_oldest = lambda: os.kill(os.getpid(), signal.SIGKILL)
store.write([MessageWithLinks("#a", OPEN, "spark-ori", 2.0, f"k{n}", f"https://a.b/{n}") for n in range(200)])
"""


def test_killed_in_mid_write_what_was_committed_is_there_and_nothing_of_the_rest(path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", _VICTIM, str(path)], timeout=30, check=False)
    assert ended.returncode == -signal.SIGKILL
    store = UrlIndexStore(path, 1000)
    assert shown(LinkReader(path, 10.0)) == [(f"https://a.b/{number}", 1) for number in reversed(range(100))]
    store.write([heard("https://a.b/5")])
    assert shown(LinkReader(path, 10.0))[0] == ("https://a.b/5", 2)
    store.close()


def test_the_schema_grows_from_its_first_version(path: Path) -> None:
    """A file of the first schema opens with its links."""
    file = sqlite3.connect(path)
    file.executescript(str(STEPS[0]))
    file.execute("PRAGMA user_version=1")
    file.execute("INSERT INTO links VALUES (1, '#a', 0, 'https://a.b/', '#a', 'https://a.b/', 'https://a.b/', 1, 1)")
    file.execute("INSERT INTO mentions VALUES (1, 1, 'one', 'spark-ori', 1.0, 'https://a.b/', 'https://a.b/')")
    file.commit()
    file.close()
    UrlIndexStore(path, 10).close()
    assert shown(LinkReader(path, 10.0)) == [("https://a.b/", 1)]
    assert LinkReader(path, 10.0).recent("#a", None, 1).links[0].msgid == "one"
