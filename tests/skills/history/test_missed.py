"""HISTORY MISSED: what came for somebody since a message or a time, wherever it was said."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from culture.config.skills import Embeddings, HistoryConfig
from culture.protocol.message import Message
from tests.skills.history.playing import CAPS, END, answer, missed, room
from tests.support.client import Client
from tests.support.fuzz import variants
from tests.support.lockholder import locked
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.requirement("F23")
ADA, BEN, CYD = "spark-ada", "spark-ben", "spark-cyd"
LONG_AGO = "timestamp=2000-01-01T00:00:00.000Z"


def small(rows: int) -> HistoryConfig:
    return HistoryConfig(rows=rows, semantic=Embeddings(enabled=False))


async def failure(client: Client, *references: str) -> tuple[str, ...]:
    await client.sync()
    [said] = await client.ask(f"HISTORY MISSED {' '.join(references)}".rstrip())
    assert (said.verb, said.params[0]) == ("FAIL", "HISTORY")
    return said.params[1:-1]


def of(messages: Sequence[Message], number: int) -> str:
    return f"msgid={messages[number].tags['msgid']}"


async def test_all_channels_and_private_talks_are_in_it(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        ada = await here.join(ADA, "#one", "#two")
        ben = await here.join(BEN, "#one", "#two", "#three")
        first = await here.say(ben, "#one", "seen")
        await here.say(ben, "#two", "two")
        await here.say(ben, "#three", "not hers")
        await here.say(ben, ADA, "private")
        await here.say(ada, BEN, "back")
        await here.say(ben, "#one", "one")
        assert await missed(ada, of(first, 0)) == ["two", "private", "back", "one"]
        found, end = await answer(ada, of(first, 0))
        assert end == END
        assert [row.params[0] for row in found] == ["#two", ADA, BEN, "#one"]
        assert all(row.tags["msgid"] and row.tags["time"] for row in found)


async def test_the_first_known_reference_counts(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        ada, ben = await here.join(ADA, "#one"), await here.join(BEN, "#one", "#hers")
        said = []
        for text in "abcd":
            said += await here.say(ben, "#one", text)
            await ben.ask("HISTORY RECENT #one 1")  # it is on disk before the clock goes on
            here.clock.now += 60
        elsewhere = await here.say(ben, "#hers", "secret")
        assert await missed(ada, of(said, 2), of(said, 0), LONG_AGO) == ["d"]
        assert await missed(ada, "msgid=spark.gone.7", of(said, 1)) == ["c", "d"]
        assert await missed(ada, of(elsewhere, 0), of(said, 1)) == ["c", "d"]
        assert await missed(ada, "msgid=spark.gone.7", LONG_AGO) == ["a", "b", "c", "d"]
        assert await missed(ada, f"timestamp={said[2].tags['time']}") == ["c", "d"]
        assert await missed(ada, of(said, 3)) == []


async def test_more_than_fits_goes_on_from_the_last(tmp_path: Path) -> None:
    async with room(tmp_path, history=small(3)) as here:
        ada, ben = await here.join(ADA, "#one", "#two"), await here.join(BEN, "#one", "#two")
        texts = [str(number) for number in range(8)]
        said = [(await here.say(ben, "#two" if number % 2 else "#one", text))[0] for number, text in enumerate(texts)]
        found, end = await answer(ada, of(said, 0))
        assert [row.params[1] for row in found] == ["1", "2", "3"]
        assert end == ("*", of(said, 3), "More")
        assert await missed(ada, of(said, 0)) == texts[1:]
        _, end = await answer(ada, of(said, 4))
        assert end == END


async def test_who_knows_no_batches_gets_the_lines(tmp_path: Path) -> None:
    async with room(tmp_path, history=small(1)) as here:
        ada, ben = await here.join(ADA, "#one", caps=""), await here.join(BEN, "#one")
        said = await here.say(ben, "#one", "a", "b", "c")
        await ada.sync()
        rows = await ada.ask(f"HISTORY MISSED {of(said, 0)}")
        assert [str(row) for row in rows] == [
            f":{said[1].source} PRIVMSG #one b",
            f":spark HISTORYEND * {of(said, 1)} More",
        ]


async def test_several_lines_are_a_batch_inside(tmp_path: Path) -> None:
    caps = f"{CAPS} draft/multiline"
    async with room(tmp_path) as here:
        ada, ben = await here.join(ADA, "#one", caps=caps), await here.join(BEN, "#one", caps=caps)
        ben.send("BATCH +m draft/multiline #one")
        ben.send("@batch=m PRIVMSG #one :one")
        ben.send("@batch=m PRIVMSG #one :two")
        ben.send("BATCH -m")
        await ada.expect("BATCH", where=lambda said: said.params[0].startswith("-"))
        found, _ = await answer(ada, LONG_AGO)
        opening, *texts, closing = found
        assert (opening.params[1:], closing.verb) == (("draft/multiline", "#one"), "BATCH")
        assert [row.params[1] for row in texts] == ["one", "two"]


async def test_a_message_that_was_taken_back_is_left_out(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        ada, ben = await here.join(ADA, "#one"), await here.join(BEN, "#one", caps=f"{CAPS} draft/message-redaction")
        said = await here.say(ben, "#one", "a", "b", "c")
        ben.send(f"REDACT #one {of(said, 1).removeprefix('msgid=')}")
        await ben.expect("REDACT")
        assert await missed(ada, of(said, 0)) == ["c"]
        assert await missed(ada, of(said, 1)) == ["c"]


async def test_an_account_gets_what_was_said_to_it_while_it_was_gone(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        ben = await here.join(BEN, account="ben")
        ada = await here.join(ADA, account="ada")
        said = await here.say(ben, ADA, "seen")
        ada.send("QUIT")
        await ada.ended()
        cyd = await here.join(CYD)
        ada = await here.join(ADA, account="ada")
        await here.say(cyd, ADA, "hello")
        await here.say(ben, ADA, "again")
        assert await missed(ada, of(said, 0)) == ["hello", "again"]


async def test_a_guest_gets_nothing_from_before_they_had_the_nick(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        ben, ada = await here.join(BEN), await here.join(ADA)
        said = await here.say(ben, ADA, "for another")
        ada.send("QUIT")
        await ada.ended()
        ada = await here.join(ADA)
        await here.say(ben, ADA, "for her")
        assert await missed(ada, LONG_AGO) == ["for her"]
        assert await failure(ada, of(said, 0)) == ("UNKNOWN_MSGID", "MISSED")


async def test_what_was_said_behind_closed_doors_is_for_who_was_there(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        ben = await here.join(BEN, "#one")
        ben.send("MODE #one +i")
        await here.say(ben, "#one", "closed")
        ben.send("PART #one")
        ada = await here.join(ADA)
        await ben.sync()
        await ada.join("#one")
        await here.say(ada, "#one", "open")
        assert await missed(ada, LONG_AGO) == ["open"]


async def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        ada = await here.join(ADA)
        assert await failure(ada) == ("NEED_MORE_PARAMS", "MISSED")
        assert await failure(ada, "42") == ("INVALID_MSGREFTYPE", "MISSED", "42")
        assert await failure(ada, "timestamp=yesterday") == ("INVALID_PARAMS", "MISSED", "timestamp=yesterday")
        assert await failure(ada, LONG_AGO, "msgid=") == ("INVALID_PARAMS", "MISSED", "msgid=")
        assert await failure(ada, "msgid=spark.e1.1", "msgid=nonsense") == ("UNKNOWN_MSGID", "MISSED")


@pytest.mark.fault("A14")
async def test_each_parameter_missing_doubled_empty_and_huge(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with room(tmp_path) as here:
        ada = await here.join(ADA, "#one")
        for line in variants(f"HISTORY MISSED msgid=spark.5f0c2a91.42 {LONG_AGO}"):
            assert await ada.ask(line) != [], line
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_labelled_question_is_answered_under_its_label(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        ada = await here.join(ADA, "#one", caps=f"{CAPS} labeled-response")
        await here.say(ada, "#one", "a")
        rows = await ada.ask(f"@label=7 HISTORY MISSED {LONG_AGO}")
        assert [row.verb for row in rows if row.tags.get("label") == "7"] == ["BATCH"]
        assert [row.params[-1] for row in rows if row.verb == "PRIVMSG"] == ["a"]
        [refusal] = await ada.ask("@label=8 HISTORY MISSED msgid=x")
        assert refusal.tags["label"] == "8"


async def test_while_the_disk_does_not_have_all_of_it_nothing_is_said(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        ada, ben = await here.join(ADA, "#one"), await here.join(BEN, "#one")
        said = await here.say(ben, "#one", "a")
        await missed(ada, of(said, 0))
        async with locked(tmp_path / "data" / "history" / "history.db"):
            await here.say(ben, "#one", "b")
            assert await failure(ada, of(said, 0)) == ("UNAVAILABLE", "MISSED")
        await wait_until_kept(ada)
        assert await missed(ada, of(said, 0)) == ["b"]


async def wait_until_kept(client: Client) -> None:
    """HISTORY RECENT waits for what was said before."""
    async with asyncio.timeout(PATIENCE):
        while (await client.ask("HISTORY RECENT #one 1"))[0].params[-1] != "b":
            pass
