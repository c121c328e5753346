"""MODE: what channels and users can be set to, and what that does."""

import re
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from culture.protocol.message import Message
from culture.protocol.modes import Kind, parse_changes
from culture.protocol.stream import LINE_LIMIT
from culture.server.isupport import CHANNEL_MODES, MODE_KINDS, USER_MODES
from tests.server.conftest import Crowd
from tests.support.client import Client, registered
from tests.support.servers import Serve

Lines = list[tuple[str, ...]]
COMMANDS = Path(__file__).parents[2] / "docs" / "server" / "commands.md"


def lines(messages: list[Message]) -> Lines:
    return [(message.verb, *message.params) for message in messages]


def codes(messages: list[Message]) -> list[str]:
    return [message.verb for message in messages]


async def room_of(crowd: Crowd, *others: str, channel: str = "#room") -> list[Client]:
    """An operator and these members of a channel, nothing left unread."""
    clients = [await crowd.join(f"spark-{name}", channel) for name in ("ori", *others)]
    for client in clients:
        await client.sync()
    return clients


async def modes_of(client: Client, channel: str = "#room") -> tuple[str, ...]:
    """What 324 says."""
    return (await client.ask(f"MODE {channel}"))[0].params[2:]


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


@pytest.mark.requirement("C03", "C04")
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


# The single modes


@pytest.mark.requirement("C08")
async def test_a_key_opens_the_channel(crowd: Crowd) -> None:
    """RFC 2811 §4.2.10"""
    ori, ada = await room_of(crowd, "ada")
    assert lines(await ori.ask("MODE #room +k beer")) == [("MODE", "#room", "+k", "beer")]
    assert lines(await ada.sync()) == [("MODE", "#room", "+k", "beer")]
    eve = await crowd.join("spark-eve")
    assert codes(await eve.join("#room")) == ["475"]
    assert codes(await eve.join("#room bees")) == ["475"]
    assert codes(await eve.join("#room beer"))[0] == "JOIN"
    assert lines(await ori.ask("MODE #room -k"))[-1] == ("MODE", "#room", "-k", "*")
    bob = await crowd.join("spark-bob")
    assert codes(await bob.join("#room"))[0] == "JOIN"


@pytest.mark.requirement("C08")
@pytest.mark.parametrize("key", ["with spaces", "", " ", "long" * 100, "a,b", ":colon", "é", "tab\there", "x" * 24])
async def test_a_key_that_could_not_be_given_is_refused(crowd: Crowd, key: str) -> None:
    """RFC 2812 §2.3.1"""
    (ori,) = await room_of(crowd)
    (refused,) = lines(await ori.ask(f"MODE #room +k :{key}"))
    assert refused[:5] == ("696", "spark-ori", "#room", "k", "*")
    assert await modes_of(ori) == ("+nt",)


@pytest.mark.requirement("C08")
async def test_a_limit_keeps_later_ones_out(crowd: Crowd) -> None:
    """RFC 2811 §4.2.9"""
    ori, ada = await room_of(crowd, "ada")
    assert lines(await ori.ask("MODE #room +l 1")) == [("MODE", "#room", "+l", "1")]
    eve = await crowd.join("spark-eve")
    assert codes(await eve.join("#room")) == ["471"]
    await ada.ask("PRIVMSG #room :still here")
    assert codes(await ori.ask("MODE #room +l 3")) == ["PRIVMSG", "MODE"]
    assert codes(await eve.join("#room"))[0] == "JOIN"
    assert lines(await ori.ask("MODE #room -l"))[-1] == ("MODE", "#room", "-l")


@pytest.mark.parametrize("limit", ["0", "-1", "abc", "", " ", "٣", "9" * 10, "9" * 400])
async def test_a_limit_is_a_number_above_zero(crowd: Crowd, limit: str) -> None:
    (ori,) = await room_of(crowd)
    (refused,) = lines(await ori.ask(f"MODE #room +l :{limit}"))
    assert refused[:4] == ("696", "spark-ori", "#room", "l")
    assert await modes_of(ori) == ("+nt",)


