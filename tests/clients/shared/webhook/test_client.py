"""WebhookClient: the channel first, then the web; nobody waits, nothing is lost unseen, nothing secret is shown."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from culture.clients.shared.bus import MessageBus
from culture.clients.shared.records import Records
from culture.clients.shared.webhook import WebhookClient, texts
from culture.clients.shared.webhook.client import LINES
from culture.config.agents import AlertEvent, WebhookConfig
from tests.clients.shared.webhook.conftest import LISTED
from tests.clients.shared.webhook.test_formats import accept
from tests.support.clock import sleep
from tests.support.receiver import Receiver, hold, reset, status
from tests.support.waiting import until

NICK = "spark-claude"
CRASH = texts.crashed(NICK, 1)


class Told:
    """What happened around the client, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.slept: list[float] = []

    def say(self, place: str, text: str, *, notice: bool = False) -> None:
        assert place == "#alerts" and not notice
        self.lines.append(text)

    async def sleep(self, seconds: float) -> None:
        """No time passes, but others get their turn."""
        self.slept.append(seconds)
        await asyncio.sleep(0)


@asynccontextmanager
async def alerting(folder: Path, told: Told, *, start: bool = True, **said: Any) -> AsyncIterator[WebhookClient]:
    """A client as a daemon has it; without ``start`` the bus carries nothing."""
    records, bus = Records(folder / "records.db"), MessageBus()
    config = WebhookConfig(allow_private=LISTED, **said)
    sleep = told.sleep if said.get("attempts") else asyncio.sleep
    client = WebhookClient(
        config, told.say, nick=NICK, bus=bus, records=records, server="irc://spark.local:6667", sleep=sleep
    )
    try:
        await client.start()
        if start:
            bus.start()
        yield client
    finally:
        if start:
            await client.stop()
        await bus.stop()
        records.close()


@pytest.mark.requirement("F08", "J01", "L09")
async def test_an_alert_goes_to_the_channel_and_to_the_web(tmp_path: Path, receiver: Receiver) -> None:
    told = Told()
    async with alerting(tmp_path, told, url=receiver.url()) as client:
        client.fire("agent_error", CRASH)
        assert told.lines == [CRASH], "the channel knows before anything is posted"
        assert receiver.posts == []
        (got,) = await receiver.got()
        await until(lambda: client.status()["unknown"] == 0)
    assert got.said["text"] == CRASH and got.said["event"] == "agent_error" and got.said["severity"] == "error"
    assert got.said["link"] == "irc://spark.local:6667/%23alerts" and "X-Culture-Signature" not in got.headers


@pytest.mark.parametrize("event", get_args(AlertEvent))
@pytest.mark.requirement("J02", "J03", "J04", "J05", "J06", "J10", "K06")
async def test_each_event_goes_to_its_own_address_else_to_the_common_one(
    tmp_path: Path, receiver: Receiver, event: AlertEvent
) -> None:
    own = {f"on_{event.removeprefix('agent_')}": receiver.url("/own")}
    async with alerting(tmp_path, Told(), url=receiver.url("/all"), **own) as client:
        for each in get_args(AlertEvent):
            client.fire(each, f"[X] {each}")
            await until(lambda: f"[X] {each}" in str([got.body for got in receiver.posts]))  # noqa: B023
    assert [(got.path, got.said["event"]) for got in receiver.posts] == [
        ("/own" if each == event else "/all", each) for each in get_args(AlertEvent)
    ]


@pytest.mark.requirement("K06")
async def test_an_event_that_is_not_listed_is_told_nowhere(tmp_path: Path, receiver: Receiver) -> None:
    told = Told()
    async with alerting(tmp_path, told, url=receiver.url(), events=("agent_error",)) as client:
        client.fire("agent_complete", "[COMPLETE] x")
        client.fire("agent_error", CRASH)
        await receiver.got()
    assert told.lines == [CRASH] and [got.said["event"] for got in receiver.posts] == ["agent_error"]


async def test_without_an_address_there_is_only_the_channel(tmp_path: Path) -> None:
    told = Told()
    async with alerting(tmp_path, told) as client:
        client.fire("agent_question", texts.question(NICK, "go?"))
        assert told.lines == [f'[QUESTION] {NICK} needs input: "go?"']
        assert client.status() == {"failures": 0, "last_failure": None, "at": None, "unknown": 0}


@pytest.mark.fault("H7")
async def test_a_secret_signs_what_is_posted(tmp_path: Path, receiver: Receiver) -> None:
    async with alerting(tmp_path, Told(), url=receiver.url(), secret="correct horse") as client:
        client.fire("agent_error", CRASH)
        (got,) = await receiver.got()
    at, seen = int(got.headers["X-Culture-Timestamp"]), set[str]()
    assert accept()("correct horse", got.headers, got.body, at, seen)
    assert not accept()("correct horse", got.headers, got.body, at, seen)


