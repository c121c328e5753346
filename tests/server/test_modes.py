"""MODE: who may change what, what is shown of it, and that it adds up."""

import re
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from culture.config.model import CHANNEL_FLAGS
from culture.protocol.message import Message
from culture.protocol.modes import ModeKind, parse_changes
from culture.protocol.stream import LINE_LIMIT
from culture.protocol.vocabulary import ChannelMode
from culture.server.core.isupport import CHANNEL_MODES, MODE_KINDS, USER_MODES
from tests.server.conftest import Crowd
from tests.server.rooms import codes, lines, modes_of, room_of
from tests.support.client import Client, registered
from tests.support.servers import Serve

COMMANDS = Path(__file__).parents[2] / "docs" / "server" / "commands.md"


@pytest.mark.parametrize(("heading", "letters"), [("User modes", USER_MODES), ("Channel modes", CHANNEL_MODES)])
def test_every_mode_has_its_row_in_the_documentation(heading: str, letters: str) -> None:
    section = COMMANDS.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w)` \|", section, re.MULTILINE)) == sorted(letters)


# Operators and voices


@pytest.mark.requirement("C03")
async def test_the_first_to_join_is_operator_and_only_operators_set_modes(crowd: Crowd) -> None:
    """RFC 2811 §4.2.1, RFC 2812 §3.2.3"""
    ori, ada = await room_of(crowd, "ada")
    names = await ori.ask("NAMES #room")
    assert set(names[0].params[3].split(" ")) == {"@spark-ori", "spark-ada"}
    assert codes(await ada.ask("MODE #room +m")) == ["482"]
    assert codes(await ada.ask("MODE #room +o spark-ada")) == ["482"]
    assert await modes_of(ada) == ("+nt",)
    assert lines(await ori.ask("MODE #room +o SPARK-ada")) == [("MODE", "#room", "+o", "spark-ada")]
    assert lines(await ada.ask("MODE #room +m-o spark-ori")) == [
        ("MODE", "#room", "+o", "spark-ada"),
        ("MODE", "#room", "+m-o", "spark-ori"),
    ]
    seen = await ori.ask("MODE #room -m")
    assert lines(seen) == [("MODE", "#room", "+m-o", "spark-ori"), ("482", "spark-ori", "#room", seen[-1].params[-1])]
    assert seen[0].source.startswith("spark-ada!")


@pytest.mark.parametrize("mode", ["o", "v"])
async def test_who_cannot_be_given_a_rank_is_named(crowd: Crowd, mode: str) -> None:
    """RFC 2812 §3.2.3: exactly one line for each mistake"""
    ori, ada = await room_of(crowd, "ada")
    eve = await crowd.join("spark-eve", "#elsewhere")
    assert lines(await ori.ask(f"MODE #room +{mode} spark-eve"))[0][:4] == ("441", "spark-ori", "spark-eve", "#room")
    assert lines(await ori.ask(f"MODE #room +{mode} nobody"))[0][:3] == ("401", "spark-ori", "nobody")
    assert codes(await ori.ask(f"MODE #room +{mode} nobody")) == ["401"]
    assert codes(await ori.ask(f"MODE #none +{mode} nobody")) == ["403"]
    assert codes(await eve.ask(f"MODE #room +{mode} spark-eve")) == ["442"]
    await ori.ask("KICK #room spark-ada")
    assert codes(await ori.ask(f"MODE #room +{mode} spark-ada")) == ["441"]
    await ada.join("#room")
    await ori.sync()
    assert lines(await ori.ask(f"MODE #room +{mode}{mode} nobody spark-ada"))[1:] == [
        ("MODE", "#room", f"+{mode}", "spark-ada")
    ]


@pytest.mark.requirement("C04", "C08")
async def test_in_a_moderated_channel_a_voice_is_needed_to_speak(crowd: Crowd) -> None:
    """RFC 2811 §4.1.3, §4.2.3"""
    ori, ada, eve = await room_of(crowd, "ada", "eve")
    await ori.ask("MODE #room +mv spark-ada")
    assert lines(await ada.sync()) == [("MODE", "#room", "+mv", "spark-ada")]
    names = await eve.ask("NAMES #room")
    assert set(names[-2].params[3].split(" ")) == {"@spark-ori", "+spark-ada", "spark-eve"}
    assert codes(await eve.ask("PRIVMSG #room :let me")) == ["404"]
    await ada.ask("PRIVMSG #room :I may")
    assert lines(await ori.sync()) == [("PRIVMSG", "#room", "I may")]
    await ori.ask("MODE #room -v spark-ada")
    assert codes(await ada.ask("PRIVMSG #room :and now?")) == ["MODE", "404"]


async def test_a_rank_follows_a_change_of_nick_and_ends_with_the_stay(crowd: Crowd) -> None:
    ori, ada = await room_of(crowd, "ada")
    await ori.ask("MODE #room +o spark-ada")
    await ada.ask("NICK spark-eva")
    assert codes(await ada.ask("MODE #room +m")) == ["MODE"]
    await ada.ask("PART #room")
    await ada.join("#room")
    assert codes(await ada.ask("MODE #room -m")) == ["482"]


# Showing and changing


@pytest.mark.requirement("B16")
async def test_modes_and_age_of_a_channel_can_be_asked_for(crowd: Crowd) -> None:
    """RFC 2812 §3.2.3: 324, and 329 as everywhere"""
    ori, ada = await room_of(crowd, "ada")
    shown = lines(await ori.ask("MODE #ROOM"))
    assert [line[:4] for line in shown[:1]] == [("324", "spark-ori", "#room", "+nt")]
    assert shown[1][:3] == ("329", "spark-ori", "#room")
    assert shown[1][3].isdigit()
    await ori.ask("MODE #room +lik 5 pass")
    assert await modes_of(ori) == ("+intkl", "pass", "5")
    outside = await crowd.join("spark-out")
    assert await modes_of(outside) == ("+intkl", "*", "5")
    await ori.ask("MODE #room -intkl pass")
    await ada.sync()
    assert await modes_of(ada) == ("+",)


@pytest.mark.requirement("B16")
async def test_what_changes_nothing_is_not_shown(crowd: Crowd) -> None:
    ori, ada = await room_of(crowd, "ada")
    assert lines(await ori.ask("MODE #room +int")) == [("MODE", "#room", "+i")]
    assert lines(await ori.ask("MODE #room +b a!*@*")) == [("MODE", "#room", "+b", "a!*@*")]
    await ori.ask("MODE #room +kl key 5")
    for idle in ("+int", "-m", "+o spark-ori", "-v spark-ada", "+b A!*@*", "-b b!*@*", "+k key", "+l 05", "+m-m"):
        assert await ori.ask(f"MODE #room {idle}") == [], idle
    assert lines(await ori.ask("MODE #room -lk")) == [("MODE", "#room", "-lk", "*")]
    for idle in ("-k", "-k key", "-l", ":", "+", "+-"):
        assert await ori.ask(f"MODE #room {idle}") == [], idle
    assert codes(await ada.sync()) == ["MODE"] * 4


async def test_of_changes_to_one_thing_the_last_counts(crowd: Crowd) -> None:
    (ori,) = await room_of(crowd)
    assert lines(await ori.ask("MODE #room +i-i+i")) == [("MODE", "#room", "+i")]
    assert lines(await ori.ask("MODE #room -o+m-v+o spark-ori spark-ori SPARK-ORI")) == [("MODE", "#room", "+m")]
    assert lines(await ori.ask("MODE #room +kl-k+k one 5 x two")) == [("MODE", "#room", "+lk", "5", "two")]
    assert lines(await ori.ask("MODE #room +b-b+b a A b")) == [("MODE", "#room", "+b", "b!*@*")]


async def test_each_unknown_letter_is_named_once_and_the_rest_is_done(crowd: Crowd) -> None:
    """RFC 2812 §3.2.3: 472"""
    (ori,) = await room_of(crowd)
    answered = lines(await ori.ask("MODE #room +iXyX"))
    assert [line[:3] for line in answered] == [
        ("472", "spark-ori", "X"),
        ("472", "spark-ori", "y"),
        ("MODE", "#room", "+i"),
    ]
    assert codes(await ori.ask("MODE #room :+: é")) == ["472", "472", "472"]


async def test_one_command_has_as_many_parameters_as_005_says(serve: Serve) -> None:
    """005 MODES"""
    async with serve(limits={"modes": 2}) as ircd, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#room")
        assert lines(await ori.ask("MODE #room +bbbi a b c")) == [("MODE", "#room", "+bb", "a!*@*", "b!*@*")]


async def test_a_long_change_is_shown_in_lines_that_fit(crowd: Crowd) -> None:
    """RFC 2812 §2.3: 512 bytes, with the longest names there can be"""
    channel, nick = "#" + "é" * 31, "spark-" + "o" * 26
    ori = await crowd.join(nick, channel)
    ada = await crowd.join("spark-ada", channel)
    await ori.sync()
    masks = [f"{letter * 34}!*@*" for letter in "abcdefghij"]
    ori.send(f"MODE {channel} +bbbbbbbbbb {' '.join(masks)}")
    await ori.sync()
    ada.send("PING end")
    shown: list[str] = []
    raw = await ada.line()
    while b"PONG" not in raw:
        assert len(raw) <= LINE_LIMIT
        verb, where, letters, *words = lines([Message.parse(raw.decode().rstrip())])[0]
        assert (verb, where, letters) == ("MODE", channel, "+" + "b" * len(words))
        shown += words
        raw = await ada.line()
    assert shown == masks


async def test_twelve_changes_at_once_are_one_line(crowd: Crowd) -> None:
    (ori,) = await room_of(crowd)
    masks = " ".join(f"{n}!*@*" for n in range(12))
    assert lines(await ori.ask(f"MODE #room +bbbbbbbbbbbbim {masks}")) == [
        ("MODE", "#room", "+bbbbbbbbbbbbim", *masks.split(" "))
    ]


# Everything at once

asked = st.tuples(
    st.text("++--oovbbeIkklimnstCxX", min_size=1, max_size=14),
    st.lists(
        st.sampled_from(["spark-ori", "spark-ADA", "nobody", "mask", "MASK", "m:other", "key", "5", "0"]), max_size=6
    ),
).map(lambda words: " ".join((words[0], *words[1])))
rooms = count(1)


@pytest.fixture
async def pair(crowd: Crowd) -> tuple[Client, Client]:
    """Two clients that stay for all examples."""
    return await crowd.join("spark-ori"), await crowd.join("spark-ada", caps="multi-prefix")


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(asked, min_size=1, max_size=8))
async def test_what_members_saw_adds_up_to_what_is_so(pair: tuple[Client, Client], wanted: list[str]) -> None:
    """Whatever operators ask for: who replays the MODE lines has the modes, lists and ranks of the channel."""
    ori, ada = pair
    channel = f"#room{next(rooms)}"
    for client in pair:
        await client.ask(f"JOIN 0\r\nJOIN {channel}")
    await ori.ask(f"MODE {channel} +o spark-ada")
    for words in wanted:
        await ori.ask(f"MODE {channel} {words}")
    seen = [message.params[1:] for message in await ada.sync() if message.verb == "MODE"]
    assert replay([("+nt",), ("+o", "spark-ori"), *seen]) == await found(ada, channel)


async def found(client: Client, channel: str) -> set[tuple[str, str]]:
    """What the server says is set."""
    told = replay([await modes_of(client, channel)])
    for message in await client.ask(f"MODE {channel} +beI"):
        if mode := {"367": "b", "348": "e", "346": "I"}.get(message.verb):
            told.add((mode, message.params[2]))
    for word in (await client.ask(f"NAMES {channel}"))[0].params[3].split(" "):
        told |= {(mode, word.lstrip("@+")) for mode, prefix in (("o", "@"), ("v", "+")) if prefix in word}
    return told


def replay(shown: list[tuple[str, ...]]) -> set[tuple[str, str]]:
    """What is set after these MODE lines, each of which must have changed something."""
    held: set[tuple[str, str]] = set()
    for words in shown:
        changes, unknown = parse_changes(words, MODE_KINDS)
        assert not unknown
        for change in changes:
            many = MODE_KINDS[change.mode] in (ModeKind.LIST, ModeKind.PREFIX)
            before = set(held)
            held = {each for each in held if each[0] != change.mode or (many and each[1] != change.param)}
            if change.add:
                held.add((change.mode, change.param or ""))
            assert held != before, words
    return held


def test_a_new_channel_may_be_given_every_flag_and_nothing_else() -> None:
    flags = {mode for mode, kind in MODE_KINDS.items() if kind is ModeKind.FLAG}
    assert set(CHANNEL_FLAGS) == flags - {ChannelMode.REGISTERED, ChannelMode.LOCAL}, "somebody decides these"