@pytest.mark.requirement("C08")
async def test_a_ban_keeps_out_and_silent_and_an_exception_lifts_it(crowd: Crowd) -> None:
    """RFC 2811 §4.3.1, §4.3.2; masks compare without case"""
    ori, ada = await room_of(crowd, "ada")
    eve = await crowd.join("spark-Eve")
    assert lines(await ori.ask("MODE #room +b SPARK-eve")) == [("MODE", "#room", "+b", "SPARK-eve!*@*")]
    await ori.ask("MODE #room +b spark-ad?")
    assert codes(await eve.join("#room")) == ["474"]
    assert codes(await ada.ask("PRIVMSG #room :hello"))[-1] == "404"
    await ori.ask("MODE #room +e *!*@127.0.0.1")
    assert codes(await eve.join("#room"))[0] == "JOIN"
    assert await eve.ask("PRIVMSG #room :hello") == []
    assert lines(await ori.ask("MODE #room -b spark-eve"))[-1] == ("MODE", "#room", "-b", "SPARK-eve!*@*")


@pytest.mark.requirement("C08")
async def test_a_mute_lets_in_and_keeps_silent(crowd: Crowd) -> None:
    """EXTBAN=,m: a voice or an exception lifts it"""
    (ori,) = await room_of(crowd)
    eve = await crowd.join("spark-eve")
    assert lines(await ori.ask("MODE #room +b m:spark-eve!*@*")) == [("MODE", "#room", "+b", "m:spark-eve!*@*")]
    assert codes(await eve.join("#room"))[0] == "JOIN"
    assert codes(await eve.ask("PRIVMSG #room :hello")) == ["404"]
    assert await eve.ask("NOTICE #room :hello") == []
    assert codes(await ori.sync()) == ["JOIN"]
    await ori.ask("MODE #room +v spark-eve")
    assert codes(await eve.ask("PRIVMSG #room :with a voice")) == ["MODE"]
    await ori.ask("MODE #room -v+e spark-eve m:*!*tester@*")
    assert codes(await eve.ask("PRIVMSG #room :by exception")) == ["MODE"]
    await ori.ask("MODE #room -e m:*!*tester@*")
    assert codes(await eve.ask("PRIVMSG #room :and now?")) == ["MODE", "404"]
    await ori.ask("MODE #room -b m:spark-EVE")
    assert codes(await eve.ask("PRIVMSG #room :and now?")) == ["MODE"]


@pytest.mark.requirement("C08")
async def test_an_invitation_mask_opens_an_invite_only_channel(crowd: Crowd) -> None:
    """RFC 2811 §4.2.2, §4.3.2"""
    (ori,) = await room_of(crowd)
    eve = await crowd.join("spark-eve")
    await ori.ask("MODE #room +i")
    assert codes(await eve.join("#room")) == ["473"]
    assert lines(await ori.ask("MODE #room +I spark-eve")) == [("MODE", "#room", "+I", "spark-eve!*@*")]
    assert codes(await eve.join("#room"))[0] == "JOIN"


@pytest.mark.requirement("C08")
async def test_without_n_outsiders_may_speak(crowd: Crowd) -> None:
    """RFC 2811 §4.2.4"""
    (ori,) = await room_of(crowd)
    eve = await crowd.join("spark-eve")
    assert codes(await eve.ask("PRIVMSG #room :knock")) == ["404"]
    await ori.ask("MODE #room -n")
    assert await eve.ask("PRIVMSG #room :knock") == []
    assert lines(await ori.sync()) == [("PRIVMSG", "#room", "knock")]
    await ori.ask("MODE #room +b spark-eve")
    assert codes(await eve.ask("PRIVMSG #room :knock")) == ["404"]


@pytest.mark.requirement("C08")
async def test_without_t_members_set_the_topic(crowd: Crowd) -> None:
    """RFC 2811 §4.2.8"""
    ori, ada = await room_of(crowd, "ada")
    assert codes(await ada.ask("TOPIC #room :mine")) == ["482"]
    await ori.ask("MODE #room -t")
    assert codes(await ada.ask("TOPIC #room :mine")) == ["MODE", "TOPIC"]


