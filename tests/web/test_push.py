"""Waking phones: for one's name and for private words, and for nothing else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from culture.cli.web.command import post
from culture.server.ircd import IRCd
from culture.transport import ClientIdentity
from culture.web.connection_pool import WebConnectionPool
from culture.web.page import WebPerson
from culture.web.push import NotPushed, Push, Pusher
from culture.web.slash_commands import send_input
from tests.support.client import Client, connected
from tests.support.people import PASSWORD, authenticate, come_in, plain
from tests.support.receiver import receiving
from tests.support.waiting import until
from tests.support.web import settings_for
from tests.web.test_rooms import client_of

TOPIC = "https://ntfy.example/a-topic"


class Phone:
    """What a phone shows."""

    def __init__(self) -> None:
        self.shown: list[Push] = []

    async def post(self, address: str, push: Push) -> None:
        assert address == TOPIC
        self.shown.append(push)

    @property
    def texts(self) -> list[str]:
        return [push.text for push in self.shown]


@asynccontextmanager
async def pushing(
    folder: Path, ircd: IRCd, phone: Phone, **limits: float
) -> AsyncIterator[tuple[WebConnectionPool, Pusher]]:
    """A page that wakes ori's phone; nobody looks at it."""
    settings = settings_for(folder, ircd.port)

    def identity_of(person: WebPerson) -> ClientIdentity:
        return ClientIdentity(person.nick, settings.account, settings.token, bot=False, on_behalf=person.account)

    connections = WebConnectionPool(settings.address, identity_of, "#general", on_refused=lambda _account: None)
    pusher = Pusher(
        {"ori": TOPIC},
        "https://chat.example.org",
        connections,
        settings.nick_of,
        phone.post,
        **{"delay": 0.05, **limits},  # type: ignore[arg-type]
    )
    pusher.start()
    try:
        await until(lambda: connections.get("ori"))
        yield connections, pusher
    finally:
        await pusher.stop()
        await connections.close()


@asynccontextmanager
async def agent(ircd: IRCd) -> AsyncIterator[Client]:
    async with connected(ircd.port) as client:
        await authenticate(client, "PLAIN", plain("claude", PASSWORD))
        await come_in(client, "spark-claude")
        client.send("JOIN #general")
        await client.sync()
        yield client


@pytest.mark.fault("J3")
async def test_a_phone_is_woken_for_a_name_and_for_private_words_and_not_for_chatter(
    tmp_path: Path, ircd: IRCd
) -> None:
    phone = Phone()
    async with pushing(tmp_path, ircd, phone), agent(ircd) as claude, client_of(ircd, "ada") as ada:
        for line in ("PRIVMSG #general :chatter", "PRIVMSG #general :@ada look", "NOTICE #general :@ori a notice"):
            claude.send(line)
        for line in ("PRIVMSG #general :@all everybody", "NOTICE spark-ori :by the way", "PRIVMSG spark-ada :psst"):
            claude.send(line)
        ada.send("PRIVMSG #general :hello all")
        await claude.sync()
        claude.send("PRIVMSG #general :@ori the build \x02broke\x02")
        await until(lambda: len(phone.shown) == 1)
        claude.send("PRIVMSG spark-ori :which branch?")
        await until(lambda: len(phone.shown) == 2)
        assert phone.shown == [
            Push("spark-claude in #general", "@ori the build broke", "https://chat.example.org/rooms/%23general"),
            Push("spark-claude", "which branch?", "https://chat.example.org/rooms/spark-claude"),
        ]


async def test_what_is_read_meanwhile_wakes_nobody(tmp_path: Path, ircd: IRCd) -> None:
    phone = Phone()
    async with pushing(tmp_path, ircd, phone, delay=1.5), agent(ircd) as claude, client_of(ircd, "ori") as ori:
        claude.send("PRIVMSG #general :@ori read")
        await ori.expect("PRIVMSG", "#general")
        ori.send("MARKREAD #general timestamp=2099-01-01T00:00:00.000Z")
        await ori.sync()
        claude.send("PRIVMSG spark-ori :not read")
        await until(lambda: phone.shown)
        assert phone.texts == ["not read"]


async def test_whoever_is_away_is_left_alone(tmp_path: Path, ircd: IRCd) -> None:
    phone = Phone()
    async with pushing(tmp_path, ircd, phone) as (connections, pusher), agent(ircd) as claude:
        connection = connections.get("ori")
        assert connection is not None
        await send_input(connection.irc, "#general", "/away do not disturb")
        claude.send("PRIVMSG spark-ori :urgent")
        assert (await claude.expect("301")).params[-1] == "do not disturb"
        await until(lambda: connection.conversations.get("spark-claude"))
        await until(lambda: not pusher.pending)
        await send_input(connection.irc, "#general", "/away")
        claude.send("PRIVMSG spark-ori :later")
        await until(lambda: phone.shown)
        assert phone.texts == ["later"]
        assert connection.conversations.get_or_add("spark-claude", private=True).unread == 2


async def test_many_wake_the_phone_a_few_times(tmp_path: Path, ircd: IRCd) -> None:
    phone = Phone()
    async with pushing(tmp_path, ircd, phone, burst=2, period=3600.0) as (connections, pusher), agent(ircd) as claude:
        connection = connections.get("ori")
        assert connection is not None
        for number in range(6):
            claude.send(f"PRIVMSG spark-ori :number {number}")
        await until(
            lambda: (
                connection.conversations.get("spark-claude")
                and connection.conversations.get_or_add("spark-claude", private=True).unread == 6
            )
        )
        await until(lambda: not pusher.pending)
        assert phone.texts == ["number 0", "number 1"]
        pusher._period = 0.0  # as if it were over
        claude.send("PRIVMSG spark-ori :once more")
        await until(lambda: len(phone.shown) == 3)
        assert phone.texts[2] == "once more\n(and 4 more before)"


async def test_a_push_is_one_post_to_the_topic() -> None:
    async with receiving() as ntfy:
        await post(ntfy.url("/a-topic"), Push("spark-claude", "which branch?", "https://chat.example.org/rooms/x"))
        (received,) = ntfy.posts
        assert received.path == "/"
        assert received.said == {
            "topic": "a-topic",
            "title": "spark-claude",
            "message": "which branch?",
            "click": "https://chat.example.org/rooms/x",
        }
    with pytest.raises(NotPushed) as failure:
        await post("http://127.0.0.1:1/a-secret-topic", Push("a", "b", "c"))
    assert "a-secret-topic" not in str(failure.value)
