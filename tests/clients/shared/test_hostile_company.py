"""Hostile company: many names for one agent, an agent that hides from people, a server that refuses a fact."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from culture.clients.shared.desk import RequestFailed
from culture.clients.shared.inbox import Inbox
from culture.clients.shared.message_buffer import MOST_TALKS, MessageBuffer
from culture.clients.shared.notes import Notes
from culture.clients.shared.presence import Presence
from culture.clients.shared.records import Records
from culture.protocol.vocabulary import AgentState, UserClass, UserKey
from culture.server.ircd import IRCd
from culture.transport import Message, NotSent
from tests.clients.shared.test_daemon import NICK
from tests.support.agents import agents_yaml, running
from tests.support.waiting import until


@pytest.fixture
def records(home: Path) -> Iterator[Records]:
    made = Records(home / "inbox" / "spark-bot.db")
    yield made
    made.close()


def by(sender: str, number: int, place: str = "#general", *, private: bool = False) -> Message:
    now = datetime.now(UTC)
    return Message(place, sender, "hello", now, f"m{number}", kind=UserClass.AGENT, private=private)


def test_an_agent_is_the_same_however_its_name_is_written(records: Records) -> None:
    inbox = Inbox(records, Notes(records))
    for number, (sender, place) in enumerate([("spark-Bob", "#General"), ("SPARK-BOB", "#general")]):
        inbox.receive(by(sender, number, place))
        inbox.end(inbox.begin(inbox.unread(), "hello"), "done")
    assert inbox.lately("spark-bob", "#GENERAL").by_sender == 2
    assert inbox.lately("spark-bob", "#GENERAL").in_channel == 2


def test_whoever_writes_under_ever_new_names_does_not_fill_the_memory() -> None:
    buffer = MessageBuffer(5)
    buffer.add(by("spark-ori", 0))
    for number in range(3 * MOST_TALKS):
        buffer.add(by(f"spark-eve{number}", number, f"spark-eve{number}", private=True))
    assert len(buffer) == MOST_TALKS + 1
    assert [message.sender for message in buffer.read("#general")] == ["spark-ori"]
    assert len(buffer.read(f"spark-eve{3 * MOST_TALKS - 1}")) == 1


def test_what_is_delivered_again_is_read_once() -> None:
    buffer = MessageBuffer(5)
    for message in (by("spark-ori", 1), by("spark-ori", 1), by("spark-ori", 2)):
        buffer.add(message)
    assert [message.msgid for message in buffer.read("#general")] == ["m1", "m2"]


async def test_no_agent_leaves_the_channel_in_which_people_hear_of_its_troubles(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK})
    async with running(config, NICK) as daemon:
        with pytest.raises(RequestFailed, match="alerts"):
            await daemon.service.part("#ALERTS")
        assert "#alerts" in daemon.transport.channels
        await daemon.service.part("#general")


class Strict:
    """A server that refuses one key, and breaks once."""

    connected = True

    def __init__(self) -> None:
        self.broken = True
        self.has: dict[str, str] = {}

    async def set_away(self, text: str) -> None:
        if self.broken:
            self.broken = False
            raise RuntimeError("our own fault")

    async def set_metadata(self, key: str, value: str) -> None:
        if key == UserKey.TASK.value:
            raise NotSent("not such a value", "VALUE_INVALID")
        self.has[key] = value


class Slow(Strict):
    """A server that takes its time, and has too much to do for the first thing it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = False
        self.away = ""
        self.hears = asyncio.Event()
        self.refusals = 0

    async def set_away(self, text: str) -> None:
        await self.hears.wait()
        self.away = text

    async def set_metadata(self, key: str, value: str) -> None:
        if self.refusals:
            self.refusals -= 1
            raise NotSent("one after the other, please", "RATE_LIMITED")
        self.has[key] = value


async def test_what_changes_while_it_is_being_told_is_told_as_well() -> None:
    server = Slow()
    presence = Presence(server)  # type: ignore[arg-type]
    presence.start()
    presence.show(AgentState.PAUSED)
    for _ in range(5):
        await asyncio.sleep(0)
    presence.show(AgentState.WORKING)
    server.hears.set()
    await until(lambda: server.has.get(UserKey.STATE.value) == AgentState.WORKING.value)
    presence.note({UserKey.TASK: "tea"})
    await until(lambda: UserKey.TASK.value in server.has)
    assert server.away == ""
    await presence.stop()


async def test_what_the_server_does_not_take_for_now_is_told_again() -> None:
    server = Slow()
    server.hears.set()
    server.refusals = 1
    presence = Presence(server, again=0.01)  # type: ignore[arg-type]
    presence.start()
    presence.show(AgentState.WORKING)
    await until(lambda: server.has.get(UserKey.STATE.value) == AgentState.WORKING.value)
    await presence.stop()


async def test_a_fact_that_is_refused_does_not_keep_others_from_being_told() -> None:
    server = Strict()
    presence = Presence(server)  # type: ignore[arg-type]
    presence.start()
    presence.show(AgentState.PAUSED)
    await until(lambda: not server.broken)
    await asyncio.sleep(0)
    presence.show(AgentState.WORKING, task="x\x00y")
    await until(lambda: UserKey.SINCE.value in server.has)
    assert server.has[UserKey.STATE.value] == AgentState.WORKING.value
    await presence.stop()