@pytest.mark.requirement("C08")
async def test_a_secret_channel_tells_outsiders_nothing(crowd: Crowd) -> None:
    """RFC 2811 §4.2.6"""
    (ori,) = await room_of(crowd)
    eve = await crowd.join("spark-eve")
    await ori.ask("MODE #room +sb hidden")
    for line in ("MODE #room", "MODE #room b", "MODE #room +m"):
        assert codes(await eve.ask(line)) == ["442"], line
    assert codes(await eve.ask("NAMES #room")) == ["366"]


@pytest.mark.requirement("C08")
async def test_a_channel_without_ctcp_still_takes_actions(crowd: Crowd) -> None:
    """+C"""
    ori, ada = await room_of(crowd, "ada")
    assert await ada.ask("PRIVMSG #room :\x01VERSION\x01") == []
    await ori.ask("MODE #room +C")
    assert codes(await ada.ask("PRIVMSG #room :\x01VERSION\x01"))[1:] == ["404"]
    assert await ada.ask("PRIVMSG #room :\x01ACTION waves\x01") == []


# Lists


@pytest.mark.requirement("B16")
@pytest.mark.parametrize(("mode", "row", "end"), [("b", "367", "368"), ("e", "348", "349"), ("I", "346", "347")])
async def test_members_can_see_the_lists(crowd: Crowd, mode: str, row: str, end: str) -> None:
    """RFC 2812 §3.2.3"""
    ori, ada = await room_of(crowd, "ada")
    await ori.ask(f"MODE #room +{mode}{mode} one user@host")
    await ada.sync()
    for query in (mode, f"+{mode}", f"-{mode}", f"+{mode} :"):
        first, second, last = lines(await ada.ask(f"MODE #room {query}"))
        assert first[:4] == (row, "spark-ada", "#room", "one!*@*")
        assert first[4].startswith("spark-ori!")
        assert first[5].isdigit()
        assert second[3] == "*!user@host"
        assert last[:3] == (end, "spark-ada", "#room")
    assert codes(await ori.ask(f"MODE #room -{mode}+{mode} one")) == ["MODE", row, end]


async def test_a_list_asked_for_many_times_comes_once(crowd: Crowd) -> None:
    (ori,) = await room_of(crowd)
    assert codes(await ori.ask("MODE #room +beIbeIbeI")) == ["368", "349", "347"]


async def test_a_list_under_a_label_is_one_batch(crowd: Crowd) -> None:
    """IRCv3 labeled-response"""
    ori = await crowd.join("spark-ori", "#room", caps="batch labeled-response")
    await ori.ask("MODE #room +b one")
    answer = await ori.ask("@label=x MODE #room +ib")
    assert codes(answer) == ["BATCH", "MODE", "367", "368", "BATCH"]


async def test_the_lists_have_room_for_so_many_masks(serve: Serve) -> None:
    """005 MAXLIST: of all three kinds together; 478"""
    async with serve(limits={"list_entries": 3}) as ircd, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#room")
        full = lines(await ori.ask("MODE #room +beIb a b c d"))
        assert full[0][:4] == ("478", "spark-ori", "#room", "b")
        assert full[1] == ("MODE", "#room", "+beI", "a!*@*", "b!*@*", "c!*@*")
        assert codes(await ori.ask("MODE #room +b a")) == []
        assert lines(await ori.ask("MODE #room -e+b b d")) == [("MODE", "#room", "-e+b", "b!*@*", "d!*@*")]


@pytest.mark.parametrize("mask", ["with space", ":colon", "m:", "m::", "x" * 450, "é" * 230])
async def test_a_mask_that_no_line_could_show_is_refused(crowd: Crowd, mask: str) -> None:
    (ori,) = await room_of(crowd)
    (answer,) = lines(await ori.ask(f"MODE #room +b :{mask}"))
    if mask == "m::":
        assert answer == ("MODE", "#room", "+b", "m::!*@*")
    else:
        assert answer[:4] == ("696", "spark-ori", "#room", "b")


