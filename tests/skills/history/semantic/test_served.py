"""HISTORY SEMANTIC over TCP, from what is said to what is found."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from culture.config.skills import Embeddings, HistoryConfig
from culture.protocol.message import Message
from culture.skills.history.semantic.finder import SWITCHED_OFF
from tests.skills.history.semantic.searches import stored
from tests.support.client import Client, registered
from tests.support.servers import Serve
from tests.support.waiting import PATIENCE

DOG = "the puppy chased a cat through the garden"
MONEY = "the bank raised interest rates again"
ASK = "HISTORY SEMANTIC #pets :animals running outside"


async def until(client: Client, line: str, holds: Callable[[list[str]], bool]) -> list[str]:
    """Ask until the answer is as it should be; what was just said needs a moment."""
    async with asyncio.timeout(PATIENCE):
        while not holds(texts := [message.params[-1] for message in rows(await client.ask(line))]):
            pass
        return texts


def rows(answer: list[Message]) -> list[Message]:
    return [message for message in answer if message.verb == "HISTORY"]


def vectors(folder: Path) -> int:
    """How many there are in the only file below a folder."""
    (path,) = folder.rglob("vectors.db")
    return len(stored(path.parent))


@pytest.mark.requirement("D10")
async def test_what_is_said_is_found_by_meaning_until_it_is_taken_back(serve: Serve, tmp_path: Path) -> None:
    async with (
        serve(history=HistoryConfig()) as ircd,
        registered(ircd.port, "spark-ada", "echo-message message-tags draft/message-redaction") as ada,
    ):
        await ada.join("#pets")
        ada.send(f"PRIVMSG #pets :{MONEY}")
        ada.send(f"PRIVMSG #pets :{DOG}")
        said = await ada.expect("PRIVMSG", "#pets", DOG)
        assert (await until(ada, ASK, lambda texts: len(texts) == 2))[0] == DOG
        ada.send(f"REDACT #pets {said.tags['msgid']}")
        await until(ada, ASK, lambda texts: texts == [MONEY])
        async with asyncio.timeout(PATIENCE):
            while vectors(tmp_path) > 1:
                await ada.sync()


async def test_the_history_of_a_renamed_channel_is_found(serve: Serve) -> None:
    async with (
        serve(history=HistoryConfig()) as ircd,
        registered(ircd.port, "spark-ada", "draft/channel-rename") as ada,
    ):
        await ada.join("#zoo")
        ada.send(f"PRIVMSG #zoo :{DOG}")
        ada.send("RENAME #zoo #pets")
        await until(ada, ASK, lambda texts: texts == [DOG])


async def test_where_it_is_switched_off_that_is_said(serve: Serve) -> None:
    off = HistoryConfig(semantic=Embeddings(enabled=False))
    async with serve(history=off) as ircd, registered(ircd.port, "spark-ada") as ada:
        await ada.join("#pets")
        ada.send(ASK)
        failed = await ada.expect("FAIL", "HISTORY")
        assert failed.params[1] == "SEMANTIC_UNAVAILABLE"
        assert failed.params[-1] == SWITCHED_OFF
