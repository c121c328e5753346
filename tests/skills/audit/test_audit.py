"""The audit: who did what, once, append-only, and nothing of what was said in private."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from culture.runtime import Runtime
from culture.server.core.ids import EventId
from culture.server.events import Noted
from culture.skills.audit import skill
from culture.skills.audit.entries import Facts
from culture.skills.audit.file import NAME, AuditFile
from tests.skills.ledger.test_ledger import agent, put
from tests.support.client import registered
from tests.support.servers import Serve
from tests.support.waiting import PATIENCE, until


def lines(folder: Path) -> list[dict[str, Any]]:
    file = folder / "data" / "audit" / NAME
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


async def test_who_did_what_is_written_and_private_words_are_not(serve: Serve, tmp_path: Path) -> None:
    async with (
        serve() as ircd,
        registered(ircd.port, "spark-ori") as ori,
        registered(ircd.port, "spark-claude", "message-tags") as claude,
    ):
        await agent(claude)
        for client in (ori, claude):
            await client.join("#work")
        await ori.ask("PRIVMSG #work :nobody is called")
        await ori.ask("PRIVMSG #work :@spark-claude pause")
        await ori.ask("PRIVMSG spark-claude :a secret")
        await claude.ask("PRIVMSG spark-ori :another secret")
        for state in ("idle", "idle", "paused"):
            await put(claude, "state", "now", {"state": state})
        await put(claude, "question", "q1", {"open": True, "text": "may I?"})
        await put(claude, "question", "q1", {"open": False, "by": "spark-ori", "class": "human", "at": "x"})
        await put(claude, "spend", "turn-1", {"tokens": 7})
    found = lines(tmp_path)
    assert [(line["by"], line["what"]) for line in found] == [
        ("spark-ori", "said"),
        ("spark-ori", "said"),
        ("spark-claude", "said"),
        *[("spark-claude", what) for what in ("state", "state", "asked", "was answered", "spent")],
    ]
    assert found[0]["text"] == "@spark-claude pause" and found[0]["called"] == ["spark-claude"]
    assert (found[1]["to"], found[1]["class"], "text" in found[1]) == ("spark-claude", "human", False)
    assert (found[4]["state"], found[4]["before"]) == ("paused", "idle")
    assert (found[6]["by_"], found[6]["at_"], found[6]["question"]) == ("spark-ori", "x", "q1")
    assert "secret" not in (tmp_path / "data" / "audit" / NAME).read_text()
    assert (tmp_path / "data" / "audit" / NAME).stat().st_mode & 0o777 == 0o600


async def test_it_goes_on_after_a_restart_and_may_have_every_message(serve: Serve, tmp_path: Path) -> None:
    for text in ("one", "two"):
        async with serve(audit={"messages": "all"}) as ircd, registered(ircd.port, "spark-ori") as ori:
            await ori.join("#work")
            await ori.ask(f"PRIVMSG #work :{text}")
            await until(lambda text=text: any(line["text"] == text for line in lines(tmp_path)))  # type: ignore[misc]
    assert [line["text"] for line in lines(tmp_path)] == ["one", "two"]


async def test_what_a_slow_disk_has_no_room_for_is_counted(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It need not fail for that."""
    monkeypatch.setattr(skill, "MOST", 1)
    append, opened = AuditFile.append, threading.Event()

    def slow(file: AuditFile, group: Sequence[bytes]) -> None:
        assert opened.wait(PATIENCE)
        append(file, group)

    monkeypatch.setattr(AuditFile, "append", slow)
    async with serve(audit={"messages": "all"}) as ircd, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#work")
        for text in ("one", "two", "three"):
            await ori.ask(f"PRIVMSG #work :{text}")
        opened.set()
    one, lost = lines(tmp_path)
    assert one["text"] == "one"
    assert lost == {"at": one["at"], "what": "lost", "lines": 2}


def test_a_full_file_is_put_aside_and_a_torn_line_ended(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b'{"torn')
    file = AuditFile(tmp_path, 30, 2)
    for number in range(12):
        file.append([b"%014d\n" % number])
    file.close()
    aside = sorted(tmp_path.glob("audit-*.jsonl"))
    assert len(aside) == 2
    kept = b"".join(each.read_bytes() for each in [*aside, tmp_path / NAME])
    assert kept.splitlines() == [b"%014d" % number for number in range(12 - len(kept) // 15, 12)]
    assert (tmp_path / NAME).stat().st_size < 60


def test_what_finds_no_room_is_not_there_by_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime()
    file = AuditFile(tmp_path, 1000, 2, runtime=runtime)
    file.append([b"one\n"])

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(runtime, "fsync", full)
        file.append([b"two\n", b"three\n"])
    file.append([b"two\n", b"three\n"])
    file.close()
    assert (tmp_path / NAME).read_bytes() == b"one\ntwo\nthree\n"


def test_the_states_of_however_many_nicks_take_bounded_room() -> None:
    facts = Facts()
    for number in range(12_000):
        stamp = EventId("spark", "e", number, float(number))
        noted = Noted(stamp, f"spark-n{number}!u@h", "state", "now", '{"state": "idle"}')
        assert facts.entry(noted) is not None
    assert len(facts._states) == 10_000
    again = Noted(EventId("spark", "e", 12_000, 1.0), "spark-n11999!u@h", "state", "now", '{"state": "idle"}')
    assert facts.entry(again) is None
