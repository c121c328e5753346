"""The users of a server as lines, and back; what does not fit is no roster."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture import protocol
from culture.config.links import LinkConfig as Settings
from culture.federation import settings
from culture.federation.codec import Garbled
from culture.federation.roster import Intake, Roster, burst
from culture.federation.topology import read_state
from culture.protocol.message import Message
from culture.protocol.modes import ModeChange
from culture.server.events import Arrived, AwaySet, Joined, MetadataSet, Parted, RealnameSet, UserModeSet
from tests.federation.sides import Clock, Side

PAGE = (Path(protocol.__file__).parent / "extensions" / "federation.md").read_text(encoding="utf-8")
LINK = Settings(name="thor", secret="x" * 16)
Acts = list[tuple[str, str, str, str]]
nicks = st.sampled_from(["spark-a", "spark-B", "spark-c"])
rooms = st.sampled_from(["#one", "#Two"])
texts = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=20)


def source(side: Side, nick: str) -> str:
    user = side.network.user(nick)
    return user.source if user is not None else f"{nick}!u@h"


def act(side: Side, kind: str, nick: str, room: str, text: str) -> None:
    """Somebody of the server does something."""
    if side.network.user(nick) is None:
        side.publish(
            Arrived(side.stamp(), nick, "u", "h", text, side.name, f"account{len(text)}" if text else None, "agent")
        )
    by = source(side, nick)
    match kind:
        case "join":
            side.publish(Joined(side.stamp(), by, room, "ov" if text else ""))
        case "part":
            side.publish(Parted(side.stamp(), by, room))
        case "away":
            side.publish(AwaySet(side.stamp(), by, text or None))
        case "name":
            side.publish(RealnameSet(side.stamp(), by, text))
        case "bot":
            side.publish(UserModeSet(side.stamp(), by, (ModeChange(bool(text), "B"),)))
        case "data":
            side.publish(MetadataSet(side.stamp(), by, nick, "key", text or None))


acts = st.lists(
    st.tuples(st.sampled_from(["join", "part", "away", "name", "bot", "data"]), nicks, rooms, texts), max_size=12
)


def hear(side: Side, other: Side) -> bool:
    """One server hears the other's roster as it goes over the wire; was anything new?"""
    lines = [Message.parse(str(line)) for line in burst(side.network, "spark", "spark", "e", 9, LINK)]
    roster = Roster("spark", "spark", "e", 9)
    for line in lines[1:-1]:
        roster.take(line)
    return Intake(other.host, roster, "gone").take()


@pytest.mark.requirement("E04")
@given(acts, acts)
def test_what_a_server_says_of_its_users_is_known_elsewhere(
    before: list[tuple[str, ...]], after: list[tuple[str, ...]]
) -> None:
    clock = Clock()
    spark, thor = Side("spark", clock), Side("thor", clock)
    for each in before:
        act(spark, *each)
    hear(spark, thor)
    assert thor.picture()["users"] == spark.picture()["users"]
    for each in after:
        act(spark, *each)
    hear(spark, thor)
    assert thor.picture()["users"] == spark.picture()["users"]
    assert not hear(spark, thor)


@pytest.mark.parametrize(
    "line",
    [
        ":spark NICK thor-bob 1 u h spark + :somebody else's",
        ":spark NICK spark-o!ri 1 u h spark + :two names",
        ":spark NICK spark-ori 1 u h spark",
        "@away=one\\ntwo :spark NICK spark-ori 1 u h spark + :two lines",
        '@meta={"a":1} :spark NICK spark-ori 1 u h spark + :no text',
        ":spark NJOIN room 1 +nt spark-ori",
        ":spark NJOIN #room 1 spark-ori",
        ":spark NJOIN #room one +nt spark-ori",
        ":spark NJOIN #room 1 +nt %spark-ori",
        ":spark PRIVMSG #room :hello",
    ],
)
@pytest.mark.fault("D15")
def test_what_does_not_belong_there_is_refused(line: str) -> None:
    roster = Roster("spark", "spark", "e", 1)
    with pytest.raises((Garbled, ValueError, KeyError)):
        roster.take(Message.parse(line))
        Intake(Side("thor", Clock()).host, roster, "gone").take()


def test_a_member_that_nobody_told_of_is_refused() -> None:
    roster = Roster("spark", "spark", "e", 1)
    roster.take(Message.parse(":spark NJOIN #room 1 +nt :@spark-ori"))
    with pytest.raises(Garbled, match="not on spark"):
        Intake(Side("thor", Clock()).host, roster, "gone").take()


@pytest.mark.fault("D16")
def test_ten_thousand_users_in_a_thousand_channels() -> None:
    """How long that takes is for the benchmark to say."""
    clock = Clock()
    spark, thor = Side("spark", clock), Side("thor", clock)
    for number in range(10_000):
        nick = f"spark-u{number}"
        spark.publish(Arrived(spark.stamp(), nick, "u", "h", "r", "spark"))
        spark.publish(Joined(spark.stamp(), f"{nick}!u@h", f"#c{number % 1_000}", "" if number >= 1_000 else "o"))
        spark.publish(Joined(spark.stamp(), f"{nick}!u@h", "#all", "" if number else "o"))
    assert hear(spark, thor)
    assert thor.picture() == {**spark.picture(), "channels": thor.picture()["channels"]}
    assert {name: len(channel.members) for name, channel in thor.network.channels.items()} == {
        "#all": 10_000,
        **{f"#c{number}": 10 for number in range(1_000)},
    }
    assert not hear(spark, thor)


def test_the_examples_of_the_page_are_read() -> None:
    lines = [Message.parse(line.strip()) for line in PAGE.splitlines() if line.startswith("    ")]
    roster = Roster("spark", "spark.local", "5f3a9c01", 1042)
    for line in lines:
        is_person = line.verb == "NICK" and len(line.params) == 7 and line.params[0].startswith("spark-")
        if is_person or line.verb == "NJOIN":
            roster.take(line)
    assert roster.channels["#general"].ranks == {"spark-ori": "o", "spark-claude": "v", "spark-bob": ""}
    [told] = [settings.read(line) for line in lines if line.verb == "CHANNEL"]
    assert told.topic is not None and told.topic.text == "The mesh" and told.lives and set(told.lists["b"])
    [(server, state)] = [read_state(line) for line in lines if line.verb == "LINKSTATE"]
    assert (server, state.peers) == ("spark", {"thor"})