async def test_the_longest_mask_fits_into_the_list(serve: Serve) -> None:
    """RFC 2812 §2.3, with the longest names there can be"""
    name = f"{'s' * 12}.{'x' * 50}"
    async with serve(name=name) as ircd, registered(ircd.port, f"{'s' * 12}-{'o' * 19}") as ori:
        channel = "#" + "c" * 63
        await ori.join(channel)
        longest = 400
        while codes(await ori.ask(f"MODE {channel} +b {'m' * longest}")) == ["696"]:
            longest -= 1
        ori.send(f"MODE {channel} +b")
        raw = await ori.line()
        assert len(raw) <= LINE_LIMIT
        assert raw.split(b" ")[4] == b"m" * longest + b"!*@*"
        assert raw.rstrip().split(b" ")[-1].isdigit()


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
            many = MODE_KINDS[change.mode] in (Kind.LIST, Kind.PREFIX)
            before = set(held)
            held = {each for each in held if each[0] != change.mode or (many and each[1] != change.param)}
            if change.add:
                held.add((change.mode, change.param or ""))
            assert held != before, words
    return held


# Modes of users


@pytest.mark.requirement("B16")
async def test_users_set_and_see_their_own_modes(crowd: Crowd) -> None:
    """RFC 2812 §3.1.5"""
    ori = await crowd.join("spark-ori")
    await ori.ask("MODE spark-ori +i")
    assert lines(await ori.ask("MODE SPARK-ORI")) == [("221", "spark-ori", "+i")]
    (changed,) = await ori.ask("MODE spark-ori -i+wBRi-i")
    assert lines([changed]) == [("MODE", "spark-ori", "-i+wBR")]
    assert changed.source.startswith("spark-ori!")
    assert lines(await ori.ask("MODE spark-ori")) == [("221", "spark-ori", "+BRw")]
    assert await ori.ask("MODE spark-ori +wB") == []
    assert lines(await ori.ask("MODE spark-ori -wBR")) == [("MODE", "spark-ori", "-wBR")]
    assert lines(await ori.ask("MODE spark-ori")) == [("221", "spark-ori", "+")]


async def test_nobody_makes_themselves_operator(crowd: Crowd) -> None:
    """RFC 2812 §3.1.5: only OPER does"""
    ori = await crowd.join("spark-ori")
    assert await ori.ask("MODE spark-ori +o") == []
    assert lines(await ori.ask("MODE spark-ori +ow")) == [("MODE", "spark-ori", "+w")]
    assert "o" not in (await ori.ask("MODE spark-ori"))[0].params[1]


async def test_unknown_user_modes_are_told_once_and_the_rest_is_done(crowd: Crowd) -> None:
    """RFC 2812 §3.1.5: 501"""
    ori = await crowd.join("spark-ori")
    answer = await ori.ask("MODE spark-ori +xwyé:")
    assert codes(answer) == ["501", "MODE"]
    assert lines(answer)[1] == ("MODE", "spark-ori", "+w")


async def test_the_modes_of_others_are_not_for_us(crowd: Crowd) -> None:
    """RFC 2812 §3.1.5: 502, 401"""
    ori = await crowd.join("spark-ori")
    await crowd.join("spark-ada")
    assert codes(await ori.ask("MODE spark-ada")) == ["502"]
    assert codes(await ori.ask("MODE spark-ada -i")) == ["502"]
    assert codes(await ori.ask("MODE nobody +i")) == ["401"]


async def test_a_bot_says_so_with_a_tag(crowd: Crowd) -> None:
    """IRCv3 bot mode"""
    bot = await crowd.join("spark-bot", caps="message-tags echo-message")
    ada = await crowd.join("spark-ada", caps="message-tags")
    await bot.ask("MODE spark-bot +B")
    (echo,) = await bot.ask("PRIVMSG spark-ada :beep")
    (heard,) = await ada.sync()
    assert echo.tags["bot"] == heard.tags["bot"] == ""


async def test_with_r_only_those_with_an_account_get_through(crowd: Crowd) -> None:
    """+R"""
    ori, ada = await crowd.join("spark-ori"), await crowd.join("spark-ada")
    await ori.ask("MODE spark-ori +R")
    assert codes(await ada.ask("PRIVMSG spark-ori :hello")) == ["477"]
    assert await ori.sync() == []
    await ori.ask("MODE spark-ori -R")
    assert await ada.ask("PRIVMSG spark-ori :hello") == []