@pytest.mark.requirement("J09")
async def test_the_format_may_be_said(tmp_path: Path, receiver: Receiver) -> None:
    link = "https://mesh.example.org/c/{channel}"
    async with alerting(tmp_path, Told(), url=receiver.url("/my-agents"), format="ntfy", link=link) as client:
        client.fire("agent_complete", texts.complete(NICK, "sums", "#math"), place="#math")
        (got,) = await receiver.got()
    assert got.path == "/" and got.said["topic"] == "my-agents"
    assert got.said["click"] == "https://mesh.example.org/c/%23math"


@pytest.mark.fault("H1")
async def test_one_that_never_answers_delays_nobody(tmp_path: Path, receiver: Receiver) -> None:
    assert WebhookConfig().timeout == 10.0
    receiver.answers, told = [hold], Told()
    async with alerting(tmp_path, told, url=receiver.url(), on_complete=receiver.url("/other"), timeout=0.5) as client:
        client.fire("agent_error", CRASH)
        await receiver.got()
        client.fire("agent_complete", "[COMPLETE] meanwhile")
        assert told.lines == [CRASH, "[COMPLETE] meanwhile"]
        await receiver.got(2)
        await until(lambda: client.status()["failures"] == 1)
        assert client.status()["last_failure"] == "no answer within 0.5 s"


