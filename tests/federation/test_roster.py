"""The users of a server as lines, and back; what does not fit is no roster."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture import protocol
from culture.config.links import LinkConfig as Settings
from culture.federation import registers, settings
from culture.federation.codec import Garbled
from culture.federation.roster import Intake, Roster, burst
from culture.federation.topology import read_state
from culture.protocol.message import Message
from culture.protocol.modes import ModeChange
from culture.server.events import Arrived, AwaySet, Joined, MetadataSet, ModeSet, Parted, RealnameSet, UserModeSet
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


def line_of(side: Side) -> Message:
    """What a server says of its first channel."""
    return settings.line_of(next(iter(side.network.channels.values())), side.name)


def ranks_of(side: Side) -> dict[str, dict[str, str]]:
    """The members of each channel."""
    return {name: channel["members"] for name, channel in side.picture()["channels"].items()}


acts = st.lists(
    st.tuples(st.sampled_from(["join", "part", "away", "name", "bot", "data"]), nicks, rooms, texts), max_size=12
)


def hear(side: Side, other: Side) -> bool:
    """One server hears the other's roster as it goes over the wire; was anything new?"""
    return hear_lines(other, [Message.parse(str(line)) for line in burst(side.network, "spark", "spark", "e", 9, LINK)])


def hear_lines(other: Side, lines: Sequence[Message]) -> bool:
    """The same, line by line."""
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
    assert ranks_of(thor) == ranks_of(spark)
    assert not hear(spark, thor)


REJOIN = [("part", "spark-a", "#one", ""), ("join", "spark-a", "#one", "")]


def heard_as_operator() -> tuple[Side, Side]:
    """spark, and thor, which knows spark-a and spark-B as members and the first of them as operator."""
    clock = Clock()
    spark, thor = Side("spark", clock), Side("thor", clock)
    act(spark, "join", "spark-a", "#one", "operator")
    act(spark, "join", "spark-B", "#one", "")
    hear(spark, thor)
    assert ranks_of(thor) == {"#one": {"spark-a": "ov", "spark-b": ""}}
    return spark, thor


@pytest.mark.requirement("E04")
def test_who_came_in_again_unheard_has_the_rank_of_that_time() -> None:
    spark, thor = heard_as_operator()
    for each in REJOIN:
        act(spark, *each)
    assert hear(spark, thor)
    assert ranks_of(thor) == {"#one": {"spark-a": "", "spark-b": ""}}
    assert not hear(spark, thor)


@pytest.mark.requirement("E04")
def test_a_rank_that_was_set_before_somebody_came_in_again_is_lost() -> None:
    spark, thor = heard_as_operator()
    given = ModeSet(spark.stamp(), source(spark, "spark-a"), "#one", (ModeChange(True, "v", "spark-B"),))
    spark.do(given)
    assert registers.merge(thor.host, settings.read(line_of(spark)))
    assert ranks_of(thor)["#one"]["spark-b"] == "v"
    for kind, _, room, text in REJOIN:
        act(spark, kind, "spark-B", room, text)
    hear(spark, thor)
    assert ranks_of(thor)["#one"]["spark-b"] == ""


@pytest.mark.requirement("E04")
def test_a_rank_that_was_set_after_somebody_came_in_again_stays() -> None:
    spark, thor = heard_as_operator()
    for kind, _, room, text in REJOIN:
        act(spark, kind, "spark-B", room, text)
    thor.network.channels["#one"].clock = 9
    thor.do(ModeSet(thor.stamp(), source(thor, "spark-a"), "#one", (ModeChange(True, "v", "spark-B"),)))
    hear(spark, thor)
    assert ranks_of(thor)["#one"]["spark-b"] == "v"


@pytest.mark.requirement("E04")
def test_a_channel_that_all_left_and_founded_anew_unheard_has_its_new_ranks() -> None:
    spark, thor = heard_as_operator()
    act(spark, "part", "spark-a", "#one", "")
    act(spark, "part", "spark-B", "#one", "")
    act(spark, "join", "spark-B", "#one", "operator")
    act(spark, "join", "spark-a", "#one", "")
    hear(spark, thor)
    assert ranks_of(thor) == ranks_of(spark) == {"#one": {"spark-a": "", "spark-b": "ov"}}
    assert thor.picture()["channels"]["#one"]["founded"] == spark.picture()["channels"]["#one"]["founded"]


@pytest.mark.fault("D15")
@pytest.mark.parametrize("is_told", [True, False])
def test_an_older_server_says_nothing_of_when_its_users_came_in(is_told: bool) -> None:
    """It adds nothing to NJOIN: a rank without a mark is as their own server says, one that was set stays."""
    spark, thor = heard_as_operator()
    thor.do(ModeSet(thor.stamp(), source(thor, "spark-a"), "#one", (ModeChange(True, "v", "spark-B"),)))
    for each in REJOIN:
        act(spark, *each)
    lines = [Message.parse(str(line)) for line in burst(spark.network, "spark", "spark", "e", 9, LINK)]
    hear_lines(thor, lines if is_told else [line._replace(tags={}) for line in lines])
    assert ranks_of(thor) == {"#one": {"spark-a": "", "spark-b": "v"}}


@pytest.mark.parametrize(
    "line",
    [
        "@j=1 :spark NJOIN #room 1 +nt spark-ori",
        "@j=1:2:three :spark NJOIN #room 1 +nt spark-ori",
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
