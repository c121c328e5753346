"""Long answers: made as their client reads, a piece per turn, true at the time they are sent."""

import pytest

from culture.protocol.modes import ModeChange
from culture.server.channels.join_reply import names_rows
from culture.server.context import Context
from culture.server.core.session import Session
from culture.server.events import Arrived, Joined, ModeSet, Parted
from culture.server.ircd import IRCd
from culture.server.net.connection import ClientConnection
from tests.support.client import connected, registered
from tests.support.servers import Serve


def populate(ircd: IRCd, channel: str, members: int) -> list[str]:
    """Put users without a session into a channel; their sources."""
    router = ircd.parts.router
    sources = []
    for number in range(members):
        nick = f"spark-member{number}"
        router.publish(Arrived(router.ids.stamp(), nick, "~u", "host", "R", "spark"))
        sources.append(router.network.users[nick].source)
        router.publish(Joined(router.ids.stamp(), sources[-1], channel))
    return sources


def session_of(ircd: IRCd, nick: str) -> Session:
    """The session of this nick."""
    return next(each for each in ircd.parts.sessions if each.user is not None and each.user.nick == nick)


@pytest.mark.fault("B1")
async def test_a_long_answer_lets_others_in_between(serve: Serve) -> None:
    """B1: also where the socket takes all of it at once, a turn makes one piece of it."""
    async with serve() as ircd, registered(ircd.port, "spark-ori") as ori, connected(ircd.port) as ada:
        populate(ircd, "#big", 500)
        await ada.register("spark-ada")
        session = session_of(ircd, "spark-ada")
        ada.send_raw(b"NAMES #big\r\n" * 40)
        while not session.is_pulling:
            await ori.sync()
        await ori.sync()
        assert session.is_pulling
        ada.send("PING done")
        ends, last = 0, b""
        while b"PONG" not in last:
            last = await ada.line()
            ends += b" 366 " in last
        assert ends == 40


@pytest.mark.fault("B1")
async def test_many_short_answers_at_once_are_no_more_than_a_long_one(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B1: what one read asks for is not all queued in one turn."""
    most, flush = 0, ClientConnection.flush

    def measured(connection: ClientConnection) -> None:
        nonlocal most
        most = max(most, sum(map(len, connection.queue)))
        flush(connection)

    monkeypatch.setattr(ClientConnection, "flush", measured)
    async with serve(limits={"pull_queue": 20_000}) as ircd, registered(ircd.port, "spark-ori") as ori:
        populate(ircd, "#big", 300)
        ori.send_raw(b"NAMES #big\r\n" * 1000)
        answer = await ori.sync()
    assert sum(each.verb == "366" for each in answer) == 1000
    assert 20_000 <= most <= 20_512


async def test_names_fit_beside_the_longest_names(serve: Serve) -> None:
    """RFC 2812 §2.3: no nick is cut off where the channel and the one who asks have long names."""
    channel = "#" + "c" * 63
    async with serve() as ircd, registered(ircd.port, "spark-" + "n" * 26) as ori:
        populate(ircd, channel, 100)
        rows = [each for each in await ori.join(channel) if each.verb == "353"]
    assert sorted(nick for row in rows for nick in row.params[-1].split(" ")) == sorted(
        [ori.nick, *(f"spark-member{number}" for number in range(100))]
    )


async def test_names_leave_out_who_left_meanwhile(serve: Serve) -> None:
    """A nick in NAMES after its PART would stay in the client's list for ever; what changed is shown as it is."""
    async with serve() as ircd, registered(ircd.port, "spark-ori"):
        sources = populate(ircd, "#a", 100)
        router = ircd.parts.router
        rows = names_rows(Context(ircd.parts, session_of(ircd, "spark-ori")), router.network.channels["#a"])
        shown = next(rows).params[-1].split(" ")
        for source in sources[len(shown) :: 2]:
            router.publish(Parted(router.ids.stamp(), source, "#a"))
        first, *others = (f"spark-member{number}" for number in range(len(shown) + 1, 100, 2))
        router.publish(ModeSet(router.ids.stamp(), "spark", "#a", (ModeChange(True, "o", first),)))
        rest = [nick for row in rows for nick in row.params[-1].split(" ")]
    assert rest == [f"@{first}", *others]