@pytest.mark.fault("H2")
@pytest.mark.requirement("J07")
async def test_a_failure_is_logged_and_shown_and_that_is_all(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers, told = [status(500)], Told()
    async with alerting(tmp_path, told, url=receiver.url()) as client:
        client.fire("agent_error", CRASH)
        await until(lambda: client.status()["failures"] == 1)
        shown = client.status()
        client.fire("agent_error", "[ERROR] another")
        await receiver.got(2)
    assert shown["last_failure"] == "127.0.0.2 answered 500" and shown["at"] is not None and shown["unknown"] == 0
    assert f"{NICK}: the alert agent_error was not posted: 127.0.0.2 answered 500" in caplog.text
    assert [got.said["text"] for got in receiver.posts] == [CRASH, "[ERROR] another"], "tried once each"
    assert told.lines == [CRASH, "[ERROR] another"]


@pytest.mark.fault("H2")
async def test_with_three_attempts_it_comes_through(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answers, told = [status(429, Retry_After="7"), reset], Told()
    async with alerting(tmp_path, told, url=receiver.url(), attempts=3) as client:
        client.fire("agent_error", CRASH)
        posts = await receiver.got(3)
        assert client.status()["failures"] == 0
    first, second = told.slept[:2]
    assert 7.5 <= first <= 8.0 and 1.0 <= second <= 2.0
    assert len({got.said["id"] for got in posts}) == 1, "a receiver knows it again"


@pytest.mark.fault("H2")
async def test_after_three_attempts_it_is_told_once(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers, told = [status(503), reset, status(500)], Told()
    async with alerting(tmp_path, told, url=receiver.url(), attempts=3) as client:
        client.fire("agent_error", CRASH)
        await until(lambda: client.status()["failures"] == 1)
    assert len(receiver.posts) == 3 and caplog.text.count("was not posted") == 1


@pytest.mark.fault("H2", "H5")
async def test_what_cannot_get_better_is_not_tried_again(tmp_path: Path, receiver: Receiver) -> None:
    told = Told()
    url = f"http://127.0.0.1:{receiver.port}/s3cret"
    async with alerting(tmp_path, told, url=url, on_complete=receiver.url(), attempts=3) as client:
        receiver.answers = [status(403)]
        client.fire("agent_error", CRASH)
        await until(lambda: client.status()["failures"] == 1)
        assert "not listed in allow_private" in str(client.status()["last_failure"])
        client.fire("agent_complete", "[COMPLETE] x")
        await until(lambda: client.status()["failures"] == 2)
    assert len(receiver.posts) == 1 and told.slept == []


@pytest.mark.fault("H6")
async def test_the_address_is_never_shown(tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told = Told()
    receiver.answers = [status(404), status(302, Location="http://10.0.0.1/s3cret"), reset, status(204)]
    urls = {
        "on_error": receiver.url("/hook/s3cret"),
        "on_question": "http://[::1/s3cret",
        "on_timeout": "https://user:s3cret@no-such-host.invalid/s3cret",
        "on_spiraling": "http://127.0.0.2:port-s3cret/",
    }
    async with alerting(tmp_path, told, **urls) as client:
        for number in range(1, 4):
            client.fire("agent_error", CRASH)
            await until(lambda: client.status()["failures"] == number)  # noqa: B023
            assert "s3cret" not in repr(client.status())
        client.fire("agent_error", CRASH)
        for event in ("agent_question", "agent_timeout", "agent_spiraling"):
            client.fire(event, "[X] x")  # type: ignore[arg-type]
        await until(lambda: client.status()["failures"] == 6)
        assert "s3cret" not in repr((client.status(), vars(client)["_config"]))
    assert caplog.text.count("was not posted") == 6
    assert "s3cret" not in caplog.text + "".join(told.lines)


def counted(receiver: Receiver, key: str) -> int:
    """How many alerts were told of, in full or in number."""
    lines = "\n".join(got.said[key] for got in receiver.posts).splitlines()
    return sum(int(line.split()[2]) if line.startswith("… and ") else 1 for line in lines)


@pytest.mark.fault("H8")
async def test_ten_thousand_at_once_are_a_few_posts_and_lines(tmp_path: Path, receiver: Receiver) -> None:
    told = Told()
    async with alerting(tmp_path, told, url=receiver.url(), format="discord") as client:
        for number in range(10_000):
            client.fire("agent_complete", f"[COMPLETE] {number}")
        client.fire("agent_error", CRASH)
        await until(lambda: counted(receiver, "content") == 10_001)
    assert len(receiver.posts) <= 2 and "crashed: process exited" in receiver.posts[0].said["content"].splitlines()[0]
    assert len(told.lines) <= LINES[0] + 2
    assert told.lines[-1] == f"{CRASH} … and 9990 more"


@pytest.mark.fault("H10")
async def test_killed_before_it_was_sent_it_is_known_and_not_sent_again(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """The first run never gets to send; the second is killed while the answer is awaited."""
    async with alerting(tmp_path, Told(), start=False, url=receiver.url()) as client:
        client.fire("agent_error", CRASH)
        client.fire("agent_error", "[ERROR] another")
    assert receiver.posts == []
    receiver.answers = [hold]
    async with alerting(tmp_path, Told(), url=receiver.url()) as client:
        assert client.status()["unknown"] == 2
        assert "unknown whether 127.0.0.2 was told of 2 alert(s)" in caplog.text and CRASH in caplog.text
        assert "s3cret" not in caplog.text
        client.fire("agent_complete", "[COMPLETE] x")
        await receiver.got(1)
        client.stop = _at_once  # type: ignore[method-assign]
    async with alerting(tmp_path, Told(), url=receiver.url()) as client:
        assert client.status()["unknown"] == 3
        client.fire("agent_error", "[ERROR] at last")
        await receiver.got(2)
    assert [got.said["text"] for got in receiver.posts] == ["[COMPLETE] x", "[ERROR] at last"]


async def _at_once() -> None:
    pass


@pytest.mark.fault("H10")
async def test_what_arrived_leaves_nothing_behind(tmp_path: Path, receiver: Receiver) -> None:
    told = Told()
    async with alerting(tmp_path, told, url=receiver.url()) as client:
        for _ in range(30):
            client.fire("agent_error", CRASH)
        await until(lambda: counted(receiver, "text") == 30)
    assert told.lines[-1] == f"{CRASH} … and 19 more"
    async with alerting(tmp_path, Told(), url=receiver.url()) as client:
        assert client.status()["unknown"] == 0


@pytest.mark.fault("H10")
async def test_a_stop_gives_what_is_under_way_a_moment(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answers = [hold]
    async with alerting(tmp_path, Told(), url=receiver.url()) as client:
        client.fire("agent_error", CRASH)
        await receiver.got()
        stopping = asyncio.create_task(client.stop())
        await sleep(0.05)
        assert not stopping.done()
        receiver.released.set()
        await stopping
        assert client.status()["failures"] == 1, "it hung up without an answer, and that is known"
    async with alerting(tmp_path, Told(), url=receiver.url()) as client:
        assert client.status()["unknown"] == 0


async def test_a_full_disk_keeps_no_alert_back(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    class Full(Told):
        def say(self, place: str, text: str, *, notice: bool = False) -> None:
            raise sqlite3.OperationalError("database or disk is full")

    async with alerting(tmp_path, Full(), url=receiver.url()) as client:
        with sqlite3.connect(tmp_path / "records.db") as records:
            records.execute("DROP TABLE alerts")
        records.close()
        client.fire("agent_error", CRASH)
        (got,) = await receiver.got()
        with sqlite3.connect(tmp_path / "records.db") as records:
            records.execute("CREATE TABLE alerts (count INTEGER, state TEXT)")
        records.close()
    assert got.said["text"] == CRASH and "cannot be noted" in caplog.text and "disk is full" in caplog.text
